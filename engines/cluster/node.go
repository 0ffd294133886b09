package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// configure writes everything that the node's programs read.
func (n Node) configure(p *pki) error {
	if err := os.MkdirAll(n.Dir(), 0o700); err != nil {
		return err
	}
	for file, name := range map[string]string{
		"containerd.toml":   "containerd.toml",
		"kubelet.yaml":      "kubelet.yaml",
		"proxy.yaml":        "proxy.yaml",
		"cni/pods.conflist": "cni.conflist",
		"certs.d/" + n.Registry() + "/hosts.toml": "hosts.toml",
	} {
		if err := renderTo(filepath.Join(n.Dir(), file), name, n); err != nil {
			return err
		}
	}
	// Pods that ask for the node's names get none: the cluster has no way out.
	if err := os.WriteFile(n.Dir()+"/resolv.conf", nil, 0o600); err != nil {
		return err
	}
	return p.issueNode(n)
}

// start turns the node on: a process that is the first of new namespaces, the way a machine has a first process.
// Everything the node ever starts lives in them, so when that process is killed the kernel ends the rest, and the
// node's mounts and network vanish with it.
func (n Node) start(ctx context.Context) error {
	if n.pid(n.Name()) != 0 {
		return nil
	}
	if err := n.makeCgroups(); err != nil {
		return err
	}
	if err := unplug(ctx, n.Veth()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := n.Cluster.start(program{
		name: n.Name(),
		args: []string{self, "init", n.Cluster.Dir, fmt.Sprint(n.Number)},
		sys:  syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC},
	}); err != nil {
		return err
	}
	// The other end of this cable is the node's eth0.
	if err := run(ctx, "ip", "link", "add", n.Veth(), "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(n.pid(n.Name()))); err != nil {
		return err
	}
	return run(ctx, "ip", "link", "set", n.Veth(), "master", n.Bridge(), "up")
}

// halt turns the node off as a power cut would: nothing in it is told. Its network would live on while a connection
// waits for an answer from the other side, so the cable is pulled too.
func (n Node) halt(ctx context.Context) error {
	if err := n.stop(syscall.SIGKILL, 0, n.Name()); err != nil {
		return err
	}
	if err := unplug(ctx, n.Veth()); err != nil {
		return err
	}
	return n.removeCgroups()
}

// ready waits until the node has shown itself since it was turned on, and is well. What the API server says of it before
// that may be from before.
func (n Node) ready(ctx context.Context, since time.Time) error {
	return n.until(ctx, n.Name()+" is ready", append(controlPlane(), n.Name()), func(ctx context.Context) error {
		renewed, err := n.kubectl(ctx, "get", "lease", "--namespace=kube-node-lease", n.Name(), "--output=jsonpath={.spec.renewTime}")
		if err != nil {
			return err
		}
		if at, err := time.Parse(time.RFC3339, renewed); err != nil || at.Before(since) {
			return fmt.Errorf("%s was last heard of at %q", n.Name(), renewed)
		}
		_, err = n.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=1s", "node/"+n.Name())
		return err
	})
}

// cgroupRoots lists the hierarchies of control groups: one in version 2, one for each controller in version 1.
func cgroupRoots() []string {
	if unified() {
		return []string{"/sys/fs/cgroup"}
	}
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs") // the pattern is ours
	for i := range roots {
		roots[i] = filepath.Dir(roots[i])
	}
	return roots
}

func unified() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err == nil
}

// makeCgroups makes the group below which the node's kubelet makes those of its pods.
func (n Node) makeCgroups() error {
	if err := n.removeCgroups(); err != nil { // of a node that was cut off
		return err
	}
	for _, root := range cgroupRoots() {
		group := root
		for step := range strings.SplitSeq(strings.Trim(n.Cgroup(), "/"), "/") {
			if err := shareControllers(group); err != nil {
				return err
			}
			group = filepath.Join(group, step)
			if err := os.MkdirAll(group, 0o755); err != nil { //nolint:gosec // as all control groups are
				return err
			}
			if err := inheritCpuset(group); err != nil {
				return err
			}
		}
	}
	return nil
}

// shareControllers lets the children of a group of version 2 have the controllers that a kubelet insists on, as far as
// the group has them itself.
func shareControllers(group string) error {
	if !unified() {
		return nil
	}
	has, err := os.ReadFile(group + "/cgroup.controllers")
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(has)) {
		if !slices.Contains([]string{"cpu", "cpuset", "memory", "hugetlb", "pids"}, controller) {
			continue
		}
		if err := os.WriteFile(group+"/cgroup.subtree_control", []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("share out the controller %s of %s: %w", controller, group, err)
		}
	}
	return nil
}

// sharedControllers is what the top of version 2's groups shares out; unshareControllers puts it back.
func sharedControllers() string {
	shared, _ := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control") // version 1 has no such file
	return string(shared)
}

func unshareControllers(before string) error {
	for _, controller := range strings.Fields(sharedControllers()) {
		if slices.Contains(strings.Fields(before), controller) {
			continue
		}
		if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("-"+controller), 0); err != nil {
			return fmt.Errorf("stop sharing out the controller %s: %w", controller, err)
		}
	}
	return nil
}

// inheritCpuset gives a new group of the version 1 cpuset controller what its parent has; it starts with nothing.
func inheritCpuset(group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(group), file))
		if err != nil || unified() {
			continue // not that controller
		}
		if err := os.WriteFile(filepath.Join(group, file), value, 0); err != nil {
			return err
		}
	}
	return nil
}

func (n Node) removeCgroups() error {
	for _, root := range cgroupRoots() {
		if err := removeCgroup(filepath.Join(root, n.Cgroup())); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup removes a group with all below it. Groups are removed by rmdir, from the bottom up.
func removeCgroup(top string) error {
	var groups []string
	_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	for _, group := range slices.Backward(groups) {
		if err := removeEmpty(group); err != nil {
			return err
		}
	}
	return nil
}
