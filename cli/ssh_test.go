package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// typing is an Env with words on its input.
func typing(words string) func(*Env) { return func(e *Env) { e.In = strings.NewReader(words) } }

func TestSSHRunsACommand(t *testing.T) {
	w := withSSH(t)
	w.ssh.banner = "Mind your \x1b[2Jsteps.\nAll of them."
	out, errs, code := w.runIn(t.Context(), typing("from here"), "ssh", "shop", "-c", "cat; echo \" and there\"; echo trouble >&2;", "-c", "exit 7")
	if code != 7 || out != "from here and there\n" || errs != "Mind your steps.\nAll of them.\ntrouble\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	w.ssh.banner, w.ssh.fingerprint = "", strings.ToUpper(w.ssh.inHex(t))
	if out, errs, code := w.run("ssh", "shop", "-i", "0", "--process", "web", "-T", "-c", "true"); code != 0 || out+errs != "" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if out, errs, code := w.runIn(t.Context(), typing("echo a shell\nexit 3\n"), "ssh", "shop"); code != 3 || out != "a shell\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if heard := w.ssh.noted(); heard != "" {
		t.Errorf("without a terminal the server heard %s", heard)
	}
}

func TestSSHSentences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		args   []string
		code   int
		says   []string
	}{
		"no app":            {nil, []string{"shopp"}, ExitNotFound, []string{`There is no app "shopp"`, "proa apps"}},
		"crashed":           {func(w *world) { w.states = []string{"CRASHED"} }, nil, ExitFailed, []string{"Instance 0 of web is CRASHED.", "proa logs shop --recent"}},
		"starting":          {func(w *world) { w.states = []string{"STARTING"} }, nil, ExitOK, nil},
		"down":              {func(w *world) { w.states = []string{"DOWN"} }, nil, ExitFailed, []string{"Instance 0 of web is DOWN.", "proa app shop"}},
		"words":             {nil, []string{"ls", "-l"}, ExitUsage, []string{"A command goes in -c.", "proa ssh shop -c 'ls -l'"}},
		"no process":        {nil, []string{"--process", "worker"}, ExitNotFound, []string{"App shop has no process worker. It has: web."}},
		"no instance":       {nil, []string{"-i", "7"}, ExitNotFound, []string{"There is no instance 7 of web: it has 2 instances."}},
		"no ssh":            {func(w *world) { w.ssh.address = "" }, nil, ExitFailed, []string{"There is no ssh in this installation.", "ask the operator"}},
		"nobody there":      {func(w *world) { w.ssh.address = "127.0.0.1:1" }, nil, ExitUnavailable, []string{"The ssh server at 127.0.0.1:1 cannot be reached."}},
		"somebody else":     {func(w *world) { w.ssh.fingerprint = strings.Repeat("A", 43) }, nil, ExitFailed, []string{"is not the one that the API speaks of", "-k"}},
		"odd fingerprint":   {func(w *world) { w.ssh.fingerprint = "aa:bb" }, nil, ExitFailed, []string{"no SHA-256"}},
		"no fingerprint":    {func(w *world) { w.ssh.fingerprint = "" }, nil, ExitFailed, []string{"does not say how to tell"}},
		"no code":           {func(w *world) { w.ssh.refuses = "There is no client ssh-proxy." }, nil, ExitFailed, []string{"gave no code for ssh. There is no client ssh-proxy.", "proa login"}},
		"off for the app":   {func(w *world) { w.ssh.disabled = "Disabled for app" }, nil, ExitFailed, []string{"ssh is disabled for app shop.", "proa enable-ssh shop"}},
		"off in the space":  {func(w *world) { w.ssh.disabled = "Disabled for space dev" }, nil, ExitFailed, []string{"ssh is disabled in space dev.", "proa allow-space-ssh dev"}},
		"off for all":       {func(w *world) { w.ssh.disabled = "Disabled globally" }, nil, ExitFailed, []string{"disabled for all apps", "ask the operator"}},
		"not this instance": {nil, []string{"-i", "1"}, ExitFailed, []string{"The ssh server refused your login.", "space_developer"}},
		"in its own words":  {func(w *world) { w.ssh.banner = "You are too\x1b[2J late." }, []string{"-i", "1"}, ExitFailed, []string{"Error: You are too late."}},
		"-N and -c":         {nil, []string{"-N", "-c", "ls"}, ExitUsage, []string{"choose one"}},
		"-t and -T":         {nil, []string{"-t", "-T"}, ExitUsage, []string{"choose one"}},
		"odd forward":       {nil, []string{"-L", "8080"}, ExitUsage, []string{"8080:localhost:9090"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withSSH(t)
			if c.change != nil {
				c.change(w)
			}
			args := append([]string{"ssh", "shop", "-c", "true"}, c.args...)
			switch {
			case name == "no app":
				args = []string{"ssh", "shopp"}
			case strings.HasPrefix(name, "-"):
				args = append([]string{"ssh", "shop"}, c.args...)
			}
			_, errs, code := w.run(args...)
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			contains(t, errs, c.says...)
		})
	}
	w := withSSH(t)
	w.ssh.fingerprint = ""
	if _, errs, code := w.run("ssh", "shop", "-k", "-c", "true"); code != 0 || !strings.Contains(errs, "Who answers is not checked") {
		t.Errorf("-k: exit %d, %s", code, errs)
	}
}

func TestSSHWhenTheInstanceEnds(t *testing.T) {
	w := withSSH(t)
	_, errs, code := w.runIn(t.Context(), typing("exit 137\n"), "ssh", "shop")
	if code != 137 {
		t.Errorf("exit %d", code)
	}
	contains(t, errs, "the instance has probably ended. Next: proa app shop")
	if _, errs, code := w.run("ssh", "shop", "-c", "exit 137"); code != 137 || errs != "" {
		t.Errorf("a command may end as it likes: exit %d, %s", code, errs)
	}
	w.ssh.silent = true
	_, errs, code = w.run("ssh", "shop", "-c", "true")
	if code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	contains(t, errs, "Error: The instance has ended.", "proa app shop")
}

// screen is a terminal of a size that changes.
type screen struct {
	columns, rows atomic.Int32
	resized       chan os.Signal
	raw, restored atomic.Int32
}

func (s *screen) at(in io.Reader) func(*Env) {
	return func(e *Env) {
		e.In, e.InTTY = in, true
		e.Size = func() (int, int) { return int(s.columns.Load()), int(s.rows.Load()) }
		e.Resized = func() (<-chan os.Signal, func()) { return s.resized, func() {} }
		e.Raw = func() (func(), error) {
			s.raw.Add(1)
			return func() { s.restored.Add(1) }, nil
		}
	}
}

func newScreen() *screen {
	s := &screen{resized: make(chan os.Signal, 1)}
	s.columns.Store(91)
	s.rows.Store(17)
	return s
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestSSHAtATerminal(t *testing.T) {
	w, s := withSSH(t), newScreen()
	w.env["TERM"] = "screen-256color"
	in, keys := io.Pipe()
	go func() {
		until(t, "a terminal", func() bool {
			return strings.Contains(w.ssh.noted(), "pty screen-256color 91x17 <nil>") && s.raw.Load() == 1
		})
		s.columns.Store(120)
		s.resized <- os.Interrupt // any will do here
		until(t, "its new size", func() bool { return strings.Contains(w.ssh.noted(), "window 120x17 <nil>") })
		_, _ = io.WriteString(keys, "exit 4\n")
	}()
	out, errs, code := w.runIn(t.Context(), s.at(in), "ssh", "shop")
	if code != 4 || s.raw.Load() != 1 || s.restored.Load() != 1 {
		t.Errorf("exit %d, %q, %q; raw %d times, and put back %d times", code, out, errs, s.raw.Load(), s.restored.Load())
	}

	for name, c := range map[string]struct {
		tty  bool
		args []string
		pty  bool
	}{
		"a command": {true, []string{"-c", "true"}, false}, "a command with -t": {true, []string{"-c", "true", "-t"}, true}, "a shell with -T": {true, []string{"-T"}, false},
		"-t without a terminal": {false, []string{"-t"}, false}, "forced": {false, []string{"--force-pseudo-tty"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := withSSH(t), newScreen()
			_, errs, code := w.runIn(t.Context(), func(e *Env) {
				s.at(strings.NewReader(""))(e)
				e.InTTY = c.tty
			}, append([]string{"ssh", "shop"}, c.args...)...)
			if asked := strings.Contains(w.ssh.noted(), "pty xterm"); code != 0 || asked != c.pty || s.raw.Load() != s.restored.Load() {
				t.Errorf("exit %d, %s; the server heard %q", code, errs, w.ssh.noted())
			}
		})
	}
}

// Whatever ends a shell, the terminal is put back.
func TestSSHPutsTheTerminalBack(t *testing.T) {
	for name, end := range map[string]func(w *world, stop func()){
		"a server that goes away": func(w *world, _ func()) {
			w.ssh.mu.Lock()
			defer w.ssh.mu.Unlock()
			_ = w.ssh.client.Close()
		},
		"a signal": func(_ *world, stop func()) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			w, s := withSSH(t), newScreen()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			in, _ := io.Pipe()
			go func() {
				until(t, "a shell", func() bool { return s.raw.Load() == 1 })
				end(w, stop)
			}()
			_, errs, code := w.runIn(ctx, s.at(in), "ssh", "shop")
			if code == 0 || s.restored.Load() != 1 {
				t.Errorf("exit %d, %s; put back %d times", code, errs, s.restored.Load())
			}
			if ctx.Err() == nil {
				contains(t, errs, "The connection to the app broke.")
			}
		})
	}
}

func TestSSHPassesCtrlCOn(t *testing.T) {
	w := withSSH(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, errs, code := w.runIn(ctx, func(e *Env) {
		in, _ := io.Pipe()
		e.In = in
		e.Out = writerFunc(func(b []byte) (int, error) { // it is ready
			interrupt()
			return len(b), nil
		})
	}, "ssh", "shop", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done")
	if code != 5 || !strings.Contains(w.ssh.noted(), "signal INT") {
		t.Errorf("exit %d, %q, %q; the server heard %q", code, out, errs, w.ssh.noted())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestSSHForwards(t *testing.T) {
	w := withSSH(t)
	page := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = rw.Write(append([]byte("heard "), body...))
	}))
	defer page.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var told shared
	done := make(chan int)
	go func() {
		_, _, code := w.runIn(ctx, func(e *Env) { e.Err = &told }, "ssh", "shop", "-N", "-L", "0:"+page.Listener.Addr().String(), "-L", "localhost:0:127.0.0.1:1")
		done <- code
	}()
	from := regexp.MustCompile(`Forwarding (127\.0\.0\.1:\d+) to (127\.0\.0\.1:\d+)\.`)
	until(t, "two forwards", func() bool { return len(from.FindAllString(told.String(), -1)) == 2 })
	ports := from.FindAllStringSubmatch(told.String(), -1)
	for range 3 {
		if resp, err := http.Get("http://" + ports[1][1]); err == nil {
			_ = resp.Body.Close()
			t.Error("what leads nowhere answered")
		}
		resp, err := http.Post("http://"+ports[0][1], "text/plain", strings.NewReader(strings.Repeat("x", 100_000)))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || len(body) != 100_006 {
			t.Errorf("%d bytes came back, %v", len(body), err)
		}
		_ = resp.Body.Close()
	}
	contains(t, told.String(), "A connection to 127.0.0.1:1 failed: ", "Ctrl-C ends it.")
	stop()
	if code := <-done; code != ExitInterrupted {
		t.Errorf("exit %d", code)
	}
	if resp, err := http.Get("http://" + ports[0][1]); err == nil {
		_ = resp.Body.Close()
		t.Error("it is still forwarded")
	}
	_, errs, code := w.run("ssh", "shop", "-N", "-L", page.Listener.Addr().String()+":localhost:80")
	if code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	contains(t, errs, "Nothing can be forwarded from "+page.Listener.Addr().String(), "choose another port")
}

func TestParseForward(t *testing.T) {
	for text, want := range map[string]forward{
		"8080:localhost:9090": {"127.0.0.1:8080", "localhost:9090"}, "127.0.0.2:1:h:2": {"127.0.0.2:1", "h:2"}, "*:1:h:2": {":1", "h:2"}, ":1:h:2": {"127.0.0.1:1", "h:2"},
		"[::1]:1:[::2]:3": {"[::1]:1", "[::2]:3"}, "0:h:65535": {"127.0.0.1:0", "h:65535"},
		"": {}, "1": {}, "1:2": {}, "1:h": {}, "1:h:0": {}, "1:h:65536": {}, "70000:h:1": {}, "a:h:1": {}, "::1:1:h:2": {}, "1::2": {},
	} {
		if got, err := parseForward(text); got != want || (err != nil) != (want == forward{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestSSHFeatures(t *testing.T) {
	w := withSSH(t)
	contains(t, w.ok("ssh-enabled", "shop"), "ssh is enabled for app shop.")
	contains(t, w.ok("disable-ssh", "shop"), "Refusing ssh for app shop", "OK")
	contains(t, w.ok("disallow-space-ssh", "dev"), "OK")
	contains(t, w.ok("space-ssh-allowed", "dev"), "ssh is not allowed in space dev.", "proa allow-space-ssh dev")
	if w.ssh.features["/v3/apps/a-1/features/ssh"] || w.ssh.features["/v3/spaces/s-1/features/ssh"] {
		t.Errorf("got %v", w.ssh.features)
	}
	w.ssh.disabled = "Disabled for space dev"
	contains(t, w.ok("enable-ssh", "shop"), "OK", "The app allows it, but: ssh is disabled in space dev.", "proa allow-space-ssh dev")
	w.ssh.disabled = ""
	contains(t, w.ok("allow-space-ssh", "dev"), "OK")
	contains(t, w.ok("space-ssh-allowed", "dev"), "ssh is allowed in space dev.")
	contains(t, w.ok("ssh-enabled", "shop", "--output", "json"), `"enabled": true`)
	if _, errs, code := w.run("allow-space-ssh", "nowhere"); code != ExitNotFound {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code := strings.TrimSpace(w.ok("ssh-code")); len(code) < 20 || strings.Contains(code, " ") {
		t.Errorf("the code is %q", code)
	}
}
