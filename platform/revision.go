package platform

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Revision is an app as it was started once: its droplet and its setup. An app that is started again unchanged has no new one.
type Revision struct {
	GUID        string
	AppGUID     string
	Version     int // counts the revisions of the app
	Droplet     string
	Description string // what was new
	Deployable  bool   // its droplet is still there
	Setup       Setup
	Metadata    Metadata
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Setup is what of an app takes part in a rollback, beside its droplet. Sizes and counts do not: going back to earlier code must
// not undo a scale.
type Setup struct {
	Env      map[string]string
	Commands map[string]*string // of each process, by type; nil: what the droplet says
	Sidecars []Sidecar          // by name
}

// SetupOf is the setup of an app as it is.
func SetupOf(a App, processes []Process, sidecars []Sidecar) Setup {
	s := Setup{Env: maps.Clone(a.Env), Commands: map[string]*string{}}
	for _, p := range processes {
		s.Commands[p.Type] = p.Command
	}
	for _, c := range sidecars {
		s.Sidecars = append(s.Sidecars, Sidecar{Name: c.Name, Command: c.Command, ProcessTypes: c.ProcessTypes, MemoryMB: c.MemoryMB, Origin: c.Origin})
	}
	slices.SortFunc(s.Sidecars, func(a, b Sidecar) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// Undo is a setup with what was instead of what was made of it, where it is still as it was made: each variable, each command and each
// sidecar for itself.
func (s Setup) Undo(made, was Setup) Setup {
	undone := Setup{Env: undoEach(s.Env, made.Env, was.Env, func(a, b string) bool { return a == b }), Commands: undoEach(s.Commands, made.Commands, was.Commands, sameCommand)}
	sidecars := undoEach(byName(s.Sidecars), byName(made.Sidecars), byName(was.Sidecars), sameSidecar)
	for _, name := range slices.Sorted(maps.Keys(sidecars)) {
		undone.Sidecars = append(undone.Sidecars, sidecars[name])
	}
	return undone
}

func byName(sidecars []Sidecar) map[string]Sidecar {
	all := map[string]Sidecar{}
	for _, c := range sidecars {
		all[c.Name] = c
	}
	return all
}

func undoEach[T any](now, made, was map[string]T, same func(a, b T) bool) map[string]T {
	agree := func(a, b map[string]T, key string) bool {
		x, inA := a[key]
		y, inB := b[key]
		return inA == inB && (!inA || same(x, y))
	}
	all := map[string]T{}
	maps.Copy(all, now)
	undo := func(key string) {
		if agree(made, was, key) || !agree(now, made, key) {
			return
		}
		delete(all, key)
		if value, known := was[key]; known {
			all[key] = value
		}
	}
	for key := range made {
		undo(key)
	}
	for key := range was {
		undo(key)
	}
	return all
}

// Changes tells what is new about a revision, in Cloud Foundry's words; nothing if it is as the one before was.
func (r *Revision) Changes(before *Revision) string {
	if before == nil {
		return "Initial revision."
	}
	var all []string
	if r.Droplet != before.Droplet {
		all = append(all, "New droplet deployed.")
	}
	if !maps.Equal(r.Setup.Env, before.Setup.Env) {
		all = append(all, "New environment variables deployed.")
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Setup.Commands)) {
		was, known := before.Setup.Commands[kind]
		if text := commandChange(kind, was, r.Setup.Commands[kind], known); text != "" {
			all = append(all, text)
		}
	}
	if !slices.EqualFunc(r.Setup.Sidecars, before.Setup.Sidecars, sameSidecar) {
		all = append(all, "New sidecars deployed.")
	}
	return strings.Join(all, " ")
}

func commandChange(kind string, was, is *string, known bool) string {
	switch {
	case !known:
		return fmt.Sprintf("New process type '%s' added.", kind)
	case sameCommand(was, is):
		return ""
	case was == nil:
		return fmt.Sprintf("Custom start command added for '%s' process.", kind)
	case is == nil:
		return fmt.Sprintf("Custom start command removed for '%s' process.", kind)
	}
	return fmt.Sprintf("Custom start command updated for '%s' process.", kind)
}

func sameCommand(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func sameSidecar(a, b Sidecar) bool {
	sameMemory := (a.MemoryMB == nil) == (b.MemoryMB == nil) && (a.MemoryMB == nil || *a.MemoryMB == *b.MemoryMB)
	return sameMemory && a.Name == b.Name && a.Command == b.Command && a.Origin == b.Origin && slices.Equal(a.ProcessTypes, b.ProcessTypes)
}
