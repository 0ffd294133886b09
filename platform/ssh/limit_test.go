package ssh

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
)

func newGate() *gate {
	var l Limits
	l.fillIn()
	return &gate{limits: l}
}

func nothing() {}

func TestOneSubscriberIsOneAddress(t *testing.T) {
	g := newGate()
	let := 0
	for i := range 100 {
		if g.enter(netip.MustParseAddr(fmt.Sprintf("2001:db8::%x:1", i)), nothing) != nil {
			let++
		}
	}
	if let != g.limits.PerAddress {
		t.Errorf("%d strangers come from one /64", let)
	}
	if g.enter(netip.MustParseAddr("2001:db8:0:1::1"), nothing) == nil {
		t.Error("the next /64 has no room")
	}
}

func TestTheOldestStrangerMakesRoom(t *testing.T) {
	g := newGate()
	dropped := make([]int, 3*g.limits.Strangers)
	var places []*place
	for i := range dropped {
		p := g.enter(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), func() { dropped[i]++ })
		if p == nil {
			t.Fatalf("stranger %d has no room", i)
		}
		if i == 0 {
			if err := g.admit(p, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		places = append(places, p)
	}
	for i, n := range dropped {
		if old := i > 0 && i < len(dropped)-g.limits.Strangers; (n == 1) != old || n > 1 {
			t.Errorf("stranger %d was dropped %d times", i, n)
		}
	}
	if err := g.admit(places[1], "ann"); !errors.Is(err, errDropped) {
		t.Errorf("who was dropped comes in: %v", err)
	}
	for _, p := range places {
		g.leave(p)
	}
	if g.all != 0 || len(g.strangers) != 0 || len(g.from) != 0 || len(g.people) != 0 {
		t.Errorf("after all have left there are %+v", g)
	}
}

func TestOnePersonLeavesRoom(t *testing.T) {
	g := newGate()
	in := func(who string) (*place, error) {
		p := g.enter(netip.MustParseAddr("203.0.113.7"), nothing)
		if p == nil {
			t.Fatal("there is no room for a stranger")
		}
		err := g.admit(p, who)
		if err != nil {
			g.leave(p)
		}
		return p, err
	}
	var places []*place
	for range g.limits.PerPerson {
		p, err := in("ann")
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, p)
	}
	if _, err := in("ann"); !errors.Is(err, errPerson) {
		t.Errorf("one more connection: %v", err)
	}
	opened := 0
	for _, p := range places {
		for range 10 {
			if err := g.open(p); err == nil {
				opened++
			} else if !errors.Is(err, errTheirs) {
				t.Errorf("one more channel: %v", err)
			}
		}
	}
	if opened != g.limits.TheirOwn {
		t.Errorf("one person has %d channels", opened)
	}
	ben, err := in("ben")
	if err == nil {
		err = g.open(ben)
	}
	if err != nil {
		t.Errorf("somebody else: %v", err)
	}
	g.shut(places[0])
	if err := g.open(places[0]); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	for range opened {
		g.shut(places[0])
	}
	g.shut(ben)
	for _, p := range append(places, ben) {
		g.leave(p)
	}
	if g.all != 0 || g.channels != 0 || len(g.people) != 0 {
		t.Errorf("after all have left there are %+v", g)
	}
}

func TestNotesAreBounded(t *testing.T) {
	var v visit
	for i := range 10 * maxNotes {
		n := note{"p", entry(fmt.Sprint("host:", i), false)}
		if !v.note(n) || v.note(n) {
			t.Fatalf("target %d is not written down once", i)
		}
		if !v.note(note{"p", entry(n.entry.Target, true)}) {
			t.Fatalf("the refusal of target %d is not written down", i)
		}
	}
	if len(v.noted) > maxNotes {
		t.Errorf("%d notes are kept", len(v.noted))
	}
	n := note{"p", entry("last", false)}
	v.note(n)
	if v.forget(n); !v.note(n) {
		t.Error("what could not be written down is not tried again")
	}
}
