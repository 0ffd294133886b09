package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Session is a shell, a line for one, or a program, that somebody runs beside the app.
type Session struct {
	ID            string // by which Signal and Hangup find it; may be empty
	Term, Lang    string // of the person's terminal; may be empty
	Columns, Rows uint16
	Line          string   // runs as the app's main process would, with the buildpacks' environment
	Args          []string // a program that runs as it is; neither is a shell that runs as Line would
	Mark          bool     // say an EndMark on stderr when it has ended, and wait for the end of stdin
}

// EndMark begins what a session says on stderr when it has ended; how many bytes it wrote to stdout follows, in EndCount digits
// and a newline. The other side ends stdin when it has them all, and only then does the session end for Kubernetes.
//
// Without it containerd waits for ever for somebody to read what the command did not, and a stream that breaks on its way is
// taken for the end of a command that succeeded.
func EndMark(id string) string { return "\x00\x00" + id + " " }

// EndCount is the number of digits behind an EndMark.
const EndCount = 20

// Exec runs a session and gives its exit status, 128+n for signal n.
//
// It stays as the parent: Kubernetes leaves a command running whose client has gone, and only a process that we know leads
// to all that belongs to it. The session proper is the child's, so that its terminal works as after a login.
func Exec(s Session) int {
	runtime.GOMAXPROCS(1)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), append(caught(), syscall.SIGINT)...) // what is meant for the session must not end its parent
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)  // without it, what becomes a daemon falls to pid 1
	written := make(chan int64, 1)
	leader, err := s.start(written)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, fs.ErrNotExist) {
			return statusNotFound
		}
		return statusNotExecutable
	}
	if !s.Mark {
		letGo()
	}
	ended := make(chan int, 1)
	go func() { ended <- await(leader) }()
	select {
	case status := <-ended:
		for _, p := range scan() {
			if p.session == leader {
				_ = syscall.Kill(p.pid, syscall.SIGHUP) // who wants to stay says so: nohup, setsid
			}
		}
		if s.Mark && !s.taken(written, stop) {
			break
		}
		return status
	case <-stop:
	}
	sweep()
	return 128 + int(syscall.SIGHUP)
}

func (s Session) start(written chan<- int64) (leader int, err error) {
	cfg, err := Load("")
	if err != nil {
		cfg = Config{} // not a container of ours: a plain shell helps to find out why
	}
	program, argv, err := s.argv(cfg)
	if err != nil {
		return 0, err
	}
	how := &syscall.SysProcAttr{Setsid: true}
	if isTerminal(0) {
		if s.Columns > 0 && s.Rows > 0 {
			resize(0, s.Columns, s.Rows)
		}
		// A terminal belongs to one session at a time.
		if err := ioctl(0, syscall.TIOCNOTTY, 0); err == nil {
			how.Setctty, how.Ctty = true, 0
		}
	}
	out := os.Stdout
	if s.Mark {
		from, to, err := os.Pipe()
		if err != nil {
			return 0, fmt.Errorf("pipe: %w", err)
		}
		defer func() { _ = to.Close() }()
		go passOn(from, written)
		out = to
	}
	leader, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{ //nolint:gosec // G204: running what the person says is the purpose
		Env: environ(os.Environ(), s.environ(cfg)), Files: []uintptr{0, out.Fd(), 2}, Sys: how,
	})
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", program, err)
	}
	return leader, nil
}

// Shells, the better first.
var shells = []string{"/bin/bash", "/usr/bin/bash", "/bin/sh"}

func findShell() string {
	for _, path := range shells {
		if isProgram(path) {
			return path
		}
	}
	return shells[len(shells)-1]
}

func (s Session) argv(cfg Config) (program string, argv []string, err error) {
	if len(s.Args) > 0 {
		program, err = exec.LookPath(s.Args[0])
		if err != nil {
			return "", nil, fmt.Errorf("find %s: %w", s.Args[0], err)
		}
		return program, s.Args, nil
	}
	if !isProgram(cfg.Launcher) {
		cfg.Launcher = ""
	}
	line := s.Line
	if line == "" {
		line = "exec " + findShell() // not as a login shell: that would set PATH anew, without what the buildpacks added
	}
	return cfg.argv(Process{Command: line})
}

// environ is what the session has beside the container's environment: what the main process has, and the person's terminal.
func (s Session) environ(cfg Config) map[string]string {
	own := map[string]string{"SHELL": findShell()}
	for name, value := range cfg.Main.Env {
		own[name] = value
	}
	if home := os.Getenv("HOME"); home == "" || home == "/" {
		if dir, err := os.Getwd(); err == nil {
			own["HOME"] = dir
		}
	}
	if s.Term != "" {
		own["TERM"] = s.Term
	}
	if s.Lang != "" {
		own["LANG"] = s.Lang
	}
	return own
}

// letGo closes our ends of the session's streams: who has gone must be seen to have gone.
func letGo() {
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = syscall.Dup3(null, fd, 0)
	}
	_ = syscall.Close(null)
}

// passOn passes stdout on until nobody has it any more.
func passOn(from *os.File, written chan<- int64) {
	n, _ := io.CopyBuffer(struct{ io.Writer }{os.Stdout}, struct{ io.Reader }{from}, make([]byte, 128<<10)) // whoever read has gone
	_ = from.Close()
	written <- n
}

// taken waits until the other side has all that was written, and says so by ending stdin. False is that we are told to stop.
func (s Session) taken(written <-chan int64, stop <-chan os.Signal) bool {
	var n int64
	select {
	case n = <-written:
	case <-stop:
		return false
	}
	fmt.Fprintf(os.Stderr, "%s%0*d\n", EndMark(s.ID), EndCount, n)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-stop:
		return false
	}
}

// await reaps what falls to us, and tells how the leader has ended.
func await(leader int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return statusNotExecutable // it cannot be: there is no child
		case pid == leader && status.Signaled():
			return 128 + int(status.Signal())
		case pid == leader:
			return status.ExitStatus()
		}
	}
}

// sweep ends everything below us, also what has made itself a daemon: HUP, then KILL. What ends falls to us until nothing is
// left, and is reaped here where await has stopped.
func sweep() {
	begun, s := time.Now(), syscall.SIGHUP
	for told := tell(os.Getpid(), s); told > 0 && time.Since(begun) < sweepTime; told = tell(os.Getpid(), s) {
		time.Sleep(sweepEvery)
		if s = 0; time.Since(begun) > hangupGrace {
			s = syscall.SIGKILL
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func isTerminal(fd int) bool {
	var about syscall.Termios
	return ioctl(fd, syscall.TCGETS, uintptr(unsafe.Pointer(&about))) == nil //nolint:gosec // G103: the kernel writes there
}

func resize(fd int, columns, rows uint16) {
	size := struct{ rows, columns, x, y uint16 }{rows: rows, columns: columns}
	_ = ioctl(fd, syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))) //nolint:gosec // G103: the kernel reads there; a wrong size is no reason to stop
}

func ioctl(fd int, what uintptr, about uintptr) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), what, about); errno != 0 {
		return errno
	}
	return nil
}

// fitID keeps an ID to what cannot be mistaken for anything else.
func fitID(id string) bool {
	return len(id) >= 8 && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-'
	})
}
