package notify_test

import (
	"testing"
	"time"

	"github.com/proa-dev/proa/notify"
)

func TestDecide(t *testing.T) {
	ann := notify.Person{UserID: "u", Address: "ann@example.org"}
	with := func(change func(*notify.Person)) notify.Person {
		p := ann
		change(&p)
		return p
	}
	for _, c := range []struct {
		name             string
		person           notify.Person
		normal, critical notify.Reason
	}{
		{"somebody", ann, "", ""},
		{"unsubscribed from the kind", with(func(p *notify.Person) { p.Unsubscribed = true }), notify.Unsubscribed, ""},
		{"unsubscribed from all", with(func(p *notify.Person) { p.NoMail = true }), notify.NoMail, ""},
		{"from all, and from the kind", with(func(p *notify.Person) { p.NoMail, p.Unsubscribed = true, true }), notify.NoMail, ""},
		{"suppressed", with(func(p *notify.Person) { p.Suppressed = true }), notify.Suppressed, notify.Suppressed},
		{"no address", with(func(p *notify.Person) { p.Address = "" }), notify.NoAddress, notify.NoAddress},
		{"malformed address", with(func(p *notify.Person) { p.Address = "ann at example" }), notify.NoAddress, notify.NoAddress},
		{"two addresses in one", with(func(p *notify.Person) { p.Address = "a@example.org, b@example.org" }), notify.NoAddress, notify.NoAddress},
		{"disabled", with(func(p *notify.Person) { p.Inactive = true }), notify.Inactive, notify.Inactive},
		{"unknown", notify.Person{UserID: "u", Unknown: true}, notify.UnknownPerson, notify.UnknownPerson},
		{"forgotten", with(func(p *notify.Person) { p.Erased = true }), notify.Erased, notify.Erased},
	} {
		if got := notify.Decide(false, c.person); got != c.normal {
			t.Errorf("%s: %q, want %q", c.name, got, c.normal)
		}
		if got := notify.Decide(true, c.person); got != c.critical {
			t.Errorf("%s, critical: %q, want %q", c.name, got, c.critical)
		}
	}
}

func TestSuppresses(t *testing.T) {
	for status, want := range map[string]bool{"5.1.1": true, "5.1.10": true, "5.2.1": true, "5.2.2": false, "5.7.1": false, "4.1.1": false, "": false} {
		if notify.Suppresses(status) != want {
			t.Errorf("%q", status)
		}
	}
}

func TestAnIDTellsItsTime(t *testing.T) {
	now := time.Date(2026, 11, 14, 23, 42, 0, 123e6, time.UTC)
	id := notify.NewID(now)
	if at, ok := notify.TimeOf(id); !ok || !at.Equal(now) || len(id) != 32 {
		t.Errorf("%s is of %v", id, at)
	}
	for _, bad := range []string{"", "x", id + "0", id[:31], "zz" + id[2:], "ffffffffffff" + id[12:]} {
		if _, ok := notify.TimeOf(bad); ok {
			t.Errorf("%q is no id", bad)
		}
	}
}
