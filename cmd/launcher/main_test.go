package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform/launch"
)

// TestMain lets the test binary play the launcher.
func TestMain(m *testing.M) {
	if os.Getenv("LAUNCHER_TEST") != "" {
		main()
	}
	os.Exit(m.Run())
}

func launcher(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "LAUNCHER_TEST=1")
	return cmd
}

// TestSession runs an app from a file, asks how it is, and stops it.
func TestSession(t *testing.T) {
	dir := t.TempDir()
	socket := "@proa-launcher-test-" + filepath.Base(dir) + time.Now().Format("150405.000000")
	cfg := launch.Config{
		Process: "web", Socket: socket, TerminationLog: filepath.Join(dir, "log"),
		Main:     launch.Process{Command: "trap 'exit 6' TERM; while :; do sleep 0.05; done"},
		Sidecars: []launch.Process{{Name: "side", Args: []string{"sleep", "1000"}}},
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "launch.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.TerminationLog, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	app := launcher("run", file)
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	var s launch.Status
	for range 200 {
		out, _ := launcher("status", socket).Output() // fails until the launcher listens
		if json.Unmarshal(out, &s) == nil && len(s.Processes) == 2 && s.Processes[1].State == launch.Running {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(s.Processes) != 2 || s.Processes[0].State != launch.Running || s.Processes[1].Sidecar != "side" {
		t.Errorf("got %+v", s)
	}
	time.Sleep(100 * time.Millisecond) // for the trap
	if err := app.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = app.Wait() // its exit code is read from the state
	message, err := os.ReadFile(cfg.TerminationLog)
	if err != nil {
		t.Fatal(err)
	}
	r, err := launch.DecodeRecord(string(message))
	if err != nil || r.Cause != launch.CauseStopped || r.Status != 6 || app.ProcessState.ExitCode() != 6 {
		t.Errorf("got exit code %d and %+v, %v", app.ProcessState.ExitCode(), r, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Setenv(launch.EnvConfig, `{"process":"web"}`)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "launcher status"},
		{[]string{"dance"}, exitUsage, "launcher status"},
		{[]string{"run", "a", "b"}, exitUsage, "launcher status"},
		{[]string{"run"}, exitConfig, "no command"},
		{[]string{"run", "/no/such/file"}, exitConfig, "cannot be read"},
		{[]string{"status", "@proa-nobody-is-here"}, exitUnavailable, "Nobody answers"},
		{[]string{"signal", "only-an-id"}, exitUsage, "launcher status"},
		{[]string{"signal", "no-such-session", "INT"}, exitUnavailable, "no such session"},
		{[]string{"signal", "no-such-session", "DANCE"}, exitUnavailable, "not the name of a signal"},
		{[]string{"hangup", "*"}, exitUnavailable, "not the id of a session"},
		{[]string{"dial"}, exitUsage, "launcher status"},
		{[]string{"dial", "--id", "some-session", "127.0.0.1:1"}, exitUnavailable, "connection refused"},
		{[]string{"exec", "--dance"}, exitUsage, "launcher status"},
		{[]string{"exec", "-c", "true", "--", "true"}, exitUsage, "launcher status"},
		{[]string{"exec", "--id", "some-session", "--", "/no/such/program"}, 127, "no such file"},
		{[]string{"exec", "--size", "80x24", "--lang", "C", "--", "sh", "-c", "echo $LANG; exit 3"}, 3, "C\n"},
		{[]string{"help"}, 0, "launcher status"},
	} {
		cmd := launcher(test.args...)
		out, _ := cmd.CombinedOutput() // its exit code is read from the state
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.want) {
			t.Errorf("%q: got exit code %d and %s", test.args, code, out)
		}
	}
}
