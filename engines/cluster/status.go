package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// status says what of the cluster runs; the code is 3 when something does not.
func status(ctx context.Context, dir string) (int, error) {
	c, err := load(dir)
	if err != nil {
		return 1, err
	}
	if c == nil {
		say("The cluster is not up.")
		return 3, nil
	}
	code := 0
	for _, name := range c.mains() {
		if pid := c.pid(name); pid != 0 {
			say("%s runs, pid %d, log in %s.", name, pid, c.log(name))
		} else {
			say("%s is not running.", name)
			code = 3
		}
	}
	pods, err := c.kubectl(ctx, "get", "nodes,pods", "-A")
	if err != nil {
		return 3, err
	}
	fmt.Print(pods)
	return code, nil
}

// traces lists what a cluster could leave behind on this machine, one line each: taken before and after, the two lists
// must be the same. Of processes and namespaces it lists those of a cluster; of everything else all there is, because
// what was forgotten would not carry our name.
func traces(ctx context.Context) error {
	lines, err := listTraces(ctx)
	for _, line := range lines {
		fmt.Println(line)
	}
	return err
}

func listTraces(ctx context.Context) ([]string, error) {
	lines := append(processTraces(), fileTraces()...)
	for kind, args := range map[string][]string{
		"link":       {"ip", "-o", "link"},
		"address":    {"ip", "-o", "address"},
		"route":      {"ip", "route", "show", "table", "all"},
		"rule":       {"ip", "rule"},
		"named":      {"ip", "netns", "list"},
		"nftables":   {"nft", "list", "tables"},
		"iptables":   {"iptables-save"},
		"ip6tables":  {"ip6tables-save"},
		"mount":      {"findmnt", "-rno", "TARGET,FSTYPE,SOURCE"},
		"ip6-routes": {"ip", "-6", "route", "show", "table", "all"},
	} {
		if _, err := exec.LookPath(args[0]); err != nil {
			continue // then nothing here can have used it
		}
		out, err := output(ctx, nil, args...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, kind+" "+line)
			}
		}
	}
	for name, value := range readSysctls() {
		lines = append(lines, "sysctl "+name+" "+value)
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// processTraces lists the processes of clusters, with the namespaces they keep alive and the mounts in those.
func processTraces() []string {
	var lines []string
	own, _ := os.Readlink("/proc/self/ns/mnt")
	pids, _ := filepath.Glob("/proc/[0-9]*") // the pattern is ours
	for _, proc := range pids {
		if filepath.Base(proc) == fmt.Sprint(os.Getpid()) || !ours(proc) {
			continue
		}
		exe, _ := os.Readlink(proc + "/exe")
		lines = append(lines, fmt.Sprintf("process %s %s", filepath.Base(proc), exe))
		for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc"} {
			if ns, err := os.Readlink(proc + "/ns/" + kind); err == nil {
				if host, _ := os.Readlink("/proc/self/ns/" + kind); ns != host {
					lines = append(lines, "namespace "+ns)
				}
			}
		}
		if ns, _ := os.Readlink(proc + "/ns/mnt"); ns != own {
			lines = append(lines, mountTraces(proc)...)
		}
	}
	return lines
}

var ourGroup = regexp.MustCompile(`:/proa\d+/`)

// ours tells whether a process belongs to a cluster: by where it works, what it runs or which group it is in.
func ours(proc string) bool {
	cwd, _ := os.Readlink(proc + "/cwd")
	exe, _ := os.Readlink(proc + "/exe")
	groups, _ := os.ReadFile(proc + "/cgroup")
	return strings.HasSuffix(cwd, "-cluster") || strings.Contains(exe, "/proa/engines/") || ourGroup.Match(groups)
}

func mountTraces(proc string) []string {
	file, err := os.Open(proc + "/mountinfo")
	if err != nil {
		return nil // it has just ended
	}
	defer func() { _ = file.Close() }()
	var lines []string
	for scan := bufio.NewScanner(file); scan.Scan(); {
		if fields := strings.Fields(scan.Text()); len(fields) > 4 && strings.Contains(fields[4], "-cluster/") {
			lines = append(lines, "mount-inside "+fields[4])
		}
	}
	return lines
}

// fileTraces lists the control groups of this machine, and the places where the programs of a node would keep things
// if they were not told otherwise.
func fileTraces() []string {
	var lines []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			lines = append(lines, "cgroup "+path)
		}
		return nil
	})
	for _, path := range []string{
		"/var/lib/kubelet", "/var/lib/cni", "/var/lib/containerd", "/var/log/pods", "/var/log/containers", "/etc/cni/net.d",
		"/run/containerd", "/run/netns", "/run/nri", "/run/xtables.lock", "/opt/cni", "/usr/libexec/kubernetes",
	} {
		if _, err := os.Stat(path); err == nil {
			lines = append(lines, "file "+path)
		}
	}
	return lines
}
