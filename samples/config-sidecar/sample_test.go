package sample_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// freePort is a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// begin starts a program, and returns what ends it.
func begin(t *testing.T, program string, env ...string) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		cancel()
		_ = cmd.Wait() // it was killed, and says so
	}
	t.Cleanup(end)
	return end
}

// get asks until there is an answer with this status.
func get(t *testing.T, url string, want int) (body string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(url)
		if err == nil {
			text, readErr := io.ReadAll(resp.Body)
			resp.Body.Close()
			if readErr == nil && resp.StatusCode == want {
				return string(text)
			}
			body, err = string(text), readErr
		}
		if time.Now().After(end) {
			t.Fatalf("%s never answered with %d: %v: %s", url, want, err, body)
		}
	}
}

func TestSample(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "./...").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	port, configPort := freePort(t), freePort(t)
	begin(t, filepath.Join(bin, "app"), "PORT="+port, "CONFIG_SERVER_PORT="+configPort)
	get(t, "http://localhost:"+port+"/config", http.StatusBadGateway)

	end := begin(t, filepath.Join(bin, "config-server"), "CONFIG_SERVER_PORT="+configPort)
	direct := get(t, "http://localhost:"+configPort+"/config/", http.StatusOK)
	if want := `{"scope":"orders.read","password":"a-sample-is-no-secret"}` + "\n"; direct != want {
		t.Errorf("the sidecar says %q, want %q", direct, want)
	}
	if through := get(t, "http://localhost:"+port+"/config", http.StatusOK); through != direct {
		t.Errorf("the app says %q, the sidecar %q", through, direct)
	}
	reachable := false
	for _, address := range otherAddresses(t) {
		get(t, "http://"+net.JoinHostPort(address, port)+"/", http.StatusOK) // so it is an address at which one could listen
		reachable = true
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, configPort), time.Second); err == nil {
			_ = conn.Close()
			t.Errorf("the sidecar can be reached at %s", address)
		}
	}
	if !reachable {
		t.Log("this machine has no address but localhost, so nothing was learned about others")
	}
	end()
	get(t, "http://localhost:"+port+"/config", http.StatusBadGateway)
}

// otherAddresses are those of this machine that are not localhost.
func otherAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			others = append(others, ip.IP.String())
		}
	}
	return others
}
