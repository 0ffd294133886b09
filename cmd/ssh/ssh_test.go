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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
)

// TestOpenSSH does what people do, with the programs they have.
func TestOpenSSH(t *testing.T) {
	w := newWorld(t)
	w.shop()
	ann := w.hire("ann", platform.SpaceDeveloper, w.space)
	for _, test := range []struct {
		name string
		try  func(*testing.T, *world, person)
	}{
		{"status", testStatus}, {"streams", testStreams}, {"environment", testEnvironment}, {"terminal", testTerminal}, {"forward", testForward},
		{"scp", testSCP}, {"sftp", testSFTP}, {"killed client", testKilledClient}, {"paused reader", testPausedReader},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := *w
			in.T = t
			test.try(t, &in, ann)
		})
	}
	events := w.events("audit.app.ssh-authorized")
	kinds := map[any]int{}
	for _, e := range events {
		kinds[e.Data["kind"]]++
	}
	if kinds["shell"] < 2 || kinds["exec"] < 10 || kinds["sftp"] < 5 || kinds["forward"] != 3 || len(kinds) != 4 { // the tunnels have three targets
		t.Errorf("the kinds of sessions are %v", kinds)
	}
	if len(events) < 10 || events[0].Actor.GUID != ann.guid || events[0].Actor.Name != "ann" || events[0].Data["index"] != 0.0 || events[0].Data["process_type"] != "web" {
		t.Errorf("the audit trail is %+v", events)
	}
}

func codeOf(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func testStatus(t *testing.T, w *world, ann person) {
	for line, want := range map[string]int{
		"true": 0, "exit 7": 7, "kill -9 $$": 128 + 9, "sh -c 'kill -TERM $$'": 128 + 15, "no-such-program": 127, "cd /no/such/directory": 1,
	} {
		if out, err := w.ssh(ann, line).CombinedOutput(); codeOf(err) != want {
			t.Errorf("%s: got %v, want %d\n%s", line, err, want, out)
		}
	}
	shell := w.as(w.code(ann), "ssh", "-T", "-l", w.user(0), "127.0.0.1")
	shell.Stdin = strings.NewReader("pwd\nexit 9\n")
	if out, err := shell.Output(); codeOf(err) != 9 || string(out) != "/workspace\n" {
		t.Errorf("a shell said %q, %v", out, err)
	}
}

func testStreams(t *testing.T, w *world, ann person) {
	cmd := w.ssh(ann, "cat; echo trouble >&2")
	sent := make([]byte, 10<<20)
	_, _ = rand.Read(sent) // never fails
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(sent), &errs
	begun := time.Now()
	out, err := cmd.Output()
	if err != nil || !bytes.Equal(out, sent) || errs.String() != "trouble\n" {
		t.Errorf("got %v, %d bytes and %q", err, len(out), &errs)
	}
	t.Logf("10 MB there and back in %.1f s", time.Since(begun).Seconds())
	head := w.ssh(ann, "head -c 5")
	head.Stdin = bytes.NewReader(sent)
	if out, err := head.Output(); err != nil || len(out) != 5 {
		t.Errorf("who stops reading gives %q, %v", out, err)
	}
}

// testEnvironment holds a session against the app's main process.
func testEnvironment(t *testing.T, w *world, ann person) {
	out, err := w.ssh(ann, `env -0; printf '=====\0'; for p in /proc/[0-9]*; do if [ "$(readlink $p/exe)" = /workspace/app ]; then cat $p/environ; fi; done`).Output()
	must(t, err)
	session, main, _ := strings.Cut(string(out), "=====\x00")
	has := strings.Split(session, "\x00")
	if len(main) < 500 {
		t.Fatalf("the main process has %q, so this proves nothing", main)
	}
	for _, pair := range strings.Split(main, "\x00") {
		name, _, _ := strings.Cut(pair, "=")
		if !slices.Contains(has, pair) && !slices.Contains([]string{"SHLVL", "_", "OLDPWD", "SHELL"}, name) {
			t.Errorf("a session lacks %q", pair)
		}
	}
	for _, want := range []string{"FROM_PROFILE=yes", "CANARY=sings", "odd.name=odd", "PORT=8080", "MEMORY_LIMIT="} {
		if !slices.ContainsFunc(has, func(pair string) bool { return strings.HasPrefix(pair, want) }) {
			t.Errorf("a session lacks %s", want)
		}
	}
	if !strings.Contains(session, `VCAP_APPLICATION={`) || strings.Contains(session, "PROA_LAUNCH=") {
		t.Errorf("a session has %q", session)
	}
}

func testTerminal(t *testing.T, w *world, ann person) {
	tty := newTerminal(t, 91, 17)
	cmd := w.as(w.code(ann), "ssh", "-t", "-l", w.user(0), "127.0.0.1")
	tty.run(cmd)
	tty.say("PS1=; stty size; echo $TERM\r")
	tty.hear("17 91\r\n")
	tty.resize(92, 18)
	tty.say("until [ \"$(stty size)\" = '18 92' ]; do sleep 0.05; done; echo lar''ger\r")
	tty.hear("larger\r\n")
	tty.say("sh -c 'trap \"echo gotcha; exit\" INT; echo ready; while :; do sleep 0.1; done'\r")
	tty.hear("\rready\r\n")
	tty.say("\x03")
	tty.hear("gotcha\r\n")
	tty.say("sleep 1000\r")
	w.until(10*time.Second, "the command", func() error { return w.inside("sleep 1000", 1) })
	tty.say("\x1a")
	tty.hear("Stopped")
	tty.say("kill -9 %1; wait\rexit 12\rexit 12\r") // a shell that still knows of a stopped job wants to be told twice
	if err := cmd.Wait(); codeOf(err) != 12 {
		t.Errorf("got %v\n%s", err, tty.heard())
	}
	first := newTerminal(t, 80, 24)
	cmd = w.as(w.code(ann), "ssh", "-t", "-l", w.user(0), "127.0.0.1", "stty size; tty; exit 3")
	first.run(cmd)
	if err := cmd.Wait(); codeOf(err) != 3 {
		t.Errorf("got %v", err)
	}
	first.hear("24 80\r\n/dev/pts/")
}

// inside counts the processes of the app's container whose command line begins so.
func (w *world) inside(line string, want int) error {
	out := w.kubectl("--namespace="+w.space.Namespace(), "exec", w.pod(), "--", "sh", "-c", `for p in /proc/[0-9]*; do tr '\0' ' ' 2>/dev/null < $p/cmdline; echo; done`)
	var found []string
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, line) {
			found = append(found, strings.TrimSpace(l))
		}
	}
	if len(found) != want {
		return fmt.Errorf("there are %d of %q: %q", len(found), line, found)
	}
	return nil
}

func (w *world) pod() string {
	return get[map[string][]platform.Instance](w)(w.store.Instances(w.Context(), []string{w.app.GUID}))[w.app.GUID][0].Pod
}

func testForward(t *testing.T, w *world, ann person) {
	local, other, refused := free(t), free(t), free(t)
	cmd := w.as(w.code(ann), "ssh", "-N", "-l", w.user(0), "-L", local+":localhost:8080", "-L", other+":"+w.pod()+":8080", "-L", refused+":localhost:9", "127.0.0.1")
	var said lockedBuffer
	cmd.Stderr = &said
	must(t, cmd.Start())
	client := http.Client{Timeout: 10 * time.Second}
	for _, at := range []string{local, other} { // the name of the pod means something only inside of it
		w.until(20*time.Second, "the tunnel to "+at, func() error {
			response, err := client.Get("http://" + at)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), w.pod()+" on 8080") {
				return fmt.Errorf("got %q: %w", text, err)
			}
			return nil
		})
	}
	begun := time.Now()
	conn := get[net.Conn](t)(net.Dial("tcp", local))
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	get[int](t)(conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))) // the server ends, and then we do
	if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), "on 8080") {
		t.Errorf("until the end there is %q, %v", text, err)
	}
	must(t, conn.Close())
	t.Logf("one request over a new connection took %.3f s", time.Since(begun).Seconds())
	nobody := get[net.Conn](t)(net.Dial("tcp", refused))
	if n, err := nobody.Read(make([]byte, 1)); err == nil {
		t.Errorf("a port on which nobody listens says %d bytes", n)
	}
	must(t, nobody.Close())
	w.until(5*time.Second, "why", func() error {
		if !strings.Contains(said.String(), "connection refused") {
			return fmt.Errorf("it says %q", &said)
		}
		return nil
	})
	client.CloseIdleConnections()
	w.until(15*time.Second, "the end of the connections", func() error { return w.inside("/proa/launcher dial", 0) })
	get[net.Conn](t)(net.Dial("tcp", local)) // left open
	w.until(10*time.Second, "a connection", func() error { return w.inside("/proa/launcher dial", 1) })
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	w.until(15*time.Second, "the end of the last connection", func() error { return w.inside("/proa/launcher dial", 0) })
}

func testSCP(t *testing.T, w *world, ann person) {
	from, to := t.TempDir(), t.TempDir()
	big := make([]byte, 3<<20)
	_, _ = rand.Read(big) // never fails
	must(t, os.MkdirAll(filepath.Join(from, "all", "deep"), 0o755))
	must(t, os.WriteFile(filepath.Join(from, "all", "big"), big, 0o640))
	must(t, os.WriteFile(filepath.Join(from, "all", "deep", "small"), []byte("small"), 0o644))
	remote := func(path string) string {
		return "scp://" + strings.NewReplacer(":", "%3A", "/", "%2F").Replace(w.user(0)) + "@127.0.0.1/" + path
	}
	for _, args := range [][]string{
		{filepath.Join(from, "all", "big"), remote("copied")}, {remote("copied"), filepath.Join(to, "copied")},
		{"-r", filepath.Join(from, "all"), remote("tree")}, {"-r", remote("tree"), filepath.Join(to, "tree")},
	} {
		if out, err := w.as(w.code(ann), "scp", args...).CombinedOutput(); err != nil {
			t.Fatalf("scp %v: %v\n%s", args, err, out)
		}
	}
	for file, want := range map[string][]byte{"copied": big, "tree/big": big, "tree/deep/small": []byte("small")} {
		if got, err := os.ReadFile(filepath.Join(to, file)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s came back with %d bytes, %v", file, len(got), err)
		}
	}
	if out, err := w.ssh(ann, "cd /workspace && sha256sum < copied && rm -r copied tree").CombinedOutput(); err != nil {
		t.Errorf("the files are not in the app's directory: %v\n%s", err, out)
	}
}

func testSFTP(t *testing.T, w *world, ann person) {
	dir := t.TempDir()
	batch := filepath.Join(dir, "batch")
	must(t, os.WriteFile(filepath.Join(dir, "words"), []byte("words"), 0o600))
	must(t, os.WriteFile(batch, []byte(strings.NewReplacer("DIR", dir).Replace("pwd\nmkdir below\nput DIR/words below/words\nrename below/words below/other\nget below/other DIR/back\nls -l below\nrm below/other\nrmdir below\n")), 0o600))
	cmd := w.as(w.code(ann), "sftp", "-o", "BatchMode=no", "-b", batch, "-o", "User="+w.user(0), "127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Remote working directory: /workspace") {
		t.Errorf("got %v\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "back")); err != nil || string(got) != "words" {
		t.Errorf("it came back as %q, %v", got, err)
	}
}

// testKilledClient takes clients away from commands that do not mind, and looks for what is left.
func testKilledClient(t *testing.T, w *world, ann person) {
	for name, start := range map[string]func() *exec.Cmd{
		"a command": func() *exec.Cmd {
			return w.ssh(ann, "trap '' HUP TERM; setsid sleep 2345 & nohup sleep 2345 >/dev/null 2>&1 & sleep 2345")
		},
		"a terminal": func() *exec.Cmd {
			cmd := w.as(w.code(ann), "ssh", "-t", "-l", w.user(0), "127.0.0.1", "sleep 2345 & sleep 2345 & trap '' HUP; sleep 2345")
			return cmd
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := start()
			if name == "a terminal" {
				newTerminal(t, 80, 24).run(cmd)
			} else {
				must(t, cmd.Start())
			}
			w.until(15*time.Second, "the command", func() error { return w.inside("sleep 2345", 3) })
			must(t, cmd.Process.Kill())
			_ = cmd.Wait()
			begun := time.Now()
			w.until(20*time.Second, "nothing left", func() error {
				return errors.Join(w.inside("sleep 2345", 0), w.inside("/proa/launcher exec", 0), w.inside("/proa/launcher hangup", 0))
			})
			t.Logf("nothing was left %.1f s after the client was killed", time.Since(begun).Seconds())
		})
	}
}

// testPausedReader stops the client in the midst of a lot of output.
func testPausedReader(t *testing.T, w *world, ann person) {
	const size = 50 << 20
	cmd := w.ssh(ann, fmt.Sprint("head -c ", size, " /dev/zero"))
	out, in, err := os.Pipe()
	must(t, err)
	cmd.Stdout = in
	must(t, cmd.Start())
	must(t, in.Close())
	first := make([]byte, 1)
	get[int](t)(out.Read(first))
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(65 * time.Second) // longer than heartbeats between here and the instance wait
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	n, err := io.Copy(io.Discard, out)
	if wait := cmd.Wait(); err != nil || wait != nil || n+1 != size {
		t.Errorf("got %d bytes, %v, %v", n+1, err, wait)
	}
}
