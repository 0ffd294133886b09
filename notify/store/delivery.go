package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/notify"
)

// Expand is the job that reads a message's audience and makes its deliveries, some pages at a time.
type Expand struct {
	MessageID string `json:"message_id"`
}

// Kind names the job in the queue.
func (Expand) Kind() string { return "expand" }

// Deliver is the job that sends the mails of one chunk of a message, or those that are to be tried again.
type Deliver struct {
	MessageID string   `json:"message_id"`
	Chunk     int      `json:"chunk,omitempty"`
	IDs       []string `json:"ids,omitempty"`
	Tried     int      `json:"tried,omitempty"` // with IDs: how often; one that was tried since has a job of its own
}

// Kind names the job in the queue.
func (Deliver) Kind() string { return "deliver" }

// maxTries is how often the queue runs a job that fails as a whole, as when the directory is away: at most a minute apart, so about
// a week. That is longer than any outage that nobody mends.
const maxTries = 10_000

func options(class notify.Class) *river.InsertOpts {
	return &river.InsertOpts{Queue: string(class), MaxAttempts: maxTries}
}

func (s *Store) queueExpand(ctx context.Context, tx pgx.Tx, messageID string, class notify.Class) error {
	if _, err := s.queue.InsertTx(ctx, tx, Expand{MessageID: messageID}, options(class)); err != nil {
		return fmt.Errorf("queue expansion: %w", err)
	}
	return nil
}

// Standing is what the store knows of people: how a message to them is decided.
func (s *Store) Standing(ctx context.Context, m notify.Message, people []notify.Person) error {
	ids, addresses := make([]string, len(people)), make([]string, len(people))
	for i, p := range people {
		ids[i], addresses[i] = p.UserID, p.Address
	}
	rows, err := s.pool.Query(ctx, `select n,
			exists (select from suppressions x where x.address = lower(a)),
			u <> '' and exists (select from unsubscribes x where x.user_id = u and x.client_id = $3 and x.kind_id = $4),
			u <> '' and exists (select from global_unsubscribes x where x.user_id = u),
			u <> '' and exists (select from erased x where x.user_id = u)
		from unnest($1::text[], $2::text[]) with ordinality as p(u, a, n)`, ids, addresses, m.ClientID, m.KindID)
	if err != nil {
		return fmt.Errorf("read standing: %w", err)
	}
	var n int
	var suppressed, unsubscribed, noMail, erased bool
	_, err = pgx.ForEachRow(rows, []any{&n, &suppressed, &unsubscribed, &noMail, &erased}, func() error {
		p := &people[n-1]
		p.Suppressed, p.Unsubscribed, p.NoMail, p.Erased = suppressed, unsubscribed, noMail, erased
		return nil
	})
	if err != nil {
		return fmt.Errorf("read standing: %w", err)
	}
	return nil
}

// AddPeople makes the deliveries of one page of an audience, the job that sends them, and notes how far the audience was read:
// all or nothing. Somebody who is there already is passed over. With done the audience has ended.
func (s *Store) AddPeople(ctx context.Context, m Sending, people []notify.Person, cursor string, done bool) error {
	at, _ := notify.TimeOf(m.ID)
	chunk := m.Chunks + 1
	ids, addresses, states, reasons := make([]string, len(people)), make([]string, len(people)), make([]string, len(people)), make([]string, len(people))
	for i, p := range people {
		reason := notify.Decide(m.Critical, p)
		ids[i], addresses[i], states[i], reasons[i] = p.UserID, p.Address, string(notify.Queued), string(reason)
		if reason != "" {
			states[i] = string(notify.Undeliverable)
		}
	}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		// The cursor is the lock: of two workers that read the same page, one moves it.
		tag, err := tx.Exec(ctx, `update messages set cursor = $4, chunks = $5, expanded_at = case when $6 then now() else expanded_at end
			where at = $1 and id = $2 and cursor = $3 and expanded_at is null`, at, m.ID, m.Cursor, cursor, chunk, done)
		if err != nil {
			return fmt.Errorf("move cursor: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return ErrMoved
		}
		added, queued, err := insertPeople(ctx, tx, at, m, chunk, ids, addresses, states, reasons)
		if err != nil {
			return err
		}
		if err := tally(ctx, tx, at, m.ID, change{total: added.total, skipped: added.skipped}); err != nil {
			return err
		}
		if queued == 0 {
			return nil
		}
		if _, err := s.queue.InsertTx(ctx, tx, Deliver{MessageID: m.ID, Chunk: chunk}, options(m.Class)); err != nil {
			return fmt.Errorf("queue deliveries: %w", err)
		}
		return nil
	})
}

// ErrMoved says that another worker was first.
var ErrMoved = fmt.Errorf("another worker has read this page")

func insertPeople(ctx context.Context, tx pgx.Tx, at time.Time, m Sending, chunk int, ids, addresses, states, reasons []string) (change, int, error) {
	var c change
	queued := 0
	rows, err := tx.Query(ctx, `insert into deliveries (id, at, message_id, chunk, user_id, address, state, reason)
		select substr($2, 1, 12) || substr(md5(gen_random_uuid()::text), 1, 20), $1, $2, $3, p.u, p.a, p.s, p.r
		from unnest($4::text[], $5::text[], $6::text[], $7::text[]) as p(u, a, s, r)
		on conflict (user_id, message_id, lower(address), at) do nothing returning state, reason`, at, m.ID, chunk, ids, addresses, states, reasons)
	if err != nil {
		return c, 0, fmt.Errorf("add deliveries: %w", err)
	}
	var state, reason string
	if _, err := pgx.ForEachRow(rows, []any{&state, &reason}, func() error {
		c.total++
		if state == string(notify.Queued) {
			queued++
			return nil
		}
		c.skip(notify.Reason(reason), 1)
		return nil
	}); err != nil {
		return c, 0, fmt.Errorf("add deliveries: %w", err)
	}
	_, err = tx.Exec(ctx, `insert into receipts (user_id, client_id) select distinct u, $2 from unnest($1::text[]) as p(u) where u <> '' on conflict do nothing`, ids, m.ClientID)
	if err != nil {
		return c, 0, fmt.Errorf("note receipts: %w", err)
	}
	return c, queued, nil
}

// change is what happened to some deliveries of a message.
type change struct {
	total, delivered, failed int
	skipped                  map[notify.Reason]int
}

func (c *change) skip(r notify.Reason, n int) {
	if c.skipped == nil {
		c.skipped = map[notify.Reason]int{}
	}
	c.skipped[r] += n
}

// tally adds to the counts that stand on the message.
func tally(ctx context.Context, tx pgx.Tx, at time.Time, messageID string, c change) error {
	if c.total == 0 && c.delivered == 0 && c.failed == 0 && len(c.skipped) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `update messages set total = total + $3, delivered = delivered + $4, failed = failed + $5,
		skipped = case when $6::jsonb = '{}' then skipped else
			(select coalesce(jsonb_object_agg(k, n), '{}') from (select k, sum(v::int) as n from (select * from jsonb_each_text(skipped) union all select * from jsonb_each_text($6)) x(k, v) group by k) y) end
		where at = $1 and id = $2`, at, messageID, c.total, c.delivered, c.failed, skippedJSON(c.skipped))
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}

// SetNames keeps what the platform calls a message's space and organization.
func (s *Store) SetNames(ctx context.Context, messageID string, n Names) error {
	at, _ := notify.TimeOf(messageID)
	_, err := s.pool.Exec(ctx, `update messages set names = $3 where at = $1 and id = $2`, at, messageID, n)
	return err
}

// FailMessage gives up on a message whose audience cannot be read, and says why.
func (s *Store) FailMessage(ctx context.Context, messageID, reason string) error {
	at, _ := notify.TimeOf(messageID)
	_, err := s.pool.Exec(ctx, `update messages set failed_reason = $3, expanded_at = now() where at = $1 and id = $2 and expanded_at is null`, at, messageID, reason)
	return err
}

// Waiting lists the deliveries of a job that are still to be sent.
func (s *Store) Waiting(ctx context.Context, job Deliver) ([]Delivery, error) {
	at, _ := notify.TimeOf(job.MessageID)
	query, args := `and chunk = $3 and attempts = 0`, []any{at, job.MessageID, job.Chunk}
	if job.Chunk == 0 {
		query, args = `and id = any($3) and attempts = $4`, []any{at, job.MessageID, job.IDs, job.Tried}
	}
	rows, err := s.pool.Query(ctx, `select `+deliveryColumns+` from deliveries where at = $1 and message_id = $2 and state = 'queued' `+query+` order by id`, args...)
	if err != nil {
		return nil, fmt.Errorf("list waiting deliveries: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Delivery])
}

// Result is how one try ended.
type Result struct {
	Delivery Delivery
	State    notify.State // Delivered, Failed, Undeliverable, or Queued: to be tried again at Next
	Reason   string
	Code     string
	Next     time.Time
}

// Record writes the results of some tries of one message, in one go: states, attempts, counts, and the jobs that try again.
func (s *Store) Record(ctx context.Context, m Sending, results []Result) error {
	at, _ := notify.TimeOf(m.ID)
	ids, states, reasons, before := make([]string, len(results)), make([]string, len(results)), make([]string, len(results)), make([]int, len(results))
	for i, r := range results {
		ids[i], states[i], reasons[i], before[i] = r.Delivery.ID, string(r.State), r.Reason, r.Delivery.Attempts
	}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		// Only what is still queued changes: a result that is written twice counts once. One that leaves a delivery queued changes
		// only what it has seen, or a commit whose answer was lost would queue a second try and send the mail twice.
		rows, err := tx.Query(ctx, `update deliveries d set state = p.s, reason = p.r, attempts = d.attempts + 1, changed_at = now()
			from unnest($3::text[], $4::text[], $5::text[], $6::int[]) as p(id, s, r, n)
			where d.at = $1 and d.message_id = $2 and d.id = p.id and d.state = 'queued' and (p.s <> 'queued' or d.attempts = p.n)
			returning d.id, d.state, d.reason, d.attempts`, at, m.ID, ids, states, reasons, before)
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		var c change
		var id, state, reason string
		var attempts int
		tries := map[string]int{}
		if _, err := pgx.ForEachRow(rows, []any{&id, &state, &reason, &attempts}, func() error {
			tries[id] = attempts
			switch notify.State(state) {
			case notify.Delivered:
				c.delivered++
			case notify.Failed:
				c.failed++
			case notify.Undeliverable:
				c.skip(notify.Reason(reason), 1)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		if err := noteAttempts(ctx, tx, at, results, tries); err != nil {
			return err
		}
		if err := tally(ctx, tx, at, m.ID, c); err != nil {
			return err
		}
		for try, ids := range triesAgain(results, tries) {
			opts := options(m.Class)
			opts.ScheduledAt = try.at
			if _, err := s.queue.InsertTx(ctx, tx, Deliver{MessageID: m.ID, IDs: ids, Tried: try.tried}, opts); err != nil {
				return fmt.Errorf("queue another try: %w", err)
			}
		}
		return nil
	})
}

// nextTry is when deliveries are tried again, and how often they were.
type nextTry struct {
	at    time.Time
	tried int
}

// triesAgain groups the deliveries that are still queued by the second of their next try.
func triesAgain(results []Result, tries map[string]int) map[nextTry][]string {
	again := map[nextTry][]string{}
	for _, r := range results {
		if n := tries[r.Delivery.ID]; r.State == notify.Queued && n > 0 {
			next := nextTry{r.Next.Truncate(time.Second), n}
			again[next] = append(again[next], r.Delivery.ID)
		}
	}
	return again
}

// noteAttempts keeps every try that did not end with a delivery.
func noteAttempts(ctx context.Context, tx pgx.Tx, at time.Time, results []Result, tries map[string]int) error {
	var ids, outcomes, codes, reasons []string
	var numbers []int
	for _, r := range results {
		outcome := map[notify.State]string{notify.Queued: "transient", notify.Failed: "permanent"}[r.State]
		if outcome == "" || tries[r.Delivery.ID] == 0 {
			continue
		}
		ids, outcomes, codes, reasons = append(ids, r.Delivery.ID), append(outcomes, outcome), append(codes, r.Code), append(reasons, r.Reason)
		numbers = append(numbers, tries[r.Delivery.ID])
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into attempts (delivery_id, at, tried_at, attempt, outcome, code, reason)
		select p.id, $1, now(), p.n, p.o, p.c, p.r from unnest($2::text[], $3::int[], $4::text[], $5::text[], $6::text[]) as p(id, n, o, c, r)`, at, ids, numbers, outcomes, codes, reasons)
	if err != nil {
		return fmt.Errorf("note attempts: %w", err)
	}
	return nil
}
