package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/proa-dev/proa/platform/store"
)

func entry(target string, refused bool) store.Entry {
	return store.Entry{Kind: forwarding, Target: target, Refused: refused}
}

// ask is a channel that a client wants to open, and what the client has of it once it is open.
func ask(t *testing.T) (xssh.NewChannel, <-chan xssh.Channel) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &xssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(key)
	asked := make(chan xssh.NewChannel, 1)
	go func() {
		defer close(asked)
		here, err := l.Accept()
		if err != nil {
			return
		}
		_, channels, requests, err := xssh.NewServerConn(here, config)
		if err != nil {
			return
		}
		go xssh.DiscardRequests(requests)
		asked <- <-channels
	}()
	conn, channels, requests, err := xssh.NewClientConn(there, "", &xssh.ClientConfig{HostKeyCallback: xssh.FixedHostKey(key.PublicKey())})
	if err != nil {
		t.Fatal(err)
	}
	client := xssh.NewClient(conn, channels, requests)
	opened := make(chan xssh.Channel, 1)
	go func() {
		channel, requests, err := client.OpenChannel("direct-tcpip", nil)
		if err == nil {
			go xssh.DiscardRequests(requests)
		}
		opened <- channel
	}()
	t.Cleanup(func() { _ = client.Close() })
	c := <-asked
	if c == nil {
		t.Fatal("there is no connection")
	}
	return c, opened
}

// An app writes what it likes to the stderr of launch, one byte at a time, while the client does not read.
func TestWordsOfATunnelCostNothing(t *testing.T) {
	asked, opened := ask(t)
	tunnel, ended, joined := newTunnel(), make(chan struct{}), make(chan struct{})
	go func() {
		tunnel.join(asked, ended)
		close(joined)
	}()
	say := func(words string) {
		if n, err := (*tunnelWords)(tunnel).Write([]byte(words)); n != len(words) || err != nil {
			t.Errorf("%q: %d, %v", words, n, err)
		}
	}
	say("connected\n")
	client := <-opened
	const size = 4 << 20 // more than a client is sent that does not read
	wrote := make(chan error, 1)
	go func() {
		_, err := (*tunnelOut)(tunnel).Write(make([]byte, size))
		wrote <- err
	}()
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 10_000 {
		for _, b := range "end 0\n" {
			say(string(b))
		}
	}
	for range 10_000 {
		say("x")
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("there were %d goroutines, and are %d", before, after)
	}
	if n, err := io.Copy(io.Discard, client); n != size-1 || err != nil {
		t.Errorf("the client read %d bytes, %v", n, err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	close(ended)
	select {
	case <-joined:
	case <-time.After(10 * time.Second):
		t.Error("the tunnel does not end")
	}
}
