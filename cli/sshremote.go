package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// remote is a shell or a command on the other side of an ssh connection.
type remote struct {
	session *session
	client  *ssh.Client
	app     string // as a shell reads its name
	command string // none: a shell
	pty     bool
}

const (
	keepAliveEvery = 30 * time.Second
	lastWait       = 3 * time.Second // for what was told to end

	keepAliveRequest = "keepalive@cloudfoundry.org"

	killed, terminated = 128 + 9, 128 + 15 // statuses
)

// keepAlive notices a server that has gone, and keeps firewalls in between from forgetting the connection.
func (r *remote) keepAlive(ctx context.Context) {
	for r.session.wait(ctx, keepAliveEvery) == nil {
		answered := make(chan error, 1)
		go func() {
			_, _, err := r.client.SendRequest(keepAliveRequest, true, nil)
			answered <- err
		}()
		select {
		case <-ctx.Done():
			return
		case err := <-answered:
			if err == nil {
				continue
			}
		case <-time.After(keepAliveEvery):
		}
		_ = r.client.Close() // and with it, whoever waits for something from there
		return
	}
}

// linger lets forwards work until Ctrl-C.
func (r *remote) linger(ctx context.Context) error {
	over := make(chan error, 1)
	go func() { over <- r.client.Wait() }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-over:
		return r.broken(err)
	}
}

func (r *remote) broken(err error) error {
	p := failed("proa app "+r.app+"    # shows how it is; then try again", "The connection to the app broke.")
	p.cause = err
	return p
}

// run runs the command, or a shell, and ends with its exit status.
func (r *remote) run(ctx context.Context) error {
	shell, err := r.client.NewSession()
	if err != nil {
		return r.notOpened(err)
	}
	defer func() { _ = shell.Close() }()
	shell.Stdout, shell.Stderr = r.session.Out, r.session.Err
	in, err := shell.StdinPipe()
	if err != nil {
		return err
	}
	restore := func() {}
	if r.pty {
		if restore, err = r.terminal(ctx, shell); err != nil {
			return err
		}
	}
	defer restore()
	if r.command == "" {
		err = shell.Shell()
	} else {
		err = shell.Start(r.command)
	}
	if err != nil {
		return r.notOpened(err)
	}
	r.feed(in, restore)
	return r.await(ctx, shell)
}

func (r *remote) notOpened(err error) error {
	if errors.Is(err, io.EOF) {
		return r.broken(err)
	}
	p := failed("proa app shows whether the instance runs; try again", "The ssh server opened no shell: %s.", err)
	p.cause = err
	return p
}

// feed passes what is typed, and that nothing more will come.
func (r *remote) feed(in io.WriteCloser, restore func()) {
	go func() {
		defer func() {
			if p := recover(); p != nil { // nobody else puts the terminal back then
				restore()
				panic(p)
			}
		}()
		_, _ = io.Copy(in, r.session.In) // a remote command that reads no more ends by itself
		_ = in.Close()
	}()
}

// await waits for the end. Ctrl-C, which at a terminal is a key like any other, is passed on as a signal; the second one ends us.
func (r *remote) await(ctx context.Context, shell *ssh.Session) error {
	over := make(chan error, 1)
	go func() { over <- shell.Wait() }()
	var err error
	select {
	case err = <-over:
	case <-ctx.Done():
		_ = shell.Signal(ssh.SIGINT)
		select {
		case err = <-over:
		case <-time.After(lastWait):
			return ctx.Err()
		}
	}
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		if r.command == "" && (exit.ExitStatus() == killed || exit.ExitStatus() == terminated) {
			fmt.Fprintf(r.session.Err, "\r\nThe shell was ended from outside: the instance has probably ended. Next: proa app %s\r\n", r.app)
		}
		return quiet(exit.ExitStatus())
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if _, _, gone := r.client.SendRequest(keepAliveRequest, true, nil); gone == nil {
		return failed("proa app "+r.app, "The instance has ended.")
	}
	return r.broken(err)
}

var modes = ssh.TerminalModes{ssh.ECHO: 1, ssh.TTY_OP_ISPEED: 115200, ssh.TTY_OP_OSPEED: 115200}

// terminal asks for a terminal there that is as large as the one here, and lets every key here through to it.
func (r *remote) terminal(ctx context.Context, shell *ssh.Session) (restore func(), err error) {
	columns, rows := 80, 24
	if r.session.InTTY {
		if c, l := r.session.Size(); c > 0 && l > 0 {
			columns, rows = c, l
		}
	}
	kind := r.session.Getenv("TERM")
	if !plainWord.MatchString(kind) {
		kind = "xterm"
	}
	if err := shell.RequestPty(kind, rows, columns, modes); err != nil {
		return nil, failed("proa ssh -T    # goes without", "The ssh server gives no terminal: %s.", err)
	}
	if !r.session.InTTY {
		return func() {}, nil
	}
	before, err := r.session.Raw()
	if err != nil {
		return nil, fmt.Errorf("prepare terminal: %w", err)
	}
	sizes, stop := r.session.Resized()
	within, cancel := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-within.Done():
				return
			case <-sizes:
				if columns, rows := r.session.Size(); columns > 0 && rows > 0 {
					_ = shell.WindowChange(rows, columns) // one that has ended needs no size
				}
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		stop()
		before()
	}), nil
}
