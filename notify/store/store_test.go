package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/store"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open is a store of its own with a clock that the test moves.
func open(t *testing.T, now *time.Time) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), pgtest.URL(t, nil), func() time.Time { return *now })
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// accept takes a message to an address.
func accept(t *testing.T, s *store.Store) store.Sending {
	t.Helper()
	var id string
	_, err := s.Accept(t.Context(), notify.Message{ClientID: "c", Audience: notify.Audience{Kind: notify.ToEmail, ID: "ann@example.org"}, Text: "hello", Class: notify.Normal},
		nil, store.May{Normal: true}, func(m notify.Message) any { id = m.ID; return id })
	must(t, err)
	m, err := s.Message(t.Context(), "c", id)
	must(t, err)
	return m
}

func TestOldDaysAreForgottenAndNewOnesMadeRoomFor(t *testing.T) {
	now := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	s := open(t, &now)
	old := accept(t, s)
	must(t, s.AddPeople(t.Context(), old, []notify.Person{{Address: "ann@example.org"}}, "", true))
	now = now.AddDate(0, 0, 20)
	must(t, s.Partitions(t.Context()))
	young := accept(t, s)
	now = now.AddDate(0, 0, 15)
	must(t, s.Partitions(t.Context()))
	dropped, err := s.Forget(t.Context(), 30*24*time.Hour)
	must(t, err)
	if dropped == 0 {
		t.Error("nothing was dropped")
	}
	if _, err := s.Message(t.Context(), "c", old.ID); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("a message of 35 days ago: %v", err)
	}
	if _, err := s.Message(t.Context(), "c", young.ID); err != nil {
		t.Errorf("a message of 15 days ago: %v", err)
	}
	accept(t, s)
}

func TestResultsCountOnce(t *testing.T) {
	now := time.Now()
	s := open(t, &now)
	m := accept(t, s)
	people := []notify.Person{{UserID: "a", Address: "a@example.org"}, {UserID: "b", Address: "b@example.org"}, {UserID: "a", Address: "a@example.org"}, {UserID: "c"}}
	must(t, s.AddPeople(t.Context(), m, people, "", true))
	if err := s.AddPeople(t.Context(), m, people, "", true); err == nil || !strings.Contains(err.Error(), "another worker") {
		t.Errorf("the same page twice: %v", err)
	}
	waiting, err := s.Waiting(t.Context(), store.Deliver{MessageID: m.ID, Chunk: 1})
	must(t, err)
	if len(waiting) != 2 {
		t.Fatalf("%d wait", len(waiting))
	}
	results := []store.Result{{Delivery: waiting[0], State: notify.Delivered}, {Delivery: waiting[1], State: notify.Queued, Reason: "busy", Code: "451", Next: now.Add(time.Minute)}}
	must(t, s.Record(t.Context(), m, results))
	must(t, s.Record(t.Context(), m, results[:1])) // as after a crash that came too late
	m, err = s.Message(t.Context(), "c", m.ID)
	must(t, err)
	if m.Counts.Total != 3 || m.Counts.Delivered != 1 || m.Counts.Queued != 1 || m.Counts.Skipped[notify.NoAddress] != 1 || m.State != notify.Queued {
		t.Errorf("%+v", m.Counts)
	}
	must(t, s.Bounced(t.Context(), waiting[0].ID, "5.1.1", "nobody", true))
	must(t, s.Bounced(t.Context(), waiting[0].ID, "5.1.1", "nobody", true))
	m, err = s.Message(t.Context(), "c", m.ID)
	must(t, err)
	if m.Counts.Delivered != 0 || m.Counts.Failed != 1 {
		t.Errorf("after a bounce that was told twice: %+v", m.Counts)
	}
}
