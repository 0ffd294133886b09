package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
	"github.com/proa-dev/proa/notify/store"
)

// storm is how many people a send to everyone reaches: few enough for every run, or PROA_STORM (100000 is the size to show).
func storm(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("PROA_STORM"), "20000"))
	must(t, err)
	return n
}

const (
	connections = 8  // of the bulk lane, set below
	jobs        = 4  // of the bulk lane at once: lanes in notify/deliver
	group       = 64 // results that are written together: recordEach in notify/deliver
	// Mails that a process has sent without having written so, at most: for each job a group that is being written, a group that
	// gathers, and what its senders hold, one for each connection.
	unwritten = jobs * (group + group + connections)
	patience  = 4 * time.Minute
)

// mailbox is the sink of a storm. It keeps what tells mails apart, and can go away and come back.
type mailbox struct {
	t       *testing.T
	address string
	server  *smtptest.Server

	mu     sync.Mutex
	came   map[string][]parcel // by recipient
	sender map[string]int      // by return path
	total  int
}

type parcel struct {
	id, subject string // Message-ID and Subject
	at          time.Time
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	b := &mailbox{t: t, address: freeAddress(t), came: map[string][]parcel{}, sender: map[string]int{}}
	b.open()
	t.Cleanup(func() { b.server.Close() })
	return b
}

func (b *mailbox) open() {
	b.t.Helper()
	s, err := smtptest.Start(smtptest.Options{Addr: b.address, OnMail: b.take})
	must(b.t, err)
	b.server = s
}

func (b *mailbox) take(m smtptest.Mail) {
	p := parcel{header(m.Raw, "Message-ID"), header(m.Raw, "Subject"), time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.came[m.To] = append(b.came[m.To], p)
	b.sender[m.From]++
	b.total++
}

func header(raw []byte, name string) string {
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	_, value, _ := strings.Cut("\r\n"+unfold(string(head)), "\r\n"+name+":")
	value, _, _ = strings.Cut(value, "\r\n")
	return strings.TrimSpace(value)
}

// count is how many mails came, twins included.
func (b *mailbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

func (b *mailbox) from(address string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sender[address]
}

// find gives the mail to somebody about something.
func (b *mailbox) find(address, subject string) (parcel, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.came[address] {
		if strings.HasSuffix(p.subject, subject) {
			return p, true
		}
	}
	return parcel{}, false
}

// complete wants a mail for everybody, each with a Message-ID of its own, and the same one on every twin. It returns when the first
// mail came to those who got more than one, once for each mail too many.
func (b *mailbox) complete(n int) (twins []time.Time) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	ids, lost := map[string]string{}, 0
	everybody := []string{"admin@proa.localhost"}
	for i := range n {
		everybody = append(everybody, fmt.Sprintf("user-%d@example.org", i+1))
	}
	for _, address := range everybody {
		mails := b.came[address]
		if len(mails) == 0 {
			lost++
			continue
		}
		for _, m := range mails[1:] {
			twins = append(twins, mails[0].at)
			if m.id != mails[0].id {
				b.t.Errorf("two mails to %s have the Message-IDs %s and %s", address, mails[0].id, m.id)
			}
		}
		if other := ids[mails[0].id]; other != "" || mails[0].id == "" {
			b.t.Errorf("the mails to %s and %s have the same Message-ID %q", address, other, mails[0].id)
		}
		ids[mails[0].id] = address
	}
	if lost > 0 || len(b.came) != len(everybody) {
		b.t.Errorf("%d of %d people got no mail; mails went to %d addresses", lost, len(everybody), len(b.came))
	}
	return twins
}

// newStorm is a world with many people, and a client that may write to them.
func newStorm(t *testing.T, n int) (*world, *mailbox, string) {
	t.Helper()
	w, box := newWorld(t), newMailbox(t)
	w.env = append(w.env, "PROA_NOTIFY_RELAYS=smtp://"+box.address+"?tls=none", fmt.Sprint("PROA_NOTIFY_CONNECTIONS=", connections), "PROA_LOG_LEVEL=warn")
	pool, err := pg.Open(t.Context(), w.people)
	must(t, err)
	defer pool.Close()
	_, err = pool.Exec(t.Context(), `insert into users (username, email, password) select 'user-' || n, 'user-' || n || '@example.org', '' from generate_series(1, $1::int) n`, n)
	must(t, err)
	return w, box, w.client("watch", allScopes...)
}

// as starts a service whose mails tell who sent them.
func (w *world) as(sender, address string) *process {
	return w.start("notify", address, append(slices.Clone(w.env), "PROA_NOTIFY_LISTEN="+address, "PROA_NOTIFY_FROM=Proa <"+sender+">"))
}

// eventually waits until something is so.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			log := w.log.String()
			w.t.Fatalf("not in %v: %s\n%s", patience, what, log[max(0, len(log)-5000):])
		}
	}
}

// reached waits until so many mails have come.
func (w *world) reached(box *mailbox, count int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d mails came", count), func() bool { return box.count() >= count })
}

func (w *world) progress(id, token string) (s status) {
	w.t.Helper()
	must(w.t, json.Unmarshal([]byte(w.want(200, w.call(http.MethodGet, "/messages/"+id, token, nil)).body), &s))
	return s
}

// allDelivered waits for the end of a send, and wants it to be a good one.
func (w *world) allDelivered(id, token string, n int) {
	w.t.Helper()
	var s status
	w.eventually("the message is settled", func() bool {
		s = w.progress(id, token)
		return s.Status != "queued"
	})
	if s.Status != "delivered" || s.Total != n+1 || s.Delivered != n+1 || s.Failed != 0 || s.Queued != 0 || len(s.Skipped) != 0 { // the administrator too
		w.t.Errorf("the end of the send: %+v", s)
	}
}

// server is a PostgreSQL that only this test uses, so that it may be killed. It is of the kind that keeps its data.
type server struct {
	t     *testing.T
	state string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t, fmt.Sprintf("/var/tmp/proa-storm-%d-%d", os.Getpid(), time.Now().UnixNano())} // its own user must be able to get there
	t.Cleanup(func() { s.run("destroy", "dev") })
	s.run("start", "dev")
	return s
}

func (s *server) run(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("../../engines/postgres/run.sh", args...)
	cmd.Env = append(os.Environ(), "PROA_STATE="+s.state)
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("PostgreSQL: %s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// kill ends every process of it as a power cut would, the first one first so that it cannot tidy up.
func (s *server) kill() {
	s.t.Helper()
	data := filepath.Join(s.state, "dev", "data")
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	must(s.t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	pids := []string{first}
	for deadline := time.Now().Add(time.Minute); len(pids) > 0; {
		for _, pid := range pids {
			_ = syscall.Kill(atoi(pid), syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			s.t.Fatal("PostgreSQL does not die")
		}
		pids = nil
		links, _ := filepath.Glob("/proc/[0-9]*/cwd")
		for _, link := range links {
			if at, _ := os.Readlink(link); at == data {
				pids = append(pids, filepath.Base(filepath.Dir(link)))
			}
		}
	}
}

// In the middle of a send to everyone the service, the database and the mail server die, one after the other. Everybody gets the
// mail; who gets it twice can tell.
func TestNothingIsLost(t *testing.T) {
	n := storm(t)
	database := newServer(t)
	t.Setenv("PROA_TEST_DATABASE_URL", database.run("url", "dev")) // for the people too: it takes the authorization server along
	w, box, token := newStorm(t, n)
	service := w.serve()
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides")))
	begin := time.Now()
	id := w.send("/everyone", token, words("tides"))

	w.reached(box, n/8)
	w.kill(service)
	serviceDied := time.Now()
	service = w.serve()

	w.reached(box, n*3/8)
	databaseDied := time.Now()
	database.kill()
	w.eventually("results could not be written", func() bool { return strings.Contains(w.log.String(), "results could not be written") })
	database.run("start", "dev")
	databaseBack := time.Now()

	w.reached(box, n*5/8)
	if got := box.count(); got >= n {
		t.Fatalf("%d mails had come before the mail server died: too late to show anything", got)
	}
	outage := max(5*time.Second, time.Minute*time.Duration(n)/100_000)
	box.server.Close()
	time.Sleep(outage) // not a wait for something: this is how long it is away
	box.open()

	w.allDelivered(id, token, n)
	took := time.Since(begin)
	twins := box.complete(n)
	var byService, byDatabase, byMail int
	for _, first := range twins { // what was on its way when something died came shortly before
		switch {
		case first.Before(serviceDied):
			byService++
		case first.Before(databaseBack):
			byDatabase++
		default:
			byMail++
		}
	}
	t.Logf("people %d, mails %d, lost %d, twins %d: %d of the service's death (at most %d), %d of the database's (%.1f s away; at most %d), %d of the mail server's (%.0f s away; at most %d); %.0f s in all",
		n+1, box.count(), n+1-len(box.came), len(twins), byService, unwritten, byDatabase, databaseBack.Sub(databaseDied).Seconds(), 0, byMail, outage.Seconds(), connections, took.Seconds())
	// A result that cannot be written is kept and tried again, so the death of the database doubles nothing.
	if byService > unwritten || byDatabase > 0 || byMail > connections {
		t.Errorf("more twins than mails were on their way")
	}
	w.stop(service)
}

func TestTwoProcessesShareAndStop(t *testing.T) {
	n := storm(t)
	w, box, token := newStorm(t, n)
	box.server.Do(smtptest.At(smtptest.End, smtptest.Act{Wait: 10 * time.Millisecond})) // or all is sent before anybody can stop
	first := w.as("first@proa.localhost", strings.TrimPrefix(w.url, "http://"))
	second := w.as("second@proa.localhost", freeAddress(t))
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides")))
	id := w.send("/everyone", token, words("tides"))
	end := func(p *process) time.Duration {
		t.Helper()
		begin := time.Now()
		w.stop(p)
		return time.Since(begin)
	}

	w.eventually("both send", func() bool {
		return box.from("first@proa.localhost") > n/20 && box.from("second@proa.localhost") > n/20
	})
	firstTook := end(first)
	byFirst := box.from("first@proa.localhost")
	w.reached(box, box.count()+n/10)
	secondTook := end(second)
	atRest := box.count()
	if atRest > n {
		t.Fatalf("%d mails had come before the last stop: too late to show anything", atRest)
	}
	if now := box.from("first@proa.localhost"); now != byFirst {
		t.Errorf("the first sent %d mails after its end", now-byFirst)
	}
	w.atRest(atRest)
	bySecond := box.from("second@proa.localhost")

	w.serve()
	if s := w.progress(id, token); s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	w.allDelivered(id, token, n)
	twins := box.complete(n)
	t.Logf("people %d, mails %d, twins %d: the first sent %d and ended %.1f s after TERM, the second %d and %.1f s; %d came when all were stopped, the rest later",
		n+1, box.count(), len(twins), byFirst, firstTook.Seconds(), bySecond, secondTook.Seconds(), atRest)
	if len(twins) > 0 {
		t.Errorf("%d mails came twice", len(twins))
	}
	if log := w.log.String(); strings.Contains(log, "while stopping") || strings.Contains(log, "is stuck") {
		t.Errorf("not all stopped cleanly:\n%s", log)
	}
}

// atRest wants what processes leave that were told to stop: everything sent is known to be sent, nothing failed, no job half done.
func (w *world) atRest(sent int) {
	w.t.Helper()
	pool, err := pg.Open(w.t.Context(), w.database)
	must(w.t, err)
	defer pool.Close()
	var delivered, attempts, running, failed int
	must(w.t, pool.QueryRow(w.t.Context(), `select (select count(*) from deliveries where state = 'delivered'), (select count(*) from attempts),
		count(*) filter (where state = 'running'), count(*) filter (where errors <> '{}') from river_job`).Scan(&delivered, &attempts, &running, &failed))
	if delivered != sent || attempts != 0 || running != 0 || failed != 0 {
		w.t.Errorf("at rest: %d mails were sent and %d noted, %d attempts failed, %d jobs are half done and %d had errors", sent, delivered, attempts, running, failed)
	}
}

func TestCriticalOvertakesBulk(t *testing.T) {
	n := storm(t)
	w, box, token := newStorm(t, n)
	w.serve()
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides", "critical.flood")))
	captain := w.person("captain")
	id := w.send("/everyone", token, words("tides"))
	w.reached(box, 1)
	var waits []time.Duration
	for round := range 20 {
		subject, begin := fmt.Sprint("Flood ", round, "."), time.Now()
		w.send("/users/"+captain, token, with(words("critical.flood"), "subject", subject))
		var took time.Duration
		w.eventually("the urgent mail came", func() bool {
			p, ok := box.find("captain@example.org", subject)
			took = p.at.Sub(begin)
			return ok
		})
		if box.count() > n { // it may have had the road to itself
			break
		}
		waits = append(waits, took.Round(time.Millisecond))
		w.reached(box, n*(round+1)/25)
	}
	if len(waits) == 0 {
		t.Fatal("the send to everyone was over before the first urgent mail came")
	}
	w.allDelivered(id, token, n+1)
	t.Logf("%d urgent mails during a send to %d people came after %v", len(waits), n, waits)
	if slowest := slices.Max(waits); slowest > 2*time.Second {
		t.Errorf("an urgent mail took %v", slowest)
	}
}

// The answer to a commit may be lost with the database, and the results are written again: the next try must be queued once.
func TestAResultWrittenTwiceCountsOnce(t *testing.T) {
	s, err := store.Open(t.Context(), pgtest.URL(t, nil), time.Now)
	must(t, err)
	defer s.Close()
	var id string
	_, err = s.Accept(t.Context(), notify.Message{ClientID: "watch", Class: notify.Normal, Text: "x", Audience: notify.Audience{Kind: notify.ToEmail, ID: "ann@example.org"}},
		nil, store.May{Normal: true}, func(m notify.Message) any { id = m.ID; return m.ID })
	must(t, err)
	m, err := s.Message(t.Context(), "watch", id)
	must(t, err)
	must(t, s.AddPeople(t.Context(), m, []notify.Person{{Address: "ann@example.org"}}, "", true))
	waiting, err := s.Waiting(t.Context(), store.Deliver{MessageID: id, Chunk: 1})
	must(t, err)
	if len(waiting) != 1 {
		t.Fatalf("%d deliveries wait", len(waiting))
	}
	later := []store.Result{{Delivery: waiting[0], State: notify.Queued, Reason: "busy", Next: time.Now().Add(time.Minute)}}
	must(t, s.Record(t.Context(), m, later))
	must(t, s.Record(t.Context(), m, later))
	var jobs, attempts int
	must(t, s.Pool().QueryRow(t.Context(), `select (select count(*) from river_job where state = 'scheduled'), (select count(*) from attempts)`).Scan(&jobs, &attempts))
	if jobs != 1 || attempts != 1 {
		t.Errorf("%d jobs try again, %d attempts are noted", jobs, attempts)
	}
}
