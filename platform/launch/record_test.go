package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRecordFits has the longest names there can be.
func TestRecordFits(t *testing.T) {
	c := crew{cfg: Config{Process: strings.Repeat(`"`, maxName)}}
	for range maxSidecars + 1 {
		c.members = append(c.members, &member{Process: Process{Name: strings.Repeat(`\`, maxName)}, pid: 1, state: Exited, ended: time.Now()})
	}
	c.first = c.members[1]
	c.first.failed(errors.New(strings.Repeat("\u2028\"", 1000)))
	text := c.record().encode()
	r, err := DecodeRecord(string(text))
	if err != nil || len(r.Processes)+r.Omitted != maxSidecars+1 || r.Process != c.cfg.Process {
		t.Errorf("%d bytes; got %+v, %v", len(text), r, err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(`{"process":"web","cause":"exited","status":137,"processes":[{"state":"exited"}]}`)
	f.Fuzz(func(t *testing.T, message string) {
		if r, err := DecodeRecord(message); err == nil {
			if _, err := DecodeRecord(string(r.encode())); err != nil && len(message) < MaxRecord/8 {
				t.Error(err)
			}
		}
	})
}

// TestWrite meets a log that nobody reads, one that is not there, and one as it should be.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	Misconfigured(pipe, errors.New("nobody reads this"))
	Misconfigured(filepath.Join(dir, "none"), errors.New("nor this"))
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a log was made where none was")
	}
	file := filepath.Join(dir, "log")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Misconfigured(file, errors.New("The launch configuration is wrong."))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := DecodeRecord(string(text)); err != nil || r.Cause != CauseMisconfigured || r.Status != 78 || r.Reason != "The launch configuration is wrong." {
		t.Errorf("got %+v, %v", r, err)
	}
}
