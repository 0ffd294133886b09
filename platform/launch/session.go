package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	sessionAppears = 3 * time.Second // between the order to run a session and its first process
	hangupGrace    = 3 * time.Second // between HUP and KILL
	sweepTime      = 8 * time.Second // from HUP until what withstands KILL is left alone
	sweepEvery     = 50 * time.Millisecond
	hangupTime     = sweepTime + time.Second
)

var errNoSession = errors.New("There is no such session, or it has ended.")

// signals that a person may send, by the names that SSH has for them.
var signals = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP, "ILL": syscall.SIGILL,
	"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE, "QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

// Signal sends a signal to what a session runs: to the foreground of its terminal, or to all of it where it has none.
func Signal(id, name string) error {
	s, known := signals[name]
	if !known {
		return fmt.Errorf("%q is not the name of a signal.", name)
	}
	parent, err := find(id)
	if err != nil {
		return err
	}
	all := scan()
	for _, leader := range all {
		if leader.parent != parent || leader.session != leader.pid {
			continue
		}
		if leader.foreground > 0 {
			return syscall.Kill(-leader.foreground, s)
		}
		for _, p := range all {
			if p.session == leader.pid {
				_ = syscall.Kill(p.pid, s) // it may have ended meanwhile
			}
		}
		return nil
	}
	return errNoSession
}

// Hangup ends a session whose person has gone, with all that it has started. It waits for one that is only about to begin,
// and until it has ended.
func Hangup(id string) error {
	parent, err := find(id)
	for end := time.Now().Add(sessionAppears); errors.Is(err, errNoSession) && time.Now().Before(end); parent, err = find(id) {
		time.Sleep(sweepEvery)
	}
	if err != nil {
		return err
	}
	if err := syscall.Kill(parent, syscall.SIGTERM); err != nil {
		return fmt.Errorf("The session cannot be ended: %w", err)
	}
	for end := time.Now().Add(hangupTime); time.Now().Before(end); time.Sleep(sweepEvery) {
		if again, _ := find(id); again != parent { // 0 where there is none
			return nil
		}
	}
	return syscall.Kill(parent, syscall.SIGKILL)
}

// tell sends a signal to everything below a process, and counts it. Signal 0 only counts.
func tell(parent int, s syscall.Signal) int {
	below := descendants(parent, scan())
	for _, p := range below {
		_ = syscall.Kill(p.pid, s) // it may have ended meanwhile
		if s == syscall.SIGHUP {
			_ = syscall.Kill(p.pid, syscall.SIGCONT) // what is stopped takes no signal
		}
	}
	return len(below)
}

// find is the process that was started as `launcher exec --id ID` or `launcher dial --id ID`. Anybody in the container could
// call a process so: it would be theirs.
func find(id string) (int, error) {
	if !fitID(id) {
		return 0, fmt.Errorf("%q is not the id of a session.", id)
	}
	var found []kernelProcess
	for _, p := range scan() {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if err != nil {
			continue
		}
		if args := bytes.SplitN(line, []byte{0}, 5); len(args) == 5 && (string(args[1]) == "exec" || string(args[1]) == "dial") && string(args[2]) == "--id" && string(args[3]) == id {
			found = append(found, p)
		}
	}
	for _, p := range found { // a child is called as its parent until it has become what it is to be
		if !slices.ContainsFunc(found, func(other kernelProcess) bool { return other.pid == p.parent }) {
			return p.pid, nil
		}
	}
	return 0, errNoSession
}
