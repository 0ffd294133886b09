package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/notify"
)

// Once is an Idempotency-Key with the hash of what was sent under it.
type Once struct {
	Key  string
	Body []byte // hash of everything that the send depends on
}

// May says which kinds a sender may send.
type May struct{ Critical, Normal bool }

var errNormal = fault.Forbidden("This kind is not critical, so sending it needs the scope notifications.write, which the token does not have. Ask an administrator for it.")

// onceFor is how long a key is remembered.
const onceFor = 24 * time.Hour

// Accept takes a message: the row, its first job and the key that makes it happen once, all or nothing. It returns the reply that
// was given the first time. The kind must be registered, and the sender must hold the scope for it.
func (s *Store) Accept(ctx context.Context, m notify.Message, once *Once, may May, reply func(notify.Message) any) (json.RawMessage, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (json.RawMessage, error) {
		if m.KindID != "" {
			k, err := getKind(ctx, tx, m.ClientID, m.KindID, "")
			if err != nil {
				return nil, err
			}
			m.Critical = k.Critical
		}
		switch {
		case m.Critical && !may.Critical:
			return nil, notify.ErrCritical
		case !m.Critical && !may.Normal:
			return nil, errNormal
		case m.Critical:
			m.Class = notify.Critical
		}
		m.ID, m.Received = notify.NewID(s.Now()), s.Now()
		body, err := json.Marshal(reply(m))
		if err != nil {
			return nil, err
		}
		if before, err := keepOnce(ctx, tx, m.ClientID, once, body, s.Now()); err != nil || before != nil {
			return before, err
		}
		at, _ := notify.TimeOf(m.ID)
		if _, err := tx.Exec(ctx, `insert into messages (id, at, client_id, kind_id, critical, class, audience, audience_id, audience_role, subject, body_text, body_html, reply_to, request_id)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`, m.ID, at, m.ClientID, m.KindID, m.Critical, m.Class, m.Audience.Kind, m.Audience.ID,
			m.Audience.Role, m.Subject, m.Text, m.HTML, m.ReplyTo, m.RequestID); err != nil {
			return nil, fmt.Errorf("keep message: %w", err)
		}
		return body, s.queueExpand(ctx, tx, m.ID, m.Class)
	})
}

// keepOnce keeps the reply under the key, or returns the one that is kept.
func keepOnce(ctx context.Context, tx pgx.Tx, clientID string, once *Once, reply []byte, now time.Time) (json.RawMessage, error) {
	if once == nil {
		return nil, nil
	}
	tag, err := tx.Exec(ctx, `insert into idempotency (client_id, key, body_hash, reply, expires_at) values ($1, $2, $3, $4, $5)
		on conflict (client_id, key) do update set body_hash = excluded.body_hash, reply = excluded.reply, expires_at = excluded.expires_at where idempotency.expires_at <= $6`,
		clientID, once.Key, once.Body, reply, now.Add(onceFor), now)
	if err != nil {
		return nil, fmt.Errorf("keep idempotency key: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil, nil
	}
	var hash, before []byte
	if err := tx.QueryRow(ctx, `select body_hash, reply from idempotency where client_id = $1 and key = $2`, clientID, once.Key).Scan(&hash, &before); err != nil {
		return nil, fmt.Errorf("read idempotency key: %w", err)
	}
	if !bytes.Equal(hash, once.Body) {
		return nil, fault.Conflict("This Idempotency-Key was used for another request in the last 24 hours. Use a new key for a new request.")
	}
	return before, nil
}

const messageColumns = `id, client_id, kind_id, critical, class, audience, audience_id, audience_role, subject, body_text, body_html, reply_to, request_id, at,
	names, cursor, chunks, expanded_at, failed_reason, total, delivered, failed, skipped`

// Sending is a message with what is known of its audience so far.
type Sending struct {
	notify.Message
	Names    Names
	Cursor   string
	Chunks   int
	Expanded *time.Time
}

// Names are what the platform calls the things of a message's audience.
type Names struct {
	Space            string `json:"space,omitempty"`
	Organization     string `json:"organization,omitempty"`
	OrganizationGUID string `json:"organization_guid,omitempty"`
}

func scanMessage(row pgx.CollectableRow) (Sending, error) {
	var m Sending
	var names, skipped []byte
	err := row.Scan(&m.ID, &m.ClientID, &m.KindID, &m.Critical, &m.Class, &m.Audience.Kind, &m.Audience.ID, &m.Audience.Role, &m.Subject, &m.Text, &m.HTML, &m.ReplyTo,
		&m.RequestID, &m.Received, &names, &m.Cursor, &m.Chunks, &m.Expanded, &m.Reason, &m.Counts.Total, &m.Counts.Delivered, &m.Counts.Failed, &skipped)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(names, &m.Names); err != nil {
		return m, err
	}
	if err := json.Unmarshal(skipped, &m.Counts.Skipped); err != nil {
		return m, err
	}
	m.Counts.Queued = m.Counts.Total - m.Counts.Delivered - m.Counts.Failed
	for _, n := range m.Counts.Skipped {
		m.Counts.Queued -= n
	}
	m.State = m.Message.Overall(m.Expanded != nil)
	return m, nil
}

func noMessage(id string) error { return fault.NotFound("There is no message %q of this client.", id) }

// Message finds a message of a client. One of another client's is not told from one that is not there; "" is any client, for
// the workers.
func (s *Store) Message(ctx context.Context, clientID, id string) (Sending, error) {
	at, ok := notify.TimeOf(id)
	if !ok {
		return Sending{}, noMessage(id)
	}
	rows, err := s.pool.Query(ctx, `select `+messageColumns+` from messages where at = $1 and id = $2 and ($3 = '' or client_id = $3)`, at, id, clientID)
	if err != nil {
		return Sending{}, fmt.Errorf("get message: %w", err)
	}
	m, err := pgx.CollectExactlyOneRow(rows, scanMessage)
	if pg.NoRows(err) {
		return m, noMessage(id)
	}
	return m, err
}

// Messages lists what a client has sent, the newest first, before an id; with failed, only what has failed deliveries.
func (s *Store) Messages(ctx context.Context, clientID, before string, failed bool, count int) ([]Sending, error) {
	until, ok := notify.TimeOf(before)
	if !ok {
		until, before = s.Now().Add(24*time.Hour), "g" // after every id
	}
	without := strings.NewReplacer("body_text", "''", "body_html", "''").Replace(messageColumns) // a page of bodies would be large
	rows, err := s.pool.Query(ctx, `select `+without+` from messages where client_id = $1 and at <= $2 and (at, id) < ($2, $3) and (not $4 or failed > 0 or failed_reason <> '')
		order by at desc, id desc limit $5`, clientID, until, before, failed, count)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	return pgx.CollectRows(rows, scanMessage)
}

// Delivery is a message on its way to one person.
type Delivery struct {
	ID        string
	MessageID string
	UserID    string
	Address   string
	State     notify.State
	Reason    string
	Attempts  int
	Changed   time.Time
}

const deliveryColumns = `id, message_id, user_id, address, state, reason, attempts, changed_at`

// Recipients lists the people of a message after an id, in the order of their deliveries, in one state if it is given.
func (s *Store) Recipients(ctx context.Context, messageID, after string, state notify.State, count int) ([]Delivery, error) {
	at, _ := notify.TimeOf(messageID)
	rows, err := s.pool.Query(ctx, `select `+deliveryColumns+` from deliveries where at = $1 and message_id = $2 and id > $3 and ($4 = '' or state = $4) order by id limit $5`,
		at, messageID, after, state, count)
	if err != nil {
		return nil, fmt.Errorf("list recipients: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Delivery])
}

// Attempt is one try that did not end well.
type Attempt struct {
	DeliveryID string
	TriedAt    time.Time
	Number     int
	Outcome    string
	Code       string
	Reason     string
}

// Attempts lists the tries of some deliveries of a message.
func (s *Store) Attempts(ctx context.Context, messageID string, deliveries []string) ([]Attempt, error) {
	at, _ := notify.TimeOf(messageID)
	rows, err := s.pool.Query(ctx, `select delivery_id, tried_at, attempt, outcome, code, reason from attempts where at = $1 and delivery_id = any($2) order by delivery_id, tried_at`, at, deliveries)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Attempt])
}
