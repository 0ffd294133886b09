package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is what a process writes, while it writes.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// shop is the app, running, and a /proc in which only it is.
type shop struct {
	out  *output
	proc string
	url  string
}

func startShop(t *testing.T, options ...string) shop {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("needs a JDK: javac is not on the PATH")
	}
	classes, proc := t.TempDir(), t.TempDir()
	if out, err := exec.Command("javac", "--release", "17", "-d", classes, "../src/Shop.java").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	s := shop{out: &output{}, proc: proc, url: "http://127.0.0.1:" + port}
	ctx, cancel := context.WithCancel(context.Background())
	java := exec.CommandContext(ctx, "java", append(options, "-cp", classes, "Shop")...)
	java.Env, java.Stdout, java.Stderr = append(os.Environ(), "PORT="+port), s.out, s.out
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = java.Wait() // it was killed, and says so
	})
	pid := strconv.Itoa(java.Process.Pid)
	if err := os.Symlink(filepath.Join("/proc", pid), filepath.Join(proc, pid)); err != nil {
		t.Fatal(err)
	}
	until(t, "the shop opens", s.open)
	return s
}

func (s shop) open() bool {
	resp, err := http.Get(s.url)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return err == nil && string(body) == "The shop is open.\n"
}

// ask asks the sidecar, and returns the status.
func ask(t *testing.T, proc, token, sent string) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/threaddump", nil)
	if sent != "" {
		r.Header.Set("Authorization", sent)
	}
	w := httptest.NewRecorder()
	routes(proc, token).ServeHTTP(w, r)
	return w.Code
}

func TestThreadDump(t *testing.T) {
	s := startShop(t)
	if status := ask(t, s.proc, "", ""); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	until(t, "a dump with the threads of the shop", func() bool {
		return strings.Contains(s.out.String(), "Full thread dump") && strings.Contains(s.out.String(), `"shop-counter"`)
	})
	if !s.open() {
		t.Error("the shop has closed")
	}
}

// TestJavaWithoutDumps has a Java that the signal would end.
func TestJavaWithoutDumps(t *testing.T) {
	s := startShop(t, "-Xrs")
	if status := ask(t, s.proc, "", ""); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	if !s.open() {
		t.Error("the shop has closed")
	}
}

func TestToken(t *testing.T) {
	nobody := t.TempDir() // who gets past the token finds no Java
	for _, c := range []struct {
		token, sent string
		want        int
	}{
		{"", "", http.StatusServiceUnavailable},
		{"right", "Bearer right", http.StatusServiceUnavailable},
		{"right", "", http.StatusUnauthorized},
		{"right", "Bearer wrong", http.StatusUnauthorized},
		{"right", "Bearer righ", http.StatusUnauthorized},
		{"right", "right", http.StatusUnauthorized},
	} {
		if got := ask(t, nobody, c.token, c.sent); got != c.want {
			t.Errorf("token %q, sent %q: status %d, want %d", c.token, c.sent, got, c.want)
		}
	}
}

func TestIsJava(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tjava\nSigCgt:\t2000000181005ccf\n": true,
		"Name:\tjava\nSigCgt:\t0000000000000000\n": false,
		"Name:\tbash\nSigCgt:\t2000000181005ccf\n": false,
		"Name:\tjava\n": false,
		"":              false,
	} {
		if isJava(status) != want {
			t.Errorf("%q: want %v", status, want)
		}
	}
}
