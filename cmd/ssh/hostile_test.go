package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/proa-dev/proa/platform"
)

// TestHostile does what no honest client does. After each the server lets honest ones in, and has not grown.
func TestHostile(t *testing.T) {
	w := newWorld(t)
	w.shop()
	ann := w.hire("ann", platform.SpaceDeveloper, w.space)
	honest := func(t *testing.T) {
		t.Helper()
		if out, err := w.ssh(ann, "echo well").CombinedOutput(); err != nil || string(out) != "well\n" {
			t.Errorf("an honest client gets %v\n%s", err, out)
		}
	}
	honest(t)
	before := w.memory()
	for _, test := range []struct {
		name string
		try  func(*testing.T, *world, person)
	}{{"garbage", testGarbage}, {"half-open", testHalfOpen}, {"channels", testChannels}, {"flood", testFlood}, {"requests", testRequests}, {"signals", testSignals}} {
		t.Run(test.name, func(t *testing.T) {
			in := *w
			in.T = t
			test.try(t, &in, ann)
			honest(t)
		})
	}
	after := w.memory()
	t.Logf("the server has %d MB, and had %d MB", after>>20, before>>20)
	if after > before+150<<20 {
		t.Errorf("the server grew from %d to %d bytes", before, after)
	}
	w.until(30*time.Second, "nothing left", func() error { return w.inside("/proa/", 1) }) // pid 1
}

// memory is what the server has now.
func (w *world) memory() int64 {
	w.Helper()
	text := string(get[[]byte](w)(os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.server.cmd.Process.Pid))))
	pages := get[int64](w)(strconv.ParseInt(strings.Fields(text)[1], 10, 64))
	return pages * int64(os.Getpagesize())
}

func testGarbage(t *testing.T, w *world, _ person) {
	noise := make([]byte, 64<<10)
	_, _ = rand.Read(noise) // never fails
	for _, first := range []string{"", "SSH-2.0-x\r\n", "GET / HTTP/1.1\r\n\r\n", "SSH-1.5-old\r\n", strings.Repeat("x", 1<<20)} {
		conn := get[net.Conn](t)(net.Dial("tcp", w.server.at))
		must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		_, _ = conn.Write(append([]byte(first), noise...)) // it may hang up before the end
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") && first != "" {
			t.Errorf("%.20q: the server waits for more", first)
		}
		_ = conn.Close()
	}
}

// testHalfOpen opens connections that say nothing. One address has room for 20, and 20 s.
func testHalfOpen(t *testing.T, w *world, ann person) {
	code := w.code(ann)
	known := w.dial(t, code) // who is in stays in
	begun := time.Now()
	var all []net.Conn
	for range 200 {
		conn, err := net.Dial("tcp", w.server.at)
		if err != nil {
			break // it does not listen any faster
		}
		all = append(all, conn)
	}
	var open, left int
	var mu sync.Mutex
	var waiting sync.WaitGroup
	for _, conn := range all {
		waiting.Go(func() {
			_ = conn.SetDeadline(begun.Add(5 * time.Second))
			n, _ := conn.Read(make([]byte, 64)) // its version, if it was let in
			mu.Lock()
			defer mu.Unlock()
			if n > 0 {
				open++
			}
			_ = conn.SetDeadline(begun.Add(30 * time.Second))
			mu.Unlock()
			_, err := conn.Read(make([]byte, 64))
			mu.Lock()
			if n > 0 && err != nil && strings.Contains(err.Error(), "timeout") {
				left++
			}
		})
	}
	session := get[*xssh.Session](t)(known.NewSession())
	if out, err := session.Output("echo still"); err != nil || string(out) != "still\n" {
		t.Errorf("who was in before gets %q, %v", out, err)
	}
	waiting.Wait()
	t.Logf("of %d silent connections %d were let in, and %d of them were there after 30 s", len(all), open, left)
	if open > 20 || left > 0 {
		t.Errorf("%d were let in, %d stayed", open, left)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
}

func testChannels(t *testing.T, w *world, ann person) {
	client := w.dial(t, w.code(ann))
	opened, refused := 0, 0
	for range 60 {
		channel, requests, err := client.OpenChannel("session", nil)
		if err != nil {
			refused++
			continue
		}
		go xssh.DiscardRequests(requests)
		opened++
		t.Cleanup(func() { _ = channel.Close() })
	}
	if opened != 10 || refused != 50 {
		t.Errorf("%d sessions are open, %d were refused", opened, refused)
	}
	for _, kind := range []string{"x11", "auth-agent@openssh.com", "forwarded-tcpip", "direct-streamlocal@openssh.com", ""} {
		if _, _, err := client.OpenChannel(kind, nil); err == nil {
			t.Errorf("a channel of kind %q is open", kind)
		}
	}
	for _, payload := range [][]byte{nil, {1}, bytes.Repeat([]byte{255}, 100), xssh.Marshal(struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}{"--help", 80, "", 0}), xssh.Marshal(struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}{"local\x00host", 70000, "", 0})} {
		if _, _, err := client.OpenChannel("direct-tcpip", payload); err == nil {
			t.Errorf("a tunnel to %q is open", payload)
		}
	}
}

// testFlood sends a lot to a command that does not read, and reads nothing of one that says a lot.
func testFlood(t *testing.T, w *world, ann person) {
	client := w.dial(t, w.code(ann))
	deaf := get[*xssh.Session](t)(client.NewSession())
	in := get[io.WriteCloser](t)(deaf.StdinPipe())
	must(t, deaf.Start("sleep 60"))
	loud := get[*xssh.Session](t)(client.NewSession())
	get[io.Reader](t)(loud.StdoutPipe())
	must(t, loud.Start("cat /dev/zero"))
	sent := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(in, io.LimitReader(zeros{}, 1<<30))
		sent <- n
	}()
	time.Sleep(5 * time.Second) // for the buffers to fill
	if has := w.memory(); has > 300<<20 {
		t.Errorf("the server has %d MB", has>>20)
	}
	_ = client.Close()
	if n := <-sent; n > 200<<20 {
		t.Errorf("%d MB were taken from a client for a command that does not read", n>>20)
	} else {
		t.Logf("%d MB fit into all buffers", n>>20)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func testRequests(t *testing.T, w *world, ann person) {
	client := w.dial(t, w.code(ann))
	if ok, _, err := client.SendRequest("keepalive@cloudfoundry.org", true, nil); !ok || err != nil {
		t.Errorf("the keepalive of cf is answered with %v, %v", ok, err)
	}
	for _, kind := range []string{"tcpip-forward", "streamlocal-forward@openssh.com", "no-more-sessions@openssh.com", "hostkeys-prove-00@openssh.com"} {
		if ok, _, err := client.SendRequest(kind, true, nil); ok || err != nil {
			t.Errorf("%s is answered with %v, %v", kind, ok, err)
		}
	}
	if _, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("a reverse tunnel is open")
	}
	session := get[*xssh.Session](t)(client.NewSession())
	text := func(s string) []byte { return xssh.Marshal(struct{ Text string }{s}) }
	pair := func(name, value string) []byte { return xssh.Marshal(struct{ Name, Value string }{name, value}) }
	for _, r := range []struct {
		kind    string
		payload []byte
		want    bool
	}{
		{"env", pair("LANG", "de_DE.UTF-8"), true}, {"env", pair("LD_PRELOAD", "/tmp/evil.so"), false}, {"env", pair("LANG", "a b"), false},
		{"auth-agent-req@openssh.com", nil, false}, {"x11-req", nil, false}, {"subsystem", text("netconf"), false}, {"pty-req", []byte{0, 0}, false},
		{"exec", text(strings.Repeat("x", 100<<10)), false}, {"exec", []byte{255, 255, 255, 255}, false}, {"exec", text(`echo $LANG`), true}, {"exec", text("true"), false},
	} {
		if ok, err := session.SendRequest(r.kind, true, r.payload); ok != r.want || err != nil {
			t.Errorf("%s %.40q is answered with %v, %v", r.kind, r.payload, ok, err)
		}
	}
	term := get[*xssh.Session](t)(client.NewSession())
	must(t, term.RequestPty("xterm; rm -rf /", 1<<30, 1<<31, nil))
	if out, err := term.Output("echo $TERM; stty size"); err != nil || string(out) != "xterm\r\n10000 10000\r\n" {
		t.Errorf("a strange terminal gives %q, %v", out, err)
	}
	if text := w.metrics(t); !strings.Contains(text, `proa_ssh_logins_total{outcome="good"}`) || !strings.Contains(text, "proa_ssh_connections 1\n") {
		t.Errorf("metrics lack something:\n%s", text)
	}
}

func (w *world) metrics(t *testing.T) string {
	t.Helper()
	response, err := http.Get("http://" + w.server.metrics + "/metrics")
	must(t, err)
	defer response.Body.Close()
	return string(get[[]byte](t)(io.ReadAll(response.Body)))
}

func testSignals(t *testing.T, w *world, ann person) {
	client := w.dial(t, w.code(ann))
	session := get[*xssh.Session](t)(client.NewSession())
	var out lockedBuffer
	session.Stdout = &out
	must(t, session.Start(`trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.1; done`))
	w.until(10*time.Second, "the trap", func() error {
		if !strings.Contains(out.String(), "ready") {
			return fmt.Errorf("it said %q", &out)
		}
		return nil
	})
	must(t, session.Signal("USR1"))
	if exit, ok := errors.AsType[*xssh.ExitError](session.Wait()); !ok || exit.ExitStatus() != 5 || !strings.Contains(out.String(), "got it") {
		t.Errorf("it ended with %v and said %q", exit, &out)
	}
}
