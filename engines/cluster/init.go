package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// initNode is the first process of a node: it sets the machine up, starts what runs on it, and buries the dead.
func initNode(ctx context.Context, n Node) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := n.mount(); err != nil {
		return err
	}
	if err := n.connect(ctx); err != nil {
		return err
	}
	mains := map[int]string{}
	boot := func(name string, args ...string) error {
		pid, err := n.boot(name, args...)
		mains[pid] = name
		return err
	}
	if err := boot("containerd", "containerd", "--config", n.Dir()+"/containerd.toml", "--log-level", "warn"); err != nil {
		return err
	}
	if err := n.importImages(ctx); err != nil {
		return err
	}
	if err := boot("kubelet", n.engine("kubernetes", "kubelet"), "--config="+n.Dir()+"/kubelet.yaml", "--kubeconfig="+n.Dir()+"/kubelet.kubeconfig",
		"--root-dir="+n.Dir()+"/kubelet", "--hostname-override="+n.Name(), "--node-ip="+n.Address(), "--cert-dir="+n.Dir()+"/kubelet-pki"); err != nil {
		return err
	}
	if err := boot("kube-proxy", n.engine("kubernetes", "kube-proxy"), "--config="+n.Dir()+"/proxy.yaml"); err != nil {
		return err
	}
	say("%s is on.", n.Name())
	return n.bury(mains)
}

// mount gives the node what a machine has of its own: processes, runtime files and logs. Nothing mounted here is seen
// outside, and pods see what is mounted later.
func (n Node) mount() error {
	if err := syscall.Sethostname([]byte(n.Name())); err != nil {
		return err
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"", "/", "", syscall.MS_REC | syscall.MS_SHARED},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0},
		{"tmpfs", "/var/log", "tmpfs", 0},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return maskSysctls()
}

// maskSysctls gives the kubelet files of its own in place of the settings it insists on changing: they are the whole
// machine's.
func maskSysctls() error {
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		real, own := "/proc/sys/"+name, "/run/sysctl/"+name
		if _, err := os.Stat(real); err != nil {
			continue // this kernel has no such setting
		}
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(own, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := syscall.Mount(own, real, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	return nil
}

// connect sets up the node's network once the host has plugged in its end. Pods of other nodes are reached through
// those nodes; there is no other way out.
func (n Node) connect(ctx context.Context) error {
	for {
		if _, err := os.Stat("/proc/sys/net/ipv4/conf/eth0"); err == nil {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for eth0: %w", ctx.Err())
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", n.Address() + "/24", "dev", "eth0"},
		{"ip", "link", "set", "eth0", "up"},
		// The node's own processes reach services too. kube-proxy turns their packets round, but only on a way that exists.
		{"ip", "route", "add", n.ServicesNet(), "via", n.Host()},
	}
	for other := 1; other <= maxNodes; other++ {
		if o := n.node(other); other != n.Number {
			commands = append(commands, []string{"ip", "route", "add", o.PodNet(), "via", o.Address()})
		}
	}
	commands = append(append(commands, n.fenced()...), judged()...)
	for _, command := range commands {
		if err := run(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// fenced are the rules that let pods reach of the host what a cluster has to offer, and nothing else that listens there.
func (n Node) fenced() [][]string {
	rule := func(args ...string) []string {
		return append([]string{"iptables", "--wait", "--append", "FORWARD"}, args...)
	}
	return [][]string{
		rule("--match", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "--jump", "ACCEPT"),
		rule("--destination", n.Host(), "--protocol", "tcp", "--match", "multiport", "--dports", "5000,6443", "--jump", "ACCEPT"),
		rule("--destination", n.Host(), "--jump", "REJECT"),
		// The kubelet and whatever else listens on a node is for the host and other nodes, not for pods.
		{"iptables", "--wait", "--append", "INPUT", "--match", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "--jump", "ACCEPT"},
		{"iptables", "--wait", "--append", "INPUT", "--source", n.NodesNet(), "--jump", "ACCEPT"},
		{"iptables", "--wait", "--append", "INPUT", "--source", n.PodsNet(), "--jump", "REJECT"},
	}
}

// judged are the rules that hand the first packet of every connection of a pod to the program that knows the network
// policies; while it does not run, there are no connections. The node's own, such as the kubelet's probes, are exempt.
// That program would set such rules itself with nftables, whose queue not every kernel has.
func judged() [][]string {
	rule := func(args ...string) []string {
		return append([]string{"iptables", "--wait", "--table", "mangle", "--append", "POSTROUTING"}, args...)
	}
	rules := [][]string{
		rule("--match", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "--jump", "ACCEPT"),
		rule("--match", "owner", "--uid-owner", "0", "--jump", "ACCEPT"),
	}
	if losesQueued() {
		rules = append(rules, rule("--protocol", "udp", "--dport", "53", "--jump", "ACCEPT"))
	}
	return append(rules, rule("--jump", "NFQUEUE", "--queue-num", "100"))
}

// losesQueued tells whether this kernel drops one of two packets that a queue holds for the same new connection, as
// those before 6.12 do. Resolvers send two at once, so names are not judged there.
func losesQueued() bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	var major, minor int
	_, err = fmt.Sscanf(string(release), "%d.%d", &major, &minor)
	return err == nil && (major < 6 || major == 6 && minor < 12)
}

// boot starts a program and leaves its end to bury.
func (n Node) boot(name string, args ...string) (int, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(n.log(n.Name()+"-"+name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Dir: n.Cluster.Dir, Env: os.Environ(), Files: []*os.File{nil, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", name, err)
	}
	return process.Pid, process.Release()
}

// importImages gives containerd the images that are there before any registry is.
func (n Node) importImages(ctx context.Context) error {
	for {
		if err := listens(ctx, n.Socket()); err == nil {
			break
		} else if ctx.Err() != nil {
			return fmt.Errorf("wait for containerd: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, file := range n.Images {
		if err := run(ctx, "ctr", "--address", n.Socket(), "--namespace", "k8s.io", "images", "import", file); err != nil {
			return err
		}
	}
	return nil
}

// bury waits for every process whose parent is gone, as the first process must. The node ends when one of its own ends.
func (n Node) bury(mains map[int]string) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if name, ok := mains[pid]; ok {
			return fmt.Errorf("%s ended with status %d, and the node with it; its log is %s", name, status.ExitStatus(), n.log(n.Name()+"-"+name))
		}
	}
}
