package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// started answers when a process started, in ticks since boot, or "" if it has ended (a zombie has). With the pid it
// names a process for good: the pid alone may be another's by now.
func started(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// pid answers the pid of a process of the cluster, or 0 if it does not run.
func (c *Cluster) pid(name string) int {
	data, err := os.ReadFile(c.at("pid", name))
	if err != nil {
		return 0
	}
	number, start, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	pid, err := strconv.Atoi(number)
	if err != nil || started(pid) != start {
		return 0
	}
	return pid
}

// A program is a process to start: what it is called here, and how.
type program struct {
	name string
	env  []string
	args []string
	sys  syscall.SysProcAttr
}

// start starts a program as a process that outlives us, with its output in a log. One that runs is left alone.
func (c *Cluster) start(p program) error {
	if c.pid(p.name) != 0 {
		return nil
	}
	for _, dir := range []string{"log", "pid"} {
		if err := os.MkdirAll(c.at(dir), 0o700); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(c.log(p.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.args[0], p.args[1:]...) //nolint:noctx // it outlives us
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.Dir, "LC_ALL=C.UTF-8"}, p.env...)
	p.sys.Setsid = true
	cmd.SysProcAttr = &p.sys
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	go cmd.Wait() //nolint:errcheck // only so that it leaves no zombie while we run; its log says how it ended
	return os.WriteFile(c.at("pid", p.name), fmt.Appendf(nil, "%d %s\n", cmd.Process.Pid, started(cmd.Process.Pid)), 0o600)
}

func (c *Cluster) log(name string) string { return c.at("log", name+".log") }

// stop sends a signal to each of the named processes that runs, and KILL to those that still run after the grace.
func (c *Cluster) stop(signal syscall.Signal, grace time.Duration, names ...string) error {
	c.kill(signal, names)
	for end := time.Now().Add(grace); time.Now().Before(end) && c.kill(0, names); {
		time.Sleep(10 * time.Millisecond)
	}
	for end := time.Now().Add(10 * time.Second); c.kill(syscall.SIGKILL, names); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not even KILL ends all of %s: the kernel holds one of them. Look at dmesg, then run make cluster-down again", strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		_ = os.Remove(c.at("pid", name))
	}
	return nil
}

// kill signals those of the named processes that run, and tells whether there were any.
func (c *Cluster) kill(signal syscall.Signal, names []string) (alive bool) {
	for _, name := range names {
		if pid := c.pid(name); pid > 1 { // 0 would be our own group
			_ = syscall.Kill(pid, signal)
			alive = true
		}
	}
	return alive
}

// known lists the processes that were started and not stopped, whether they still run or not.
func (c *Cluster) known() []string {
	files, _ := filepath.Glob(c.at("pid", "*")) // the pattern is ours
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return names
}

// run runs a command to its end; what it said is part of the error.
func run(ctx context.Context, args ...string) error {
	_, err := output(ctx, nil, args...)
	return err
}

// noProxy keeps what speaks to the cluster from asking a proxy that cannot reach it.
func (c *Cluster) noProxy() string {
	all := append(strings.Split(os.Getenv("NO_PROXY"), ","), fmt.Sprintf("10.%d.0.0/16", c.Net), "127.0.0.0/8", "localhost")
	return "NO_PROXY=" + strings.Trim(strings.Join(all, ","), ",")
}

func output(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", strings.Join(args[:min(len(args), 6)], " "), err, out)
	}
	return string(out), nil
}

// until asks again until it is answered without an error, and says now and then what it waits for. It gives up when
// one of the named processes has ended, because then nothing will come any more.
func (c *Cluster) until(ctx context.Context, what string, needs []string, ask func(context.Context) error) error {
	since, said := time.Now(), time.Now()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		for _, name := range needs {
			if c.pid(name) == 0 {
				return fmt.Errorf("%s ended before %s. Its last words:\n%s\nThe whole log is %s", name, what, tail(c.log(name)), c.log(name))
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waited %.0f s until %s, in vain: %w", time.Since(since).Seconds(), what, err)
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			say("Waiting until %s, %.0f s so far.", what, time.Since(since).Seconds())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func tail(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
