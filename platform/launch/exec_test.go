package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// playSession is `launcher exec --id ID MARK LINE`, as cmd/launcher calls it.
func playSession(args []string) {
	switch args[0] {
	case "exec":
		os.Exit(Exec(Session{ID: args[2], Mark: args[3] == "mark", Line: args[4], Term: "vt100"}))
	case "dial":
		must(Dial(context.Background(), args[3]))
	}
}

// session is a session that is not started yet.
func session(t *testing.T, id, mark, line string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "exec", "--id", id, mark, line)
	cmd.Env = append(append(os.Environ(), "LAUNCH_TEST=session"), env...)
	return cmd
}

func newID(t *testing.T) string {
	return fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ReplaceAll(strconv.FormatInt(time.Now().UnixNano(), 36), "-", ""))
}

func TestSessionStatus(t *testing.T) {
	for line, want := range map[string]int{"exit 7": 7, "kill -9 $$": 137, "exec /no/such/program": 127, "true": 0} {
		cmd := session(t, newID(t), "", line)
		_ = cmd.Run() // its status is read from the state
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: got %d", line, got)
		}
	}
}

func TestSessionEnvironment(t *testing.T) {
	cmd := session(t, newID(t), "", `echo "$CANARY $OWN $TERM ${PROA_LAUNCH-none} $HOME"`, EnvConfig+`={"process":"web","launcher":"/no/such/launcher","main":{"command":"x","env":{"OWN":"own"}}}`, "CANARY=sings", "HOME=/")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if want := "sings own vt100 none " + cmd.Dir + "\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestSessionMark leaves most of its stdin unread.
func TestSessionMark(t *testing.T) {
	id := newID(t)
	cmd := session(t, id, "mark", "head -c 5; echo words >&2; exit 4")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := in.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
		t.Errorf("it took %d, %v", n, err)
	}
	want := "words\n" + EndMark(id) + "00000000000000000005\n"
	said := make([]byte, len(want))
	if _, err := io.ReadFull(errs, said); err != nil || string(said) != want {
		t.Errorf("it said %q, %v", said, err)
	}
	_ = in.Close()
	_ = cmd.Wait() // its status is read from the state
	if cmd.ProcessState.ExitCode() != 4 || out.Len() != 5 {
		t.Errorf("it ended with %s and said %d bytes", cmd.ProcessState, out.Len())
	}
}

// left counts the processes that were started with this argument.
func left(argument string) int {
	n := 0
	for _, p := range scan() {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if bytes.HasPrefix(line, []byte("sleep\x00"+argument+"\x00")) {
			n++
		}
	}
	return n
}

func until(t *testing.T, what string, good func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !good(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 15 s:", what)
		}
	}
}

// TestHangup ends what does not want to end, and what has made itself a daemon.
func TestHangup(t *testing.T) {
	id, mark := newID(t), strconv.Itoa(100000+os.Getpid())
	cmd := session(t, id, "", fmt.Sprintf("trap '' HUP TERM; setsid sleep %[1]s & (setsid sh -c 'sleep %[1]s; true' &) ; sleep %[1]s; true", mark))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "three processes", func() bool { return left(mark) == 3 })
	begun := time.Now()
	if err := Hangup(id); err != nil {
		t.Error(err)
	}
	if n, took := left(mark), time.Since(begun); n != 0 || took > sweepTime || took < hangupGrace {
		t.Errorf("after %s %d processes are left", took, n)
	}
	_ = cmd.Wait() // it was ended
	if cmd.ProcessState.ExitCode() != 129 {
		t.Errorf("it ended with %s", cmd.ProcessState)
	}
	if err := Hangup(id); err == nil {
		t.Error("a session that has ended can be ended")
	}
	if err := Hangup("../../etc"); err == nil {
		t.Error("anything is an id")
	}
}

// TestHangupBeforeItBegins looks for a session that is on its way.
func TestHangupBeforeItBegins(t *testing.T) {
	id, mark := newID(t), strconv.Itoa(200000+os.Getpid())
	ended := make(chan error, 1)
	go func() { ended <- Hangup(id) }()
	time.Sleep(500 * time.Millisecond)
	cmd := session(t, id, "", "sleep "+mark)
	if err := cmd.Run(); err == nil {
		t.Error("it ended by itself")
	}
	if err := <-ended; err != nil || left(mark) != 0 {
		t.Errorf("got %v, and %d are left", err, left(mark))
	}
}

// TestLogout leaves what wants to stay, and nothing else.
func TestLogout(t *testing.T) {
	stays, goes := strconv.Itoa(300000+os.Getpid()), strconv.Itoa(400000+os.Getpid())
	cmd := session(t, newID(t), "", fmt.Sprintf("nohup sleep %s >/dev/null 2>&1 & sleep %s & sleep 0.3; exit 6", stays, goes))
	_ = cmd.Run() // its status is read from the state
	until(t, "one process", func() bool { return left(goes) == 0 })
	if cmd.ProcessState.ExitCode() != 6 || left(stays) != 1 {
		t.Errorf("it ended with %s, and %d stay", cmd.ProcessState, left(stays))
	}
	for _, p := range scan() {
		if line, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline"); bytes.HasPrefix(line, []byte("sleep\x00"+stays)) {
			proc, _ := os.FindProcess(p.pid)
			_ = proc.Kill()
		}
	}
}

func TestSignal(t *testing.T) {
	id := newID(t)
	cmd := session(t, id, "", `trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"usr1", "WINCH", ""} {
		if err := Signal(id, wrong); err == nil {
			t.Errorf("%q is a signal", wrong)
		}
	}
	if err := Signal(id, "USR1"); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // its status is read from the state
	if cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("it ended with %s", cmd.ProcessState)
	}
}

// TestDial ends one direction after the other.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("hello"))
		_ = conn.(*net.TCPConn).CloseWrite()
		text, _ := io.ReadAll(conn)
		got <- string(text)
		_ = conn.Close()
	}()
	cmd := exec.Command(os.Args[0], "dial", "--id", newID(t), l.Addr().String())
	cmd.Env = append(os.Environ(), "LAUNCH_TEST=session")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	want := DialConnected + "\n" + DialEnd + " 5\n"
	said := make([]byte, len(want))
	if _, err := io.ReadFull(errs, said); err != nil || string(said) != want {
		t.Errorf("it said %q, %v", said, err)
	}
	if _, err := in.Write([]byte("back")); err != nil {
		t.Error(err)
	}
	_ = in.Close()
	if text := <-got; text != "back" {
		t.Errorf("the other side got %q", text)
	}
	if err := cmd.Wait(); err != nil || out.String() != "hello" {
		t.Errorf("it ended with %v and %q", err, &out)
	}
}
