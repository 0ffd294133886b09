package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// postfix starts a real mail server that delivers into a Maildir and hands bounces over LMTP, and lets the service use it.
func (w *world) postfix() (mailDir string) {
	w.t.Helper()
	state, err := os.MkdirTemp("/var/tmp", "proa-test.")
	must(w.t, err)
	must(w.t, os.Chmod(state, 0o711))
	bounces := freeAddress(w.t)
	run := func(args ...string) string {
		w.t.Helper()
		cmd := exec.Command("../../engines/postfix/run.sh", args...)
		cmd.Env = append(os.Environ(), "PROA_STATE="+filepath.Join(state, "state"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.t.Fatalf("postfix %s: %v\n%s", args[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	w.t.Cleanup(func() {
		run("destroy")
		_ = os.RemoveAll(state)
	})
	run("start", "test", bounces)
	w.env = slices.DeleteFunc(w.env, func(e string) bool { return strings.HasPrefix(e, "PROA_NOTIFY_RELAYS=") })
	w.env = append(w.env, "PROA_NOTIFY_RELAYS=smtp://"+run("address", "test")+"?tls=none", "PROA_NOTIFY_BOUNCE_LISTEN="+bounces,
		"PROA_NOTIFY_BOUNCE_DOMAIN=bounces.proa.localhost", "PROA_NOTIFY_BOUNCE_KEY="+strings.Repeat("k", 32))
	return run("mail", "test")
}

// What docs/notifications.md tells people to type is typed here, in one shell, against the real programs and a real Postfix.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/notifications.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)(<!-- with the platform -->\n)?```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 8 {
		t.Fatalf("only %d blocks found", len(blocks))
	}
	script := "set -euo pipefail\n"
	for _, b := range blocks {
		if b[1] == "" { // here is no platform: e2e has one
			script += b[2]
		}
	}
	w := newWorld(t)
	mailDir := w.postfix()
	w.serve()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "PROA_AUTH_URL="+w.authURL, "PROA_NOTIFY_URL="+w.url, "PROA_ADMIN_USERNAME=admin", "PROA_ADMIN_PASSWORD="+adminPassword, "PROA_MAIL_DIR="+mailDir, "no_proxy=*",
		"PATH="+binaries+":"+os.Getenv("PATH"), "PROA_HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `"status": "delivered"`) {
		t.Fatalf("%v\n%s", err, out)
	}
	if raw := delivered(t, mailDir, "ann@example.org", "High water"); !strings.Contains(raw, "multipart/alternative") || !strings.Contains(raw, "X-CF-Client-ID: harbour") {
		t.Errorf("the mail as it was delivered:\n%s", raw)
	}
}

// delivered waits for a mail to an address in a Maildir that says something.
func delivered(t *testing.T, dir, address, says string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(dir, "new", "*"))
		must(t, err)
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err == nil && strings.Contains(string(raw), "To: "+address) && strings.Contains(string(raw), says) {
				return string(raw)
			}
		}
	}
	t.Fatalf("no mail to %s arrived in 20 s", address)
	return ""
}

// A mail to nobody comes back through Postfix: the delivery has failed, and the address is written to no more until it is cleared.
func TestBounceThroughPostfix(t *testing.T) {
	w := newWorld(t)
	w.postfix()
	w.serve()
	token, admin := w.client("watch", allScopes...), w.client("operator", "notifications.admin")
	send := func() string {
		return w.send("/emails", token, map[string]any{"to": "nobody-here@example.org", "text": "hello"})
	}
	id := send()
	var s status
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && s.Failed == 0; time.Sleep(50 * time.Millisecond) {
		s = w.settled(id, token) // delivered to Postfix at first, failed when it comes back
	}
	if s.Failed != 1 || s.Delivered != 0 {
		t.Fatalf("after the bounce: %+v", s)
	}
	if r := w.want(200, w.call(http.MethodGet, "/messages/"+id+"/recipients", token, nil)); !strings.Contains(r.body, `"outcome":"bounced"`) || !strings.Contains(r.body, "5.1.1") {
		t.Errorf("recipients: %s", r.body)
	}
	if r := w.want(200, w.call(http.MethodGet, "/suppressions", admin, nil)); !strings.Contains(r.body, "nobody-here@example.org") {
		t.Errorf("suppressions: %s", r.body)
	}
	if s := w.settled(send(), token); s.Skipped["suppressed"] != 1 {
		t.Errorf("a suppressed address: %+v", s)
	}
	w.want(204, w.call(http.MethodDelete, "/suppressions/nobody-here@example.org", admin, nil))
	if s := w.settled(send(), token); s.Delivered+s.Failed != 1 {
		t.Errorf("after clearing: %+v", s)
	}
}

// The table of settings in docs/operators.md is the one that the program prints. UPDATE=1 writes it anew.
func TestConfigurationReference(t *testing.T) {
	const path, begin, end = "../../docs/operators.md", "<!-- configuration: notify -->\n", "<!-- end notify -->"
	page, err := os.ReadFile(path)
	must(t, err)
	table, err := exec.CommandContext(t.Context(), filepath.Join(binaries, "notify"), "help", "--markdown").Output()
	must(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the place for the table is gone")
	}
	want := before + begin + string(table) + end + after
	if os.Getenv("UPDATE") != "" {
		must(t, os.WriteFile(path, []byte(want), 0o600))
	}
	if string(page) != want && os.Getenv("UPDATE") == "" {
		t.Error("docs/operators.md is out of date. Run: UPDATE=1 go test ./cmd/notify -run TestConfigurationReference")
	}
}
