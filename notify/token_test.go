package notify_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/notify"
)

var unsubscribe = notify.Unsubscribe{
	UserID: "7e2f4c1a-3b5d-4f60-8c9d-1a2b3c4d5e6f", ClientID: "wächter", KindID: "disk.full", Issued: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
}

func TestUnsubscribe(t *testing.T) {
	b, err := unsubscribe.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	want := "\x01\x69\x57\x35\xa5\x24" + unsubscribe.UserID + "\x08wächter\x09disk.full"
	if string(b) != want {
		t.Errorf("got %q, want %q", b, want)
	}
	var got notify.Unsubscribe
	if err := got.UnmarshalBinary(b); err != nil || got != unsubscribe {
		t.Errorf("got %+v, %v", got, err)
	}
	longest := unsubscribe
	longest.ClientID = strings.Repeat("c", 255)
	if b, err = longest.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	if err := got.UnmarshalBinary(b); err != nil || got != longest {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnsubscribeRefuses(t *testing.T) {
	for name, change := range map[string]func(*notify.Unsubscribe){
		"nobody":          func(u *notify.Unsubscribe) { u.UserID = "" },
		"no client":       func(u *notify.Unsubscribe) { u.ClientID = "" },
		"no kind":         func(u *notify.Unsubscribe) { u.KindID = "" },
		"long":            func(u *notify.Unsubscribe) { u.KindID = strings.Repeat("x", 256) },
		"not UTF-8":       func(u *notify.Unsubscribe) { u.ClientID = "\xff" },
		"NUL":             func(u *notify.Unsubscribe) { u.ClientID = "a\x00" },
		"no time":         func(u *notify.Unsubscribe) { u.Issued = time.Time{} },
		"beyond all time": func(u *notify.Unsubscribe) { u.Issued = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		u := unsubscribe
		change(&u)
		if _, err := u.MarshalBinary(); !errors.Is(err, notify.ErrUnsubscribe) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	whole, err := unsubscribe.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var u notify.Unsubscribe
	for n := range len(whole) {
		if err := u.UnmarshalBinary(whole[:n]); !errors.Is(err, notify.ErrUnsubscribe) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":         nil,
		"more":            append(bytes.Clone(whole), 0),
		"another version": append([]byte{2}, whole[1:]...),
		"an empty id":     []byte("\x01\x00\x00\x00\x01\x00\x01a\x01b"),
		"not UTF-8":       []byte("\x01\x00\x00\x00\x01\x01\xff\x01a\x01b"),
	} {
		if err := u.UnmarshalBinary(b); !errors.Is(err, notify.ErrUnsubscribe) || u != (notify.Unsubscribe{}) {
			t.Errorf("%s: %v, %+v", name, err, u)
		}
	}
}

// FuzzUnsubscribe: what is read is exactly what would be written.
func FuzzUnsubscribe(f *testing.F) {
	whole, err := unsubscribe.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte("\x01\x00\x00\x00\x01\x01c\x01a\x01b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var u notify.Unsubscribe
		if err := u.UnmarshalBinary(b); err != nil {
			return
		}
		again, err := u.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x was read and written as %x (%v)", b, again, err)
		}
	})
}
