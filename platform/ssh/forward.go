package ssh

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/launch"
)

// fitHost is a name or an address, of which only the instance knows what it means.
var fitHost = regexp.MustCompile(`^[A-Za-z0-9._:%-]{1,255}$`)

// lastWords is how long a connection in the instance has to end by itself after its client has gone.
const lastWords = time.Second

// forward connects a channel with an address that the instance reaches. The connection is made there, by launch: so the
// network policy of the app's space holds, and names mean what they mean to the app.
func (v *visit) forward(ctx context.Context, asked xssh.NewChannel) {
	var p struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if xssh.Unmarshal(asked.ExtraData(), &p) != nil || !fitHost.MatchString(p.Host) || p.Port == 0 || p.Port > 65535 {
		_ = asked.Reject(xssh.ConnectionFailed, "This is not an address.")
		return
	}
	target := net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port)))
	shell, cluster, err := v.enter(ctx, forwarding, target)
	if err != nil {
		_ = asked.Reject(xssh.Prohibited, sentence(err))
		return
	}
	t := newTunnel()
	id, ended := rand.Text(), make(chan struct{})
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(ended)
		_, err := cluster.Exec(within, shell.Namespace, shell.Pod, kube.Exec{
			Command: []string{kube.Launcher, "dial", "--id", id, "--", target},
			Stdin:   (*tunnelIn)(t), Stdout: (*tunnelOut)(t), Stderr: (*tunnelWords)(t),
		})
		if err != nil {
			v.log.Debug("a tunnel was lost", "app", shell.App.GUID, "pod", shell.Pod, "error", err)
			v.hangup(ctx, cluster, shell, id)
		}
	}()
	t.join(asked, ended)
	cancel()
	<-ended
}

// A tunnel is a channel and the process in the instance that holds its connection. What that process reads and writes waits
// until the channel is open.
type tunnel struct {
	opened    chan struct{} // the channel is, or never will be
	channel   xssh.Channel
	connected chan struct{}
	complete  chan struct{} // the client was sent all that there is
	writing   sync.Mutex    // to the channel

	mu    sync.Mutex
	words []byte // that launch has said and that are not understood yet
	out   int64  // bytes that the client was sent
	end   int64  // bytes after which nothing comes; -1 until that is known
}

func newTunnel() *tunnel {
	return &tunnel{opened: make(chan struct{}), connected: make(chan struct{}), complete: make(chan struct{}), end: -1}
}

// join opens the channel when there is a connection, and stays until one of them has gone.
func (t *tunnel) join(asked xssh.NewChannel, ended <-chan struct{}) {
	select {
	case <-t.connected:
	case <-ended:
		close(t.opened)
		_ = asked.Reject(xssh.ConnectionFailed, t.why())
		return
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		close(t.opened)
		return
	}
	t.channel = channel
	close(t.opened)
	closed := make(chan struct{})
	go func() {
		xssh.DiscardRequests(requests)
		close(closed)
	}()
	var ending sync.WaitGroup
	ending.Go(func() { t.finish(closed) })
	select {
	case <-ended:
	case <-closed:
		select {
		case <-ended:
		case <-time.After(lastWords):
		}
	}
	_ = channel.Close()
	<-closed // until then it takes room
	ending.Wait()
}

const maxWords = 4 << 10

// why is what launch said last, fit to be shown.
func (t *tunnel) why() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, string(t.words))
	if text = strings.TrimSpace(text); text == "" {
		return "The instance cannot be reached."
	}
	return text
}

// finish closes our half of the channel when all that will come has been sent. What launch says is not believed to be its own:
// the app can write to it too, as often as it likes. So this waits once for a tunnel, however much is said.
func (t *tunnel) finish(closed <-chan struct{}) {
	select {
	case <-t.complete:
	case <-closed:
		return
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	_ = t.channel.CloseWrite() // it may be closed already
}

// count is called with the lock held, after what it looks at has changed.
func (t *tunnel) count() {
	if t.end >= 0 && t.out >= t.end && !isClosed(t.complete) {
		close(t.complete)
	}
}

type tunnelIn tunnel

func (t *tunnelIn) Read(b []byte) (int, error) {
	if <-t.opened; t.channel == nil {
		return 0, io.EOF
	}
	return t.channel.Read(b)
}

type tunnelOut tunnel

func (t *tunnelOut) Write(b []byte) (int, error) {
	if <-t.opened; t.channel == nil {
		return 0, io.ErrClosedPipe
	}
	t.writing.Lock()
	n, err := t.channel.Write(b)
	t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out += int64(n)
	(*tunnel)(t).count()
	return n, err
}

type tunnelWords tunnel

func (t *tunnelWords) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words = append(t.words, b[:min(len(b), maxWords-len(t.words))]...)
	for {
		line, rest, whole := bytes.Cut(t.words, []byte{'\n'})
		word, number, _ := strings.Cut(string(line), " ")
		if !whole || word != launch.DialConnected && word != launch.DialEnd {
			break
		}
		t.words = rest
		if word == launch.DialEnd {
			t.end, _ = strconv.ParseInt(number, 10, 64) // 0 ends it: nothing else can be meant
		} else if !isClosed(t.connected) {
			close(t.connected)
		}
	}
	(*tunnel)(t).count()
	return len(b), nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
