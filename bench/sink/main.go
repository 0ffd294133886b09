// Command sink is the mail server of a measurement, in a process of its own: it costs whoever sends to it the same, and shares no
// scheduler with them. It accepts every mail, keeps the first since it was last asked to forget, and tells over HTTP what came.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

// came is what came since the last DELETE.
type came struct {
	Mails  int64          // accepted
	People int64          // different people among those whose address is user-N@…
	Last   time.Time      // when the last mail was accepted
	First  *smtptest.Mail // the first mail, for those who want to send the same
}

const maxPeople = 1 << 22

// tally is what came so far. It is written from all sessions at once.
type tally struct {
	mails, people, last atomic.Int64
	first               atomic.Pointer[smtptest.Mail]
	seen                [maxPeople]atomic.Bool
}

var now atomic.Pointer[tally]

func main() {
	now.Store(new(tally))
	server, err := smtptest.Start(smtptest.Options{Addr: os.Getenv("SINK_SMTP"), OnMail: take})
	if err != nil {
		fail(err)
	}
	http.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		t := now.Load()
		_ = json.NewEncoder(w).Encode(came{Mails: t.mails.Load(), People: t.people.Load(), Last: time.Unix(0, t.last.Load()), First: t.first.Load()})
	})
	// With wait, each mail is accepted only after so long.
	http.HandleFunc("DELETE /", func(w http.ResponseWriter, r *http.Request) {
		now.Store(new(tally))
		server.Do(nil)
		if text := r.FormValue("wait"); text != "" {
			wait, err := time.ParseDuration(text)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			server.Do(smtptest.At(smtptest.End, smtptest.Act{Wait: wait}))
		}
	})
	fail(http.ListenAndServe(os.Getenv("SINK_HTTP"), nil)) //nolint:gosec // on loopback, for one client
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func take(m smtptest.Mail) {
	t := now.Load()
	if t.first.Load() == nil {
		t.first.CompareAndSwap(nil, &m)
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(m.To, "user-"), "@")
	if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < maxPeople && !t.seen[n].Swap(true) {
		t.people.Add(1)
	}
	t.last.Store(time.Now().UnixNano())
	t.mails.Add(1)
}
