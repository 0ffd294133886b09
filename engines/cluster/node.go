package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	// The other end of this cable is the node's eth0. It goes when the node goes.
	if err := run(ctx, "ip", "link", "add", n.Veth(), "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(n.pid(n.Name()))); err != nil {
		return err
	}
	return run(ctx, "ip", "link", "set", n.Veth(), "master", n.Bridge(), "up")
}

// halt turns the node off as a power cut would: nothing in it is told.
func (n Node) halt() error {
	n.stop(syscall.SIGKILL, 0, n.Name())
	return n.removeCgroups()
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
			if unified() {
				if err := os.WriteFile(group+"/cgroup.subtree_control", []byte("+cpu +memory +pids"), 0); err != nil {
					return fmt.Errorf("share out the controllers of %s: %w", group, err)
				}
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
