package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// State of a process as the status tells it.
type State string

// A process is pending until it is started, and stopping from when it was asked to end until it has.
const (
	Pending  State = "pending"
	Running  State = "running"
	Stopping State = "stopping"
	Exited   State = "exited"
)

// Exit statuses of what could not be started, as shells have them.
const (
	statusNotExecutable = 126
	statusNotFound      = 127
	statusMisconfigured = 78 // EX_CONFIG
)

// A member is one process of the crew: the main one, which has no name, or a sidecar.
type member struct {
	Process
	pid     int
	state   State
	started time.Time
	ended   time.Time
	status  int            // exit status, 128+n for signal n
	signal  syscall.Signal // that ended it
	reason  string         // a sentence
	cpu     time.Duration  // the most that was seen, so that it never falls
}

// start runs the process in a session of its own, so that a signal to its group reaches what it has started too.
// It does not use os.StartProcess: an os.Process wants to be waited for, and there is one wait loop.
func (c *crew) start(m *member) error {
	program, argv, err := c.cfg.argv(m.Process)
	if err != nil {
		return err
	}
	files, closeAll, err := c.files(m)
	defer closeAll()
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec(program, argv, &syscall.ProcAttr{ //nolint:gosec // G204: running the app's commands is the purpose
		Env:   environ(os.Environ(), m.Env),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.pid, m.state, m.started = pid, Running, time.Now()
	return nil
}

// files are the stdin, stdout and stderr of a process. A main process without sidecars gets ours: nobody else writes
// lines there, so nothing has to stand between it and its log.
func (c *crew) files(m *member) (files []uintptr, closeAll func(), err error) {
	var mine []int
	closeAll = func() {
		for _, fd := range mine {
			_ = syscall.Close(fd)
		}
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, closeAll, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	mine = append(mine, null)
	if len(c.cfg.Sidecars) == 0 {
		return []uintptr{uintptr(null), os.Stdout.Fd(), os.Stderr.Fd()}, closeAll, nil
	}
	mark := ""
	if m.Name != "" {
		mark = Mark(m.Name)
	}
	files = []uintptr{uintptr(null)}
	for _, to := range []*sink{c.out, c.err} {
		s, fd, err := newStream(to, mark)
		if err != nil {
			return nil, closeAll, err
		}
		mine, files = append(mine, fd), append(files, uintptr(fd))
		c.streams = append(c.streams, s)
		c.passing.Go(s.pass)
	}
	return files, closeAll, nil
}

// failed makes an exit of a start that did not happen.
func (m *member) failed(err error) {
	m.state, m.ended, m.status = Exited, time.Now(), statusNotExecutable
	if errors.Is(err, fs.ErrNotExist) {
		m.status = statusNotFound
	}
	m.reason = fmt.Sprintf("The process could not be started: %s. Check its command.", clip(err.Error(), maxReason))
}

func (m *member) exited(status syscall.WaitStatus, usage syscall.Rusage) {
	m.state, m.ended = Exited, time.Now()
	m.cpu = max(m.cpu, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()))
	if status.Signaled() {
		m.signal = status.Signal()
		m.status = 128 + int(m.signal)
		m.reason = fmt.Sprintf("The process was ended by signal %d (%s).", int(m.signal), m.signal)
		return
	}
	m.status = status.ExitStatus()
	m.reason = fmt.Sprintf("The process exited by itself with status %d.", m.status)
}

func (m *member) alive() bool { return m.pid != 0 && m.state != Exited }

// killed tells whether KILL ended it, or a child that its shell then spoke for.
func (m *member) killed() bool { return m.status == 128+int(syscall.SIGKILL) }
