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
	if pods, err := c.kubectl(ctx, "get", "nodes,pods", "-A"); err == nil {
		fmt.Print(pods)
	} else {
		say("The API server does not answer.")
		code = 3
	}
	if code != 0 {
		say("make cluster-up starts what does not run.")
	}
	return code, nil
}

// traces lists what a cluster could leave behind on this machine, one line each: taken before and after, the two lists
// must be the same. Of processes and namespaces it lists those of a cluster; of everything else all there is, because
// what was forgotten would not carry our name. Other clusters that are up come and go as they like, and are left out.
func traces(ctx context.Context, dir string) error {
	lines, err := listTraces(ctx, dir)
	for _, line := range lines {
		fmt.Println(line)
	}
	return err
}

func listTraces(ctx context.Context, dir string) ([]string, error) {
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
			if line = strings.TrimSpace(passing.ReplaceAllString(line, "")); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, kind+" "+line)
			}
		}
	}
	if others := otherClusters(dir); others != nil {
		lines = slices.DeleteFunc(lines, others.MatchString)
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

var bound = regexp.MustCompile(`--bind-address=10\.(\d+)\.0\.1\x00`)

// otherClusters matches the traces of clusters whose API server runs and that keep their things elsewhere; nil if there
// are none.
func otherClusters(dir string) *regexp.Regexp {
	var names []string
	pids, _ := filepath.Glob("/proc/[0-9]*") // the pattern is ours
	for _, proc := range pids {
		args, _ := os.ReadFile(proc + "/cmdline")
		cwd, _ := os.Readlink(proc + "/cwd")
		if found := bound.FindSubmatch(args); found != nil && strings.HasSuffix(cwd, "-cluster") && cwd != dir {
			names = append(names, regexp.QuoteMeta(cwd), fmt.Sprintf(`\bproa%[1]s(\D|$)|\bproa%[1]sn\d|\b10\.%[1]s\.\d`, found[1]))
		}
	}
	if names == nil {
		return nil
	}
	return regexp.MustCompile(strings.Join(names, "|"))
}

// passing is what changes by itself in what is listed: the time for which an address or a route is still good.
var passing = regexp.MustCompile(`\b(valid_lft|preferred_lft|expires) \S+`)

// processTraces lists the processes of clusters, with the namespaces they keep alive and the mounts in those.
func processTraces() []string {
	var lines []string
	own, _ := os.Readlink("/proc/self/ns/mnt")
	pids, _ := filepath.Glob("/proc/[0-9]*") // the pattern is ours
	for _, proc := range pids {
		whose := owner(proc)
		if filepath.Base(proc) == fmt.Sprint(os.Getpid()) || whose == "" {
			continue
		}
		exe, _ := os.Readlink(proc + "/exe")
		lines = append(lines, fmt.Sprintf("process of %s: %s %s", whose, filepath.Base(proc), exe))
		for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc"} {
			if ns, err := os.Readlink(proc + "/ns/" + kind); err == nil {
				if host, _ := os.Readlink("/proc/self/ns/" + kind); ns != host {
					lines = append(lines, "namespace of "+whose+": "+ns)
				}
			}
		}
		if ns, _ := os.Readlink(proc + "/ns/mnt"); ns != own {
			lines = append(lines, mountTraces(proc)...)
		}
	}
	return lines
}

var ourGroup = regexp.MustCompile(`:/(proa\d+)/`)

// owner is the cluster that a process belongs to, by the group it is in or by where it works; none for other processes.
func owner(proc string) string {
	groups, _ := os.ReadFile(proc + "/cgroup")
	if found := ourGroup.FindSubmatch(groups); found != nil {
		return string(found[1])
	}
	if cwd, _ := os.Readlink(proc + "/cwd"); strings.HasSuffix(cwd, "-cluster") {
		return cwd
	}
	if exe, _ := os.Readlink(proc + "/exe"); strings.Contains(exe, "/proa/engines/") {
		return "nobody"
	}
	return ""
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

var ourCgroup = regexp.MustCompile(`/(proa\d+|kubepods[^/]*|k8s\.io)(/|$)`)

// steady tells whether a setting of the kernel has a value that stays: some count, and those below net/…/conf and neigh
// come and go with links.
func steady(path string) bool {
	for _, part := range []string{"/conf/", "/neigh/", "/random/", "/pty/", "ns_last_pid", "-nr", "-state", "_count", "/sched_domain/", "/binfmt_misc/", "nlm_", "/mqueue/", "/proc/sys/fs/"} {
		if strings.Contains(path, part) {
			return false
		}
	}
	return true
}

// fileTraces lists the control groups of clusters, the settings of the kernel, and the places where the programs of a node would keep things
// if they were not told otherwise.
func fileTraces() []string {
	var lines []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && ourCgroup.MatchString(path) {
			lines = append(lines, "cgroup "+path)
		}
		return nil
	})
	_ = filepath.WalkDir("/proc/sys", func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && steady(path) {
			value, _ := os.ReadFile(path) //nolint:gosec // the kernel has no links there; some settings can only be written
			lines = append(lines, "sysctl "+path+" "+strings.Join(strings.Fields(string(value)), " "))
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
