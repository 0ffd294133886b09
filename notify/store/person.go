package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/notify"
)

// Preferences lists the kinds of every source that has written to a person, but for critical ones, which nobody can turn off.
func (s *Store) Preferences(ctx context.Context, userID string) (notify.Preferences, error) {
	var p notify.Preferences
	if err := s.pool.QueryRow(ctx, `select exists (select from global_unsubscribes where user_id = $1)`, userID).Scan(&p.GlobalUnsubscribe); err != nil {
		return p, fmt.Errorf("read preferences: %w", err)
	}
	rows, err := s.pool.Query(ctx, `select k.client_id, k.id, not exists (select from unsubscribes u where u.user_id = $1 and u.client_id = k.client_id and u.kind_id = k.id),
			k.description, s.name, k.critical
		from receipts r join sources s on s.client_id = r.client_id join kinds k on k.client_id = r.client_id and not k.critical where r.user_id = $1 order by 1, 2`, userID)
	if err != nil {
		return p, fmt.Errorf("read preferences: %w", err)
	}
	p.Kinds, err = pgx.CollectRows(rows, pgx.RowToStructByPos[notify.Preference])
	return p, err
}

// SetPreferences writes what a person decides. A nil global leaves that as it is.
func (s *Store) SetPreferences(ctx context.Context, who Who, userID string, global *bool, kinds []notify.Preference) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if global != nil {
			statement := `delete from global_unsubscribes where user_id = $1`
			if *global {
				statement = `insert into global_unsubscribes (user_id) values ($1) on conflict do nothing`
			}
			if _, err := tx.Exec(ctx, statement, userID); err != nil {
				return fmt.Errorf("write preference: %w", err)
			}
		}
		for _, k := range kinds {
			kind, err := getKind(ctx, tx, k.ClientID, k.KindID, "")
			if fault.Is(err, fault.KindNotFound) {
				return fault.Unprocessable("clients.%s.%s: there is no such kind. List your preferences to see which there are.", k.ClientID, k.KindID)
			}
			if err != nil {
				return err
			}
			if kind.Critical {
				return fault.Unprocessable("clients.%s.%s: the kind is critical, so nobody can unsubscribe from it.", k.ClientID, k.KindID)
			}
			statement := `delete from unsubscribes where user_id = $1 and client_id = $2 and kind_id = $3`
			if !k.Email {
				statement = `insert into unsubscribes (user_id, client_id, kind_id) values ($1, $2, $3) on conflict do nothing`
			}
			if _, err := tx.Exec(ctx, statement, userID, k.ClientID, k.KindID); err != nil {
				return fmt.Errorf("write preference: %w", err)
			}
		}
		return audit(ctx, tx, who, "preferences", userID, map[string]any{"kinds": len(kinds)})
	})
}

// Bounced notes that a mail came back. For good: the delivery has failed, and if the address is at fault it is written to no more.
func (s *Store) Bounced(ctx context.Context, deliveryID, status, reason string, hard bool) error {
	at, ok := notify.TimeOf(deliveryID)
	if !ok {
		return nil
	}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		var d Delivery
		err := tx.QueryRow(ctx, `select id, message_id, address, state from deliveries where at = $1 and id = $2 for update`, at, deliveryID).Scan(&d.ID, &d.MessageID, &d.Address, &d.State)
		if pg.NoRows(err) {
			return nil // forgotten by now
		}
		if err != nil {
			return fmt.Errorf("find delivery: %w", err)
		}
		if _, err := tx.Exec(ctx, `insert into attempts (delivery_id, at, tried_at, attempt, outcome, code, reason) values ($1, $2, now(), 0, 'bounced', $3, $4)`, deliveryID, at, status, reason); err != nil {
			return fmt.Errorf("note bounce: %w", err)
		}
		if !hard {
			return nil
		}
		if err := suppress(ctx, tx, d, status, reason); err != nil {
			return err
		}
		if d.State != notify.Delivered && d.State != notify.Queued {
			return nil
		}
		if _, err := tx.Exec(ctx, `update deliveries set state = 'failed', reason = $3, changed_at = now() where at = $1 and id = $2`, at, deliveryID, "bounced: "+status); err != nil {
			return fmt.Errorf("fail delivery: %w", err)
		}
		c := change{failed: 1}
		if d.State == notify.Delivered {
			c.delivered = -1
		}
		return tally(ctx, tx, at, d.MessageID, c)
	})
}

// suppress writes to an address no more, if what came back says that the address is at fault.
func suppress(ctx context.Context, tx pgx.Tx, d Delivery, status, reason string) error {
	if !notify.Suppresses(status) {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into suppressions (address, reason, delivery_id) values (lower($1), $2, $3) on conflict (address) do update set reason = $2, delivery_id = $3`,
		d.Address, strings.TrimSpace(status+" "+reason), d.ID)
	if err != nil {
		return fmt.Errorf("suppress: %w", err)
	}
	return nil
}

// Suppression is an address that is written to no more.
type Suppression struct {
	Address string
	Reason  string
	Since   time.Time
}

// Suppressions lists them after an address.
func (s *Store) Suppressions(ctx context.Context, after string, count int) ([]Suppression, error) {
	rows, err := s.pool.Query(ctx, `select address, reason, created_at from suppressions where address > $1 order by address limit $2`, after, count)
	if err != nil {
		return nil, fmt.Errorf("list suppressions: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Suppression])
}

// Unsuppress lets an address be written to again.
func (s *Store) Unsuppress(ctx context.Context, who Who, address string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from suppressions where address = lower($1)`, address)
		if err != nil {
			return fmt.Errorf("clear suppression: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return fault.NotFound("This address is not suppressed.")
		}
		return audit(ctx, tx, who, "suppression.clear", notify.Mask(address), nil)
	})
}

// Again queues the deliveries of a message that failed for good, once more. It says how many.
func (s *Store) Again(ctx context.Context, m Sending) (int, error) {
	at, _ := notify.TimeOf(m.ID)
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (int, error) {
		rows, err := tx.Query(ctx, `update deliveries d set state = 'queued', reason = '', attempts = 0, chunk = -1, changed_at = now() where at = $1 and message_id = $2 and state = 'failed'
			and not exists (select from suppressions x where x.address = lower(d.address)) returning id`, at, m.ID)
		if err != nil {
			return 0, fmt.Errorf("send again: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		for start := 0; start < len(ids); start += chunkSize {
			if _, err := s.queue.InsertTx(ctx, tx, Deliver{MessageID: m.ID, IDs: ids[start:min(start+chunkSize, len(ids))]}, options(m.Class)); err != nil {
				return 0, fmt.Errorf("queue another try: %w", err)
			}
		}
		return len(ids), tally(ctx, tx, at, m.ID, change{failed: -len(ids)})
	})
}

const chunkSize = 500

// Erase forgets a person: their addresses, what they were sent and what they preferred. That they asked for it is remembered, so
// that they are not written to again.
func (s *Store) Erase(ctx context.Context, who Who, userID string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`insert into erased (user_id) values ($1) on conflict do nothing`,
			`delete from suppressions where address in (select lower(address) from deliveries where user_id = $1)`,
			`delete from attempts a using deliveries d where d.user_id = $1 and a.at = d.at and a.delivery_id = d.id`,
			`update messages m set total = m.total - x.n, delivered = m.delivered - x.d, failed = m.failed - x.f from (select at, message_id, count(*) n,
				count(*) filter (where state = 'delivered') d, count(*) filter (where state = 'failed') f from deliveries where user_id = $1 and state <> 'undeliverable' group by 1, 2) x
				where m.at = x.at and m.id = x.message_id`,
			`delete from deliveries where user_id = $1 and state <> 'undeliverable'`,
			`update deliveries set address = '' where user_id = $1`,
			`delete from unsubscribes where user_id = $1`, `delete from global_unsubscribes where user_id = $1`, `delete from receipts where user_id = $1`,
		} {
			if _, err := tx.Exec(ctx, statement, userID); err != nil {
				return fmt.Errorf("erase: %w", err)
			}
		}
		return audit(ctx, tx, who, "person.erase", userID, nil)
	})
}

// Choice is what a person has decided about one kind.
type Choice struct {
	Email bool // they get it
	All   bool // they get nothing that is not critical
}

// Chosen reads it.
func (s *Store) Chosen(ctx context.Context, userID, clientID, kindID string) (Choice, error) {
	var c Choice
	err := s.pool.QueryRow(ctx, `select not exists (select from unsubscribes where user_id = $1 and client_id = $2 and kind_id = $3),
		exists (select from global_unsubscribes where user_id = $1)`, userID, clientID, kindID).Scan(&c.Email, &c.All)
	if err != nil {
		return c, fmt.Errorf("read choice: %w", err)
	}
	return c, nil
}
