package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// forward is a port here that leads to a host and port as the container sees them.
type forward struct{ from, to string }

var forwardText = regexp.MustCompile(`^(?:(\[[^\]]*\]|[^:\[\]]*):)?([0-9]{1,5}):(\[[^\]]+\]|[^:\[\]]+):([0-9]{1,5})$`)

// parseForward reads [ADDR:]PORT:HOST:PORT. Unless an address is named, nobody else on the network gets in.
func parseForward(text string) (forward, error) {
	m := forwardText.FindStringSubmatch(text)
	if m == nil {
		return forward{}, usage("%q is no forward. Write it as 8080:localhost:9090: a port here, and a host and a port as the app sees them.", text)
	}
	for _, port := range []string{m[2], m[4]} {
		if n, err := strconv.Atoi(port); err != nil || n > 65535 || n == 0 && port == m[4] {
			return forward{}, usage("%q is no port.", port)
		}
	}
	inside := func(host string) string { return strings.Trim(host, "[]") }
	from := inside(m[1])
	switch from {
	case "":
		from = "127.0.0.1"
	case "*":
		from = ""
	}
	return forward{net.JoinHostPort(from, m[2]), net.JoinHostPort(inside(m[3]), m[4])}, nil
}

const maxTunnelled = 256 // connections at once, through one forward

// tunnel carries connections through an ssh connection.
type tunnel struct {
	client *ssh.Client
	say    func(format string, args ...any) // tells the person at the terminal
}

// open listens for each forward, and carries until the context ends. What cannot be listened on is an error, and nothing is carried then.
func (t *tunnel) open(ctx context.Context, forwards []forward) error {
	var all []net.Listener
	for _, f := range forwards {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.from)
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
			return failed("choose another port", "Nothing can be forwarded from %s: %v.", f.from, err)
		}
		all = append(all, l)
	}
	for i, l := range all {
		t.say("Forwarding %s to %s.", l.Addr(), forwards[i].to)
		context.AfterFunc(ctx, func() { _ = l.Close() })
		go t.accept(ctx, l, forwards[i].to)
	}
	return nil
}

func (t *tunnel) accept(ctx context.Context, l net.Listener, to string) {
	places := make(chan struct{}, maxTunnelled)
	for {
		conn, err := l.Accept()
		if err != nil && ctx.Err() == nil {
			t.say("Nothing more is forwarded from %s: %v.", l.Addr(), err)
		}
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
		default:
			t.say("A connection to %s was refused: there are %d already.", to, maxTunnelled)
			_ = conn.Close()
			continue
		}
		go func() {
			defer func() { <-places }()
			if err := t.carry(ctx, conn, to); err != nil && ctx.Err() == nil {
				t.say("A connection to %s failed: %s.", to, clean(err.Error()))
			}
		}()
	}
}

// carry passes bytes both ways. One way may end before the other.
func (t *tunnel) carry(ctx context.Context, here net.Conn, to string) error {
	defer func() { _ = here.Close() }()
	there, err := t.client.DialContext(ctx, "tcp", to)
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
		return errors.New(refused.Message)
	}
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	defer context.AfterFunc(ctx, func() { _ = here.Close() })()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		half, ok := to.(interface{ CloseWrite() error })
		if err != nil || !ok || half.CloseWrite() != nil { // the other way is of no use either
			_ = to.Close()
			_ = from.Close()
		}
	}
	both.Go(func() { pass(there, here) })
	both.Go(func() { pass(here, there) })
	both.Wait()
	return nil
}

// tellInRaw writes lines to a terminal that does not return the carriage by itself.
func tellInRaw(w io.Writer, raw bool) func(string, ...any) {
	end := "\n"
	if raw {
		end = "\r\n"
	}
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, format+end, args...)
	}
}
