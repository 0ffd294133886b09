package main

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/proa-dev/proa/platform"
)

// TestRefusals tries every way in that must be shut, and reads why.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.shop()
	ann := w.hire("ann", platform.SpaceDeveloper, w.space)
	elsewhere := get[platform.Space](t)(w.store.CreateSpace(t.Context(), admin, platform.Space{OrgGUID: w.org.GUID, Name: "elsewhere", Metadata: noted}))
	old, oldAt := w.code(ann), time.Now()

	refused := func(t *testing.T, code, user, want string) {
		t.Helper()
		out, err := w.as(code, "ssh", "-l", user, "127.0.0.1", "true").CombinedOutput()
		if exit := codeOf(err); exit != 255 || !strings.Contains(string(out), want) || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("got %d, want %q in\n%s", exit, want, out)
		}
	}
	t.Run("a code works once", func(t *testing.T) {
		code := w.code(ann)
		if out, err := w.as(code, "ssh", "-l", w.user(0), "127.0.0.1", "true").CombinedOutput(); err != nil {
			t.Errorf("the first time: %v\n%s", err, out)
		}
		refused(t, code, w.user(0), "The code is wrong, used or too old. Get a new one with: proa ssh-code")
	})
	t.Run("wrong words", func(t *testing.T) {
		refused(t, "nonsense", w.user(0), "The code is wrong, used or too old.")
		refused(t, w.code(ann), "root", "Log in as cf:PROCESS-GUID/INDEX")
	})
	for name, test := range map[string]struct {
		who  person
		want string
	}{
		"another space": {w.hire("eve", platform.SpaceDeveloper, elsewhere), "This process is not there, or you do not see it."},
		"no role":       {w.hire("joe", "", w.space), "This process is not there, or you do not see it."},
		"supporter":     {w.hire("sue", platform.SpaceSupporter, w.space), "You may not log in to app shop. Ask a space manager to make you a space developer."},
		"auditor":       {w.hire("aud", platform.SpaceAuditor, w.space), "You may not log in to app shop."},
		"manager":       {w.hire("mia", platform.SpaceManager, w.space), "You may not log in to app shop."},
	} {
		t.Run(name, func(t *testing.T) { refused(t, w.code(test.who), w.user(0), test.want) })
	}
	if seen := w.events("audit.app.ssh-unauthorized"); len(seen) != 3 || seen[0].Data["index"] != 0.0 || seen[0].Data["kind"] != "login" {
		t.Errorf("the audit trail of refusals is %+v", seen)
	}
	t.Run("an administrator", func(t *testing.T) {
		if out, err := w.ssh(person{name: "admin", password: adminPassword}, "true").CombinedOutput(); err != nil {
			t.Errorf("got %v\n%s", err, out)
		}
	})
	t.Run("an instance that is not there", func(t *testing.T) {
		refused(t, w.code(ann), w.user(3), "Process web of app shop has no instance 3.")
	})
	t.Run("disabled for the app", func(t *testing.T) {
		change := func(on bool) {
			get[platform.App](t)(w.store.UpdateApp(t.Context(), admin, w.app.GUID, func(a *platform.App) error { a.SSH = on; return nil }))
		}
		change(false)
		refused(t, w.code(ann), w.user(0), "ssh is disabled for app shop. Let a space developer run: proa enable-ssh shop")
		change(true)
	})
	t.Run("disabled in the space", func(t *testing.T) {
		change := func(on bool) {
			get[platform.Space](t)(w.store.UpdateSpace(t.Context(), admin, w.space.GUID, func(s *platform.Space) error { s.AllowSSH = on; return nil }))
		}
		change(false)
		refused(t, w.code(ann), w.user(0), "ssh is disabled in space dev. Let a space manager run: proa allow-space-ssh dev")
		change(true)
	})
	t.Run("too old", func(t *testing.T) {
		time.Sleep(time.Until(oldAt.Add(codeLife + time.Second)))
		refused(t, old, w.user(0), "The code is wrong, used or too old.")
	})
	t.Run("an event of who came in", func(t *testing.T) {
		if seen := w.events("audit.app.ssh-authorized"); len(seen) != 2 || seen[1].Actor.Name != "admin" {
			t.Errorf("the audit trail is %+v", seen)
		}
	})
	t.Run("an event of each session and target", func(t *testing.T) {
		before := len(w.events("audit.app.ssh-authorized"))
		client := w.dial(t, w.code(ann)) // is none
		for range 3 {
			must(t, get[*xssh.Session](t)(client.NewSession()).Run("true"))
			must(t, get[net.Conn](t)(client.Dial("tcp", "localhost:8080")).Close())
		}
		get[*xssh.Session](t)(client.NewSession()) // asks for nothing
		count := map[string]int{}
		for _, e := range w.events("audit.app.ssh-authorized")[before:] {
			count[fmt.Sprint(e.Actor.Name, e.Data["index"], e.Data["process_type"], e.Data["kind"], e.Data["target"])]++
		}
		if want := map[string]int{"ann0webexec<nil>": 3, "ann0webforwardlocalhost:8080": 1}; !maps.Equal(count, want) {
			t.Errorf("the audit trail has %v, want %v", count, want)
		}
	})
	t.Run("refused when in already", func(t *testing.T) {
		client := w.dial(t, w.code(ann))
		waiting := get[*xssh.Session](t)(client.NewSession())
		before := len(w.events("audit.app.ssh-unauthorized"))
		change := func(on bool) {
			get[platform.App](t)(w.store.UpdateApp(t.Context(), admin, w.app.GUID, func(a *platform.App) error { a.SSH = on; return nil }))
		}
		change(false)
		defer change(true)
		if out, err := waiting.CombinedOutput("echo in"); err == nil || strings.Contains(string(out), "in\n") {
			t.Errorf("a session that was only open begins: %q", out)
		}
		for range 3 {
			if _, err := client.NewSession(); err == nil || !strings.Contains(err.Error(), "ssh is disabled for app shop.") {
				t.Errorf("a new session: %v", err)
			}
			if _, err := client.Dial("tcp", "localhost:8080"); err == nil || !strings.Contains(err.Error(), "ssh is disabled for app shop.") {
				t.Errorf("a new tunnel: %v", err)
			}
		}
		var kinds []any
		for _, e := range w.events("audit.app.ssh-unauthorized")[before:] {
			kinds = append(kinds, e.Data["kind"])
		}
		if !slices.Equal(kinds, []any{"exec", "session", "forward"}) {
			t.Errorf("the audit trail has %v", kinds)
		}
	})
	t.Run("a role that is taken away", func(t *testing.T) {
		ben := w.hire("ben", platform.SpaceDeveloper, w.space)
		client := w.dial(t, w.code(ben))
		first := get[*xssh.Session](t)(client.NewSession())
		var said lockedBuffer
		first.Stderr = &said
		must(t, first.Start("sleep 3456"))
		w.until(10*time.Second, "the command", func() error { return w.inside("sleep 3456", 1) })
		roles := get[platform.Page[platform.Role]](t)(w.store.Roles(t.Context(), admin, platform.List{Page: 1, PerPage: 10, Values: map[string][]string{"user_guids": {ben.guid}, "types": {string(platform.SpaceDeveloper)}}}))
		get[platform.Job](t)(w.store.DeleteRole(t.Context(), admin, roles.Records[0].GUID))
		begun := time.Now()
		if _, err := client.NewSession(); err == nil || !strings.Contains(err.Error(), "This process is not there") {
			t.Errorf("a new session: %v", err)
		}
		if _, err := client.Dial("tcp", "localhost:8080"); err == nil {
			t.Error("a new tunnel is opened")
		}
		ended := make(chan error, 1)
		go func() { ended <- first.Wait() }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the old session goes on")
		}
		t.Logf("it ended after %.1f s: %q", time.Since(begun).Seconds(), &said)
		if !strings.Contains(said.String(), "This process is not there, or you do not see it.") {
			t.Errorf("it said %q", &said)
		}
		w.until(15*time.Second, "the end of the command", func() error { return w.inside("sleep 3456", 0) })
	})
	t.Run("stopped", func(t *testing.T) {
		get[platform.App](t)(w.store.StopApp(t.Context(), admin, w.app.GUID))
		refused(t, w.code(ann), w.user(0), "App shop is stopped. Start it with: proa start shop")
	})
	t.Run("guessing", func(t *testing.T) {
		for range 10 {
			_, _ = w.as("a guess", "ssh", "-l", w.user(0), "127.0.0.1", "true").CombinedOutput()
		}
		refused(t, w.code(ann), w.user(0), "Too many wrong codes came from your address.")
	})
	if log := w.server.log.String(); strings.Contains(log, old) || strings.Contains(log, "ssh secret") {
		t.Error("the log holds secrets")
	}
}

// dial is a client of our own, for what OpenSSH's cannot do.
func (w *world) dial(t *testing.T, code string) *xssh.Client {
	t.Helper()
	client, err := xssh.Dial("tcp", w.server.at, &xssh.ClientConfig{User: w.user(0), Auth: []xssh.AuthMethod{xssh.Password(code)}, Timeout: 10 * time.Second,
		HostKeyCallback: xssh.InsecureIgnoreHostKey()})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestRestart ends the server while somebody works.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	w.shop()
	ann := w.hire("ann", platform.SpaceDeveloper, w.space)
	cmd := w.ssh(ann, "sleep 4567")
	var said lockedBuffer
	cmd.Stderr = &said
	must(t, cmd.Start())
	w.until(15*time.Second, "the command", func() error { return w.inside("sleep 4567", 1) })
	begun := time.Now()
	must(t, w.server.cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); codeOf(err) != 255 || !strings.Contains(said.String(), "The ssh server is restarting. Connect again.") {
		t.Errorf("got %v\n%s", err, &said)
	}
	if err := w.server.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	t.Logf("the server was gone after %.1f s", time.Since(begun).Seconds())
	if err := w.inside("sleep 4567", 0); err != nil {
		t.Error(err)
	}
	w.serve()
	if out, err := w.ssh(ann, "true").CombinedOutput(); err != nil {
		t.Errorf("after that: %v\n%s", err, out)
	}
	if text := w.metrics(t); !strings.Contains(text, `proa_ssh_logins_total{outcome="good"} 1`) {
		t.Errorf("metrics lack the login:\n%s", text)
	}
}
