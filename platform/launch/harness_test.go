package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the launcher, and programs that misbehave in ways a shell cannot.
func TestMain(m *testing.M) {
	switch play := os.Getenv("LAUNCH_TEST"); play {
	case "":
		os.Exit(m.Run())
	case "launcher":
		playLauncher()
	case "session":
		playSession(os.Args[1:])
	case "lines":
		playLines(os.Args[1:])
	case "flood":
		playFlood(os.Args[1:])
	case "pieces":
		playPieces(os.Args[1:])
	default:
		fmt.Fprintln(os.Stderr, "cannot play", play)
		os.Exit(99)
	}
}

func playLauncher() {
	if os.Getpid() == 1 {
		must(syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""))
		must(syscall.Mount("proc", "/proc", "proc", 0, ""))
	}
	if group := os.Getenv("LAUNCH_TEST_CGROUP"); group != "" {
		must(os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0))
	}
	cfg, err := Load("")
	must(err)
	os.Exit(Run(cfg))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// play is a process of the test binary in that role.
func play(name, role string, args ...string) Process {
	return Process{Name: name, Args: append([]string{os.Args[0]}, args...), Env: map[string]string{"LAUNCH_TEST": role}}
}

func shell(name, command string) Process { return Process{Name: name, Command: command} }

// A launched is a launcher that runs, as a process of its own.
type launched struct {
	t              *testing.T
	cmd            *exec.Cmd
	cfg            Config
	stdout, stderr *buffer
	done           chan struct{}
}

type option func(*exec.Cmd)

// pid1 puts the launcher into a pid namespace of its own.
func pid1(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
}

func inCgroup(dir string) option {
	return func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "LAUNCH_TEST_CGROUP="+dir) }
}

// asBoth runs a test with a launcher that is pid 1, and with one that is not.
func asBoth(t *testing.T, test func(t *testing.T, as option)) {
	t.Run("pid 1", func(t *testing.T) {
		needRoot(t)
		t.Parallel()
		test(t, pid1)
	})
	t.Run("subreaper", func(t *testing.T) {
		t.Parallel()
		test(t, func(*exec.Cmd) {})
	})
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a pid namespace needs root: run this test as root")
	}
}

var sockets struct {
	sync.Mutex
	n int
}

func socketName() string {
	sockets.Lock()
	defer sockets.Unlock()
	sockets.n++
	return fmt.Sprintf("@proa-launch-test-%d-%d", os.Getpid(), sockets.n)
}

func start(t *testing.T, cfg Config, options ...option) *launched {
	t.Helper()
	cfg.Process = "web"
	cfg.Socket = socketName()
	cfg.TerminationLog = filepath.Join(t.TempDir(), "termination-log")
	if cfg.GraceSeconds == 0 {
		cfg.GraceSeconds = 8
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.TerminationLog, []byte(strings.Repeat("older ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &launched{t: t, cfg: cfg, stdout: &buffer{}, stderr: &buffer{}, done: make(chan struct{})}
	l.cmd = exec.Command(os.Args[0])
	l.cmd.Env = append(os.Environ(), "LAUNCH_TEST=launcher", EnvConfig+"="+string(text), DefaultIndexFrom+"=7", "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	l.cmd.Stdout, l.cmd.Stderr, l.cmd.WaitDelay = l.stdout, l.stderr, 5*time.Second
	for _, o := range options {
		o(l.cmd)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = l.cmd.Wait() // its exit code is read from the state
		close(l.done)
	}()
	t.Cleanup(l.end)
	return l
}

func (l *launched) end() {
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-l.done:
	case <-time.After(12 * time.Second):
		_ = l.cmd.Process.Kill()
		<-l.done
	}
	if strings.Contains(l.stderr.String(), "DATA RACE") {
		l.t.Error(l.stderr.String())
	}
}

// wait gives the exit code and the record of a launcher that ends.
func (l *launched) wait() (int, Record) {
	l.t.Helper()
	select {
	case <-l.done:
	case <-time.After(25 * time.Second):
		l.t.Fatalf("still running; stdout %.500q, stderr %.500q", l.stdout, l.stderr)
	}
	r, err := l.record()
	if err != nil {
		l.t.Fatalf("%v; stderr %.500q", err, l.stderr)
	}
	return l.cmd.ProcessState.ExitCode(), r
}

func (l *launched) record() (Record, error) {
	text, err := os.ReadFile(l.cfg.TerminationLog)
	if err != nil {
		return Record{}, err
	}
	return DecodeRecord(string(text))
}

// until waits for something to come true.
func (l *launched) until(what string, holds func() bool) {
	l.t.Helper()
	for end := time.Now().Add(15 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("waited in vain: %s; stdout %.500q, stderr %.500q", what, l.stdout, l.stderr)
		}
	}
}

func (l *launched) untilPrinted(text string) {
	l.t.Helper()
	l.until("printed "+text, func() bool { return strings.Contains(l.stdout.String(), text) })
}

func (l *launched) status() Status {
	l.t.Helper()
	s, err := l.ask()
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *launched) ask() (Status, error) { return Ask(context.Background(), l.cfg.Socket) }

func (l *launched) signal(s syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(s); err != nil {
		l.t.Fatal(err)
	}
}

// child finds the process of ours with that text in its command line, by the number it has out here.
func (l *launched) child(text string) int {
	l.t.Helper()
	for _, p := range descendants(l.cmd.Process.Pid, scan()) {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if strings.Contains(string(line), text) {
			return p.pid
		}
	}
	l.t.Fatalf("no process has %q in its command line", text)
	return 0
}

// A buffer can be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
