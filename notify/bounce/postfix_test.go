package bounce_test

import (
	"errors"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proa-dev/proa/notify/bounce"
)

// postfix is a real one, alone in a directory of its own.
type postfix struct {
	address, mail, log string
}

// startPostfix hands bounces to an LMTP address. The test ends when it cannot start: a skipped test would prove nothing.
func startPostfix(t *testing.T, bounces string) postfix {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("Postfix starts as root only, and this test is about a real one. Run it as root, or leave this package out.")
	}
	dir, err := os.MkdirTemp("/var/tmp", "proa-postfix-") // not t.TempDir: the users of Postfix must be able to enter
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("../../engines/postfix/run.sh", args...)
		cmd.Env = append(os.Environ(), "PROA_STATE="+dir+"/state")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("run.sh %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() {
		run("stop")
		if left := workingIn(dir); len(left) > 0 {
			t.Errorf("run.sh stop leaves these processes: %q", left)
		}
		run("destroy")
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	run("start", "test", bounces)
	again := run("start", "test", bounces)
	if !strings.Contains(again, "already runs") {
		t.Errorf("the second start says %q", again)
	}
	if len(workingIn(dir)) == 0 {
		t.Error("the look for processes that are left sees none while Postfix runs, so it proves nothing")
	}
	box := run("mail", "test")
	return postfix{address: run("address", "test"), mail: box, log: filepath.Join(filepath.Dir(box), "log")}
}

// workingIn lists the processes that work in a directory.
func workingIn(dir string) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range all {
		if cwd, _ := os.Readlink(process + "/cwd"); strings.HasPrefix(cwd, dir) {
			line, _ := os.ReadFile(process + "/cmdline")
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func (p postfix) send(t *testing.T, from, to string) {
	t.Helper()
	text := "From: Notices <no-reply@example.org>\r\nTo: " + to + "\r\nSubject: The space is full\r\n\r\nThe space has no memory left.\r\n"
	if err := smtp.SendMail(p.address, nil, from, []string{to}, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// until waits for something to happen; what Postfix logged tells why it did not.
func (p postfix) until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(p.log)
			t.Fatalf("%s: not within a minute. Postfix says:\n%s", what, log)
		}
	}
}

func TestPostfix(t *testing.T) {
	var asked atomic.Int32
	office := serve(t, &post{refuse: func(bounce.Report) error {
		if asked.Add(1) == 1 {
			return errors.New("the first time it is not convenient")
		}
		return nil
	}}, 0)
	p := startPostfix(t, office.address)

	// Mail to someone arrives, with its way back on it.
	p.send(t, path.For(otherID), "alice@example.org")
	p.until(t, "mail to alice in the Maildir", func() bool {
		mails, _ := filepath.Glob(p.mail + "/new/*")
		if len(mails) != 1 {
			return false
		}
		text, _ := os.ReadFile(mails[0])
		return strings.Contains(string(text), "Return-Path: <"+path.For(otherID)+">")
	})

	// Mail to nobody comes back, about the right delivery, and again after it was put off.
	p.send(t, path.For(id), "nobody-alice@example.org")
	p.until(t, "a report that is taken at the second try", func() bool { return len(office.reports()) > 0 })
	want := bounce.Report{
		DeliveryID: id, Hard: true, Status: "5.1.1", Action: "failed", Recipient: "nobody-alice@example.org",
		Diagnostic: "550 5.1.1 <nobody-alice@example.org>: Recipient address rejected: User unknown",
	}
	if got := office.reports(); len(got) != 1 || got[0] != want {
		t.Errorf("took %+v, want %+v", got, want)
	}
	if asked.Load() != 2 {
		t.Errorf("it came %d times", asked.Load())
	}

	// Mail with a way back that we did not sign ends at the door, and makes no further mail.
	forged := path
	forged.Key = []byte("guessed")
	p.send(t, forged.For(id), "bounce@proa.localhost")
	p.until(t, "the refusal of a forged return path", func() bool {
		log, _ := os.ReadFile(p.log)
		return strings.Contains(string(log), "550 5.1.1 No mail of ours returns to this address")
	})

	// Nothing leaves this machine.
	err := smtp.SendMail(p.address, nil, path.For(id), []string{"alice@example.edu"}, []byte("Subject: x\r\n\r\n"))
	if err == nil || !strings.Contains(err.Error(), "5.1.2") {
		t.Errorf("mail to another machine: %v", err)
	}
	if len(office.reports()) != 1 || asked.Load() != 2 {
		t.Errorf("took %+v", office.reports())
	}
}
