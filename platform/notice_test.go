package platform

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCrashNotice(t *testing.T) {
	c := Crash{Index: 1, Count: 3, Exit: Exit{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600)), Description: "APP/PROC/WEB/SIDECAR/CONFIG-SERVER: Exited with status 137"}}
	got := c.Notice("shop", "web", Where{Org: "acme", Space: "dev"})
	want := `Instance 1 of process web of app shop has crashed three times in a row.

  What ended: APP/PROC/WEB/SIDECAR/CONFIG-SERVER: Exited with status 137
  When:       1 March 2026, 11:00:00 UTC
  Space:      dev, of organization acme

It is being started again. Should it go on like that, it waits longer before each start, up to 16 minutes. You are told once, not for each crash that follows.

To see more:

  proa target -o acme -s dev
  proa logs shop --recent
  proa events shop

You get this because the app asks for it. No more of them: proa disable-notifications shop
`
	if got.Kind != "app.crashing" || got.Subject != "App shop crashed three times" || got.Text != want {
		t.Errorf("%s: %s\n%s", got.Kind, got.Subject, got.Text)
	}
	c.Count = 7 // whoever asks to be told in the middle of a streak
	if got := c.Notice("shop", "web", Where{Org: "acme", Space: "dev"}); got.Subject != "App shop crashed 7 times" || !strings.Contains(got.Text, "of app shop has crashed 7 times in a row.") {
		t.Errorf("the seventh: %s\n%s", got.Subject, got.Text)
	}
}

func TestFailureNotice(t *testing.T) {
	got := FailedOperation{Kind: InstanceCreate, Title: "service instance 'my-db'", Words: "The service broker could not do it: no room.", Instance: "my-db",
		At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Apps: []string{"also", "shop"}}.Notice(Where{Org: "acme", Space: "dev"})
	want := `Creating service instance 'my-db' failed.

  Why:        The service broker could not do it: no room.
  When:       1 March 2026, 12:00:00 UTC
  Space:      dev, of organization acme

To see more:

  proa target -o acme -s dev
  proa service my-db

You get this because these apps of the space ask for it: also, shop. No more of them: proa disable-notifications also; proa disable-notifications shop
`
	if got.Kind != "service.failed" || got.Subject != "Creating service instance 'my-db' failed" || got.Text != want {
		t.Errorf("%s: %s\n%s", got.Kind, got.Subject, got.Text)
	}
}

// TestNoticeOfManyApps: one app is asked for by its name, and hundreds of long names still fit into a mail.
func TestNoticeOfManyApps(t *testing.T) {
	notice := func(apps ...string) Notice {
		return FailedOperation{Kind: InstanceUpdate, Title: "service instance 'db'", Instance: "db", Apps: apps}.Notice(Where{Org: "acme", Space: "dev"})
	}
	if got := notice("my shop").Text; !strings.HasSuffix(got, "\nYou get this because an app of the space asks for it. No more of them: proa disable-notifications 'my shop'\n") {
		t.Errorf("one app:\n%s", got)
	}
	got := notice(slices.Repeat([]string{strings.Repeat("'", maxAppName)}, 1000)...)
	if len(got.Text) > 256<<10 || len(got.HTML) > 512<<10 || !strings.Contains(got.Text, "and 980 more") {
		t.Errorf("many apps: %d and %d bytes", len(got.Text), len(got.HTML))
	}
}

// TestNoticeOfHostileNames: names and reasons are others' words. They stay one line, no markup, and one word for a shell.
func TestNoticeOfHostileNames(t *testing.T) {
	c := Crash{Count: 3, Exit: Exit{Description: OneLine("APP/PROC/WEB: <img src=x>\nBcc: eve@example.org")}}
	got := c.Notice("<b>'$(rm -rf .)'</b>", "web", Where{Org: "a;b", Space: "x y"})
	if strings.ContainsAny(got.Subject, "\r\n") || strings.Contains(got.HTML, "<img") || strings.Contains(got.HTML, "<b>'") || strings.Contains(got.HTML, "'$(") {
		t.Errorf("%s\n%s", got.Subject, got.HTML)
	}
	for _, line := range []string{"  proa target -o 'a;b' -s 'x y'\n", `  proa logs '<b>'\''$(rm -rf .)'\''</b>' --recent` + "\n"} {
		if !strings.Contains(got.Text, line) {
			t.Errorf("%s is not in\n%s", line, got.Text)
		}
	}
}
