package ssh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	xssh "golang.org/x/crypto/ssh"

	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

const (
	maxLine   = 64 << 10 // of a command: it travels in an address, and a kernel takes 128 KiB
	maxCells  = 10_000
	noStatus  = 255
	otherTerm = "xterm"
)

// fitWord keeps names of terminals, languages and signals to what they are made of.
var fitWord = regexp.MustCompile(`^[A-Za-z0-9._@+-]{1,64}$`)

// A session is one shell or command in the instance.
type session struct {
	visit   *visit
	channel xssh.Channel
	cluster *kube.Cluster
	shell   store.Shell
	id      string

	tty        bool
	term, lang string
	window     kube.Window
	resize     chan kube.Window
	started    bool // or refused: there is one try
	signalling sync.Mutex
}

func (v *visit) session(ctx context.Context, asked xssh.NewChannel) {
	_, _, err := v.enter(ctx, opening, "") // so that a refusal has a sentence
	if err != nil {
		_ = asked.Reject(xssh.Prohibited, sentence(err))
		return
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	v.server.Metrics.sessions.Inc()
	defer v.server.Metrics.sessions.Dec()
	v.tell(channel, true)
	defer v.tell(channel, false)
	ctx, cancel := context.WithCancel(ctx)
	s := &session{visit: v, channel: channel, id: rand.Text(), resize: make(chan kube.Window, 1)}
	var running sync.WaitGroup
	for r := range requests { // until the client closes the channel
		command, ok := s.ask(ctx, r)
		if r.WantReply {
			_ = r.Reply(ok, nil) // it may have gone
		}
		if command != nil {
			running.Go(func() { s.run(ctx, command) })
		}
	}
	cancel()
	running.Wait()
}

func (v *visit) tell(channel xssh.Channel, open bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == nil {
		v.open = map[xssh.Channel]bool{}
	}
	if open {
		v.open[channel] = true
	} else {
		delete(v.open, channel)
	}
}

// ask takes a request, and answers with the command to run once all is known. What is not here is refused: X11, agents.
func (s *session) ask(ctx context.Context, r *xssh.Request) (command []string, ok bool) {
	switch r.Type {
	case "pty-req":
		var p struct {
			Term          string
			Columns, Rows uint32
			Width, Height uint32
			Modes         string
		}
		if s.started || xssh.Unmarshal(r.Payload, &p) != nil {
			return nil, false
		}
		if s.tty, s.term = true, p.Term; !fitWord.MatchString(s.term) {
			s.term = otherTerm
		}
		s.resized(p.Columns, p.Rows)
	case "window-change":
		var p struct{ Columns, Rows, Width, Height uint32 }
		if xssh.Unmarshal(r.Payload, &p) != nil {
			return nil, false
		}
		s.resized(p.Columns, p.Rows)
	case "env":
		var p struct{ Name, Value string }
		if s.started || xssh.Unmarshal(r.Payload, &p) != nil || p.Name != "LANG" || !fitWord.MatchString(p.Value) {
			return nil, false
		}
		s.lang = p.Value
	case "signal":
		var p struct{ Name string }
		if xssh.Unmarshal(r.Payload, &p) != nil || !fitWord.MatchString(p.Name) {
			return nil, false
		}
		s.signal(ctx, p.Name)
	case "shell", "exec", "subsystem":
		var p struct{ Line string }
		if s.started || r.Type != "shell" && xssh.Unmarshal(r.Payload, &p) != nil || len(p.Line) > maxLine || r.Type == "subsystem" && p.Line != copying {
			return nil, false
		}
		s.started = true
		if !s.enter(ctx, map[string]string{"shell": typing, "exec": running, "subsystem": copying}[r.Type]) {
			return nil, false
		}
		return s.command(r.Type, p.Line), true
	default:
		return nil, false
	}
	return nil, true
}

// enter is where a session begins: who may not begin it any more reads why.
func (s *session) enter(ctx context.Context, kind string) bool {
	shell, cluster, err := s.visit.enter(ctx, kind, "")
	if err != nil {
		fmt.Fprintf(s.channel.Stderr(), "%s\r\n", sentence(err))
		return false
	}
	s.shell, s.cluster = shell, cluster
	return true
}

// command is how launch is called in the instance.
func (s *session) command(kind, line string) []string {
	c := []string{kube.Launcher, "exec", "--id", s.id}
	if !s.tty {
		c = append(c, "--mark")
	} else {
		c = append(c, "--term", s.term, "--size", fmt.Sprintf("%dx%d", s.window.Columns, s.window.Rows))
	}
	if s.lang != "" {
		c = append(c, "--lang", s.lang)
	}
	switch {
	case kind == "subsystem":
		return append(c, "--", kube.SFTP)
	case kind == "exec" && line != "":
		return append(c, "-c", line)
	}
	return c
}

// resized keeps the latest size for the terminal. Nobody else sends, so there is room after one is taken out.
func (s *session) resized(columns, rows uint32) {
	s.window = kube.Window{Columns: uint16(min(columns, maxCells)), Rows: uint16(min(rows, maxCells))}
	select {
	case <-s.resize:
	default:
	}
	s.resize <- s.window
}

// run stays with the command until it has ended, and passes its status on.
func (s *session) run(ctx context.Context, command []string) {
	in, typed := io.Pipe()
	go func() {
		_, err := io.Copy(typed, s.channel) // until the client ends it, or the command
		if !s.tty {                         // nobody hangs up a terminal by typing nothing more, and containerd would drop its output
			typed.CloseWithError(err)
		}
	}()
	out := newOutput(s.channel, s.channel.Stderr(), s.id, func() { _ = typed.Close() })
	status, err := s.cluster.Exec(ctx, s.shell.Namespace, s.shell.Pod, kube.Exec{
		Command: command, Stdin: in, Stdout: out, Stderr: (*outputErrs)(out), TTY: s.tty, Resize: s.resize,
	})
	_ = typed.Close()
	out.flush()
	if seen, complete := out.whole(); err == nil && !s.tty && (seen && !complete || !seen && status == 0) {
		err = errors.New("its output broke off") // what is cut looks to Kubernetes like an end
	}
	if err != nil {
		s.visit.hangup(ctx, s.cluster, s.shell, s.id)
		status = noStatus
		if ctx.Err() == nil {
			s.visit.log.Warn("a command was lost", "app", s.shell.App.GUID, "pod", s.shell.Pod, "error", err)
			fmt.Fprintf(s.channel.Stderr(), "The command could not be run, or the instance ended. See: proa app %s\r\n", s.shell.App.Name)
		}
	}
	_ = s.channel.CloseWrite() // the client may have gone, here and below
	_, _ = s.channel.SendRequest("exit-status", false, xssh.Marshal(struct{ Status uint32 }{uint32(status)}))
	_ = s.channel.Close()
}

// signal passes a signal on. One is under way at a time: a client that sends more has them dropped.
func (s *session) signal(ctx context.Context, name string) {
	if s.cluster == nil || !s.signalling.TryLock() {
		return
	}
	s.visit.server.endings.Go(func() {
		defer s.signalling.Unlock()
		s.visit.inside(ctx, s.cluster, s.shell, "signal", s.id, name)
	})
}
