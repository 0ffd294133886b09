package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// MaxRecord is what Kubernetes keeps of a termination message.
const MaxRecord = 4096

const (
	maxReason   = 400
	outOfMemory = "The process was ended because the container was out of memory."
)

// Cause is why the container ended.
type Cause string

// A container ends because a process did, because one could not be started, because the platform asked for it, or
// because the configuration makes no sense.
const (
	CauseExited        Cause = "exited"
	CauseUnstartable   Cause = "unstartable"
	CauseStopped       Cause = "stopped"
	CauseMisconfigured Cause = "misconfigured"
)

// Record is what the termination log holds: who ended first, how, and what became of all. Whoever reads it should know
// that the app could have written it.
type Record struct {
	Process     string    `json:"process"`
	Index       int       `json:"index"`
	Sidecar     string    `json:"sidecar,omitempty"` // none: it was the main process
	Cause       Cause     `json:"cause"`
	Status      int       `json:"status"` // 128+n for signal n
	Signal      int       `json:"signal,omitempty"`
	OutOfMemory bool      `json:"out_of_memory,omitempty"`
	Reason      string    `json:"reason"`
	Description string    `json:"description"`
	Time        time.Time `json:"time"`
	Processes   []Final   `json:"processes,omitempty"`
	Omitted     int       `json:"omitted,omitempty"` // how many processes had no room
}

// Final is what became of one process.
type Final struct {
	Sidecar string `json:"sidecar,omitempty"`
	State   State  `json:"state"`
	Status  int    `json:"status"`
}

// DecodeRecord reads a termination message.
func DecodeRecord(message string) (Record, error) {
	var r Record
	if len(message) > MaxRecord {
		return r, fmt.Errorf("exit record: longer than %d bytes", MaxRecord)
	}
	if err := json.Unmarshal([]byte(message), &r); err != nil {
		return Record{}, fmt.Errorf("exit record: %w", err)
	}
	return r, nil
}

// Misconfigured leaves a record of a configuration that cannot be run.
func Misconfigured(file string, cause error) {
	write(file, Record{
		Cause: CauseMisconfigured, Status: statusMisconfigured, Time: time.Now().UTC(),
		Reason: clip(cause.Error(), maxReason), Description: "APP: Could not be launched",
	})
}

// leave writes the record as things stand.
func (c *crew) leave() {
	write(c.cfg.TerminationLog, c.record())
}

func (c *crew) record() Record {
	m := c.blame()
	r := Record{Process: c.cfg.Process, Index: c.index, Sidecar: m.Name, Cause: CauseExited, Status: m.status, Signal: int(m.signal), Reason: m.reason, Time: m.ended.UTC()}
	place := "APP/PROC/" + strings.ToUpper(c.cfg.Process)
	if m.Name != "" {
		place += "/SIDECAR/" + strings.ToUpper(m.Name)
	}
	r.Description = fmt.Sprintf("%s: Exited with status %d", place, m.status)
	switch {
	case c.first == nil:
		r.Cause, r.Time = CauseStopped, time.Now().UTC()
		r.Reason, r.Description = "The platform asked the app to stop.", place+": Stopped by the platform"
	case m.reason == outOfMemory:
		r.OutOfMemory = true
		r.Description += " (out of memory)"
	case m.pid == 0:
		r.Cause = CauseUnstartable
	}
	for _, m := range c.members {
		r.Processes = append(r.Processes, Final{Sidecar: m.Name, State: m.state, Status: m.status})
	}
	return r
}

// encode leaves out as many processes as it must to fit.
func (r Record) encode() []byte {
	for {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // six bytes for a < would be too many
		if err := e.Encode(r); err != nil {
			return []byte(err.Error()) // cannot be: all of it is strings and numbers
		}
		if text.Len() <= MaxRecord || len(r.Processes) == 0 {
			return text.Bytes()
		}
		r.Processes, r.Omitted = r.Processes[:len(r.Processes)-1], r.Omitted+1
	}
}

// write never waits: where the log should be, the app may have put something that nobody reads. Nor does it make a file
// where there is none: then nobody looks for one, and the exit code is all there is.
func write(file string, r Record) {
	fd, err := syscall.Open(file, syscall.O_WRONLY|syscall.O_TRUNC|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = syscall.Write(fd, r.encode())
	_ = syscall.Close(fd)
}

// clip shortens a text without cutting a character in two.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	text = text[:size]
	for !utf8.ValidString(text) && text != "" {
		text = text[:len(text)-1]
	}
	return text + "…"
}
