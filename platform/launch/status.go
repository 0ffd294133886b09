package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	statusFresh   = 200 * time.Millisecond // asked more often, the answer stays the same
	statusTimeout = time.Second            // for a client that does not read
	askTimeout    = 5 * time.Second
	maxStatus     = 256 << 10
)

// Status is how the processes of a container are.
type Status struct {
	Process   string          `json:"process"`
	Index     int             `json:"index"`
	Time      time.Time       `json:"time"`
	Memory    Memory          `json:"memory"` // of the whole container
	Processes []ProcessStatus `json:"processes"`
}

// Memory is in bytes; 0 is unknown, or no limit.
type Memory struct {
	Usage int64 `json:"usage"`
	Limit int64 `json:"limit"`
}

// ProcessStatus is how one process is, with what it has started and what stayed in its session.
type ProcessStatus struct {
	Sidecar string     `json:"sidecar,omitempty"` // none: the main process
	PID     int        `json:"pid,omitempty"`
	State   State      `json:"state"`
	Started *time.Time `json:"started,omitempty"`
	CPU     int64      `json:"cpu_nanoseconds"`
	RSS     int64      `json:"rss"`              // bytes; pages that processes share count for each
	Memory  int64      `json:"memory,omitempty"` // bytes set aside for it
	Status  *int       `json:"status,omitempty"` // once it has exited
}

// serve answers whoever connects with the status, and hangs up. It reads nothing, so nothing can be said wrong, and
// serves one after the other, so that a thousand clients cost no more than one. Without its socket the app runs too.
func (c *crew) serve() {
	socket, err := new(net.ListenConfig).Listen(context.Background(), "unix", c.cfg.Socket)
	if err != nil {
		return // whoever asks is told that nobody answers
	}
	go func() {
		var last Status
		for {
			conn, err := socket.Accept()
			if err != nil {
				time.Sleep(statusTimeout) // out of files, perhaps not for ever
				continue
			}
			if time.Since(last.Time) > statusFresh {
				last = c.status()
			}
			answer(conn, last)
		}
	}()
}

func answer(conn net.Conn, s Status) {
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(statusTimeout)); err != nil {
		return
	}
	_ = json.NewEncoder(conn).Encode(s) // a client that went away
}

func (c *crew) status() Status {
	all := scan()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Process: c.cfg.Process, Index: c.index, Time: time.Now().UTC(), Memory: c.memory.memory()}
	for _, m := range c.members {
		s.Processes = append(s.Processes, m.seen(all))
	}
	return s
}

// seen sums up the session of a process: every process of it, its children and theirs, but those that left it.
func (m *member) seen(all []kernelProcess) ProcessStatus {
	s := ProcessStatus{Sidecar: m.Name, PID: m.pid, State: m.state, Memory: m.Memory}
	if m.pid != 0 {
		started := m.started.UTC()
		s.Started = &started
	}
	if m.state == Exited {
		s.Status = &m.status
	}
	var cpu time.Duration
	for _, p := range all {
		if m.pid != 0 && p.session == m.pid {
			cpu += p.cpu
			s.RSS += p.rss
		}
	}
	m.cpu = max(m.cpu, cpu) // an orphan takes what it used along when it dies
	s.CPU = int64(m.cpu)
	return s
}

// Ask fetches the status from the launcher of this container. The app's processes could be the ones who answer.
func Ask(ctx context.Context, socket string) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var s Status
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return s, fmt.Errorf("Nobody answers at %s; is this the app's container?: %w", socket, err)
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return s, fmt.Errorf("set deadline: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(conn, maxStatus)).Decode(&s); err != nil {
		return s, fmt.Errorf("read status: %w", err)
	}
	return s, nil
}
