package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

// A send to everyone is read from the directory, written down, composed, sent and written down again. The bare engine only sends:
// mails of the same bytes, over as many connections, to the same sink.
var notifyEveryone = figure{
	name:  everyoneName,
	about: "a mail to everyone: how soon it is accepted, memory, time by size, and mails per second beside a bare client's",
	run:   measureEveryone,
}

const (
	everyoneName = "notify.everyone"
	minPeople    = 1000
	maxPeople    = 4_000_000 // the sink knows so many apart
	maxAccept    = 200       // milliseconds
	maxNotify    = 256       // megabytes
	relayWait    = 5 * time.Millisecond
)

func measureEveryone(ctx context.Context, b *bench) ([]line, error) {
	var rounds []everyone
	err := b.withAuth(ctx, func(ctx context.Context, s *authServer) error {
		secret, err := s.newClient(ctx, "bench", tokenScopes...)
		if err != nil {
			return err
		}
		return b.withSink(ctx, func(ctx context.Context, to *sink) error {
			have := 0
			for _, e := range []everyone{{people: b.people / 100, wait: relayWait}, {people: b.people / 100}, {people: b.people / 10}, {people: b.people}} {
				total, err := addUsers(ctx, s.database, have+1, e.people)
				if err != nil {
					return err
				}
				have, e.mails = e.people, total
				err = b.withNotify(ctx, s, to, func(ctx context.Context, n *notifyServer) error {
					n.client.Token = s.conn().ClientCredentials("bench", secret)
					return e.send(ctx, s, n, to)
				})
				if err != nil {
					return err
				}
				rounds = append(rounds, e)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return append(everyoneLines(rounds[1:]), rounds[0].rate(".rate_relay", fmt.Sprintf("the sink takes %s for each mail, as a relay that writes it down does", relayWait))), nil
}

// everyone is one send, and the bare client's of as many mails.
type everyone struct {
	people int           // user-1 and so on
	mails  int           // one for each of them, and for the administrator
	wait   time.Duration // of the sink, for each mail

	size               int // of one mail, in bytes
	accept, bareOne    time.Duration
	took               time.Duration // from the request to the last mail
	ours, bare         cores
	memory, bareMemory float64
}

func (e *everyone) send(ctx context.Context, s *authServer, n *notifyServer, to *sink) error {
	kind := map[string]any{"source_name": "The bench", "notifications": map[string]any{"news": map[string]any{"description": "What is new", "critical": false}}}
	if err := n.client.Call(ctx, http.MethodPut, "/notifications", kind, nil); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	if err := to.empty(ctx, e.wait); err != nil {
		return err
	}
	w, err := watchServer(ctx, n.pid, n.database)
	if err != nil {
		return err
	}
	w.directory, w.sink = s.pid, to.pid
	say("%s: a mail to %s people", everyoneName, number(float64(e.mails)))
	var got came
	_, e.ours, err = w.during(func() (_ int64, err error) {
		got, err = e.ask(ctx, n, to)
		return int64(e.mails), err
	})
	if err != nil {
		return err
	}
	if e.memory, err = peakMemory(n.pid); err != nil {
		return err
	}
	e.size = len(got.First.Raw)
	return e.sendBare(ctx, w, to, got.First)
}

// ask sends, and returns when everyone has their mail. It fails unless each has one, and the service knows.
func (e *everyone) ask(ctx context.Context, n *notifyServer, to *sink) (came, error) {
	var accepted []struct {
		ID string `json:"notification_id"`
	}
	begin := time.Now()
	err := n.client.Call(ctx, http.MethodPost, "/everyone", map[string]string{"kind_id": "news", "subject": "A new harbour",
		"text": strings.Repeat("The harbour is open. ", 20), "html": "<p>" + strings.Repeat("The <b>harbour</b> is open. ", 20) + "</p>"}, &accepted)
	e.accept = time.Since(begin)
	if err != nil || len(accepted) != 1 {
		return came{}, fmt.Errorf("send to everyone: %v, %w", accepted, err)
	}
	got, err := to.await(ctx, int64(e.mails))
	if err != nil {
		return got, err
	}
	e.took = got.Last.Sub(begin)
	if err := n.settled(ctx, accepted[0].ID, e.mails); err != nil {
		return got, err
	}
	// The administrator, too, has a mail, but no number.
	if got, err = to.came(ctx); err == nil && (got.Mails != int64(e.mails) || got.People != int64(e.mails-1)) {
		err = fmt.Errorf("%d mails reached %d people instead of %d", got.Mails, got.People+1, e.mails)
	}
	return got, err
}

// settled waits until the service says that it has delivered so many, and no other.
func (n *notifyServer) settled(ctx context.Context, id string, total int) error {
	for end := time.Now().Add(stopped); ; {
		var status struct {
			Status                   string
			Total, Delivered, Failed int
		}
		if err := n.client.Call(ctx, http.MethodGet, "/messages/"+id, nil, &status); err != nil {
			return err
		}
		switch {
		case status.Status == "delivered" && status.Total == total && status.Delivered == total:
			return nil
		case status.Failed > 0 || time.Now().After(end):
			return fmt.Errorf("the service says %+v", status)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (e *everyone) sendBare(ctx context.Context, w watch, to *sink, m *smtptest.Mail) error {
	if err := to.empty(ctx, e.wait); err != nil {
		return err
	}
	sender := newBareSender(to.addr, m)
	begin := time.Now()
	if err := sender.send(ctx, 1, 1); err != nil {
		return err
	}
	e.bareOne = time.Since(begin)
	debug.FreeOSMemory()
	if err := forgetPeak(); err != nil {
		return err
	}
	say("%s: %s mails by the bare client", everyoneName, number(float64(e.mails)))
	_, spent, err := w.during(func() (int64, error) { return int64(e.mails), sender.send(ctx, int64(e.mails), smtpConns) })
	if err != nil {
		return err
	}
	e.bare = spent
	if e.bareMemory, err = peakMemory(os.Getpid()); err != nil {
		return err
	}
	got, err := to.came(ctx)
	if err == nil && got.Mails != int64(e.mails)+1 {
		err = fmt.Errorf("%d mails came instead of %d", got.Mails, e.mails+1)
	}
	return err
}

// everyoneLines says what the rounds showed. The last is the largest.
func everyoneLines(rounds []everyone) []line {
	last := rounds[len(rounds)-1]
	lines := []line{
		{name: everyoneName + ".accept", ours: quantity{millis(last.accept), "ms"}, bare: quantity{millis(last.bareOne), "ms for one mail"},
			aim: aim{of: "ours", is: "<", bound: maxAccept, unit: " ms"}},
	}
	for _, r := range rounds {
		lines = append(lines, line{name: everyoneName + ".memory_" + short(r.people), ours: quantity{r.memory, "MB"}, bare: quantity{r.bareMemory, "MB"},
			aim: aim{of: "ours", is: "<", bound: maxNotify, unit: " MB"}})
	}
	for _, r := range rounds[:len(rounds)-1] {
		ours, bare := r.ours.unit(r.mails), r.bare.unit(r.mails)
		lines = append(lines, line{name: everyoneName + ".linear_" + short(r.people),
			ours: quantity{last.ours.unit(last.mails) / ours, "of each then"}, bare: quantity{last.bare.unit(last.mails) / bare, "of each then"}, aim: aim{of: "ours", is: "<=", bound: 1.3},
			notes: []string{fmt.Sprintf("a mail took %.0f µs among %s, and %.0f µs among %s", ours, number(float64(r.mails)), last.ours.unit(last.mails), number(float64(last.mails)))}})
	}
	return append(lines, last.rate(".rate", "the sink takes no time but its own"))
}

func (e *everyone) rate(name, note string) line {
	ours, bare := float64(e.mails)/e.took.Seconds(), float64(e.mails)/e.bare.passed.Seconds()
	if e.wait == 0 { // the cores limit
		ours, bare = ours/e.ours.left(), bare/e.bare.left()
	}
	return line{name: everyoneName + name, ours: quantity{ours, "mails/s"}, bare: quantity{bare, "mails/s"},
		aim: aim{of: "ratio", is: ">=", bound: 0.8}, notes: []string{
			fmt.Sprintf("%s mails of %d bytes over %d connections: %.1f s from the request to the last mail, %.1f s by the bare client; %s",
				number(float64(e.mails)), e.size, smtpConns, e.took.Seconds(), e.bare.passed.Seconds(), note),
			"ours: " + e.ours.String(), "bare: " + e.bare.String(), "one mail took " + perMail(e.ours, e.mails) + "; of the bare client " + perMail(e.bare, e.mails)}}
}

// unit is the time of one, in microseconds.
func (c cores) unit(times int) float64 { return 1e6 / c.rate(int64(times)) }

func perMail(c cores, mails int) string {
	each := func(d time.Duration) float64 { return 1e6 * d.Seconds() / float64(mails) }
	return fmt.Sprintf("%.0f µs of the service, %.0f µs of PostgreSQL, %.0f µs of the directory, %.0f µs of the sink and %.0f µs of this process",
		each(c.server), each(c.engine), each(c.directory), each(c.sink), each(c.load))
}

func millis(d time.Duration) float64 { return 1000 * d.Seconds() }

// short writes a round number as people say it: 10k, 1m.
func short(n int) string {
	switch {
	case n%1_000_000 == 0:
		return fmt.Sprintf("%dm", n/1_000_000)
	case n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
