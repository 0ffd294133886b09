package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/pg"
)

// ErrUsed says that a code or refresh token had been used in the meantime.
var ErrUsed = errors.New("used already")

// ErrNone says that there is no such code, token, session or passcode.
var ErrNone = errors.New("no such record")

// AddCode keeps a code that was issued.
func (s *Store) AddCode(ctx context.Context, c auth.Code) error {
	form, err := json.Marshal(c.Form)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `insert into codes (hash, login_id, client_id, user_id, scopes, form, auth_at, generation, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		c.Hash, c.LoginID, c.ClientID, c.UserID, none(c.Scopes), form, c.AuthAt, c.Generation, c.Expires)
	if err != nil {
		return fmt.Errorf("add code: %w", err)
	}
	return nil
}

// Code finds a code, used or not.
func (s *Store) Code(ctx context.Context, hash string) (auth.Code, error) {
	var c auth.Code
	var form []byte
	err := s.pool.QueryRow(ctx, `select hash, login_id, client_id, user_id, scopes, form, auth_at, generation, expires_at, used_at is not null from codes where hash = $1`, hash).
		Scan(&c.Hash, &c.LoginID, &c.ClientID, &c.UserID, &c.Scopes, &form, &c.AuthAt, &c.Generation, &c.Expires, &c.Used)
	if pg.NoRows(err) {
		return c, ErrNone
	}
	if err != nil {
		return c, fmt.Errorf("get code: %w", err)
	}
	return c, json.Unmarshal(form, &c.Form)
}

// Refresh finds a refresh token, used or not.
func (s *Store) Refresh(ctx context.Context, hash string) (auth.Refresh, error) {
	var t auth.Refresh
	err := s.pool.QueryRow(ctx, `select hash, login_id, client_id, user_id, scopes, auth_at, generation, expires_at, used_at is not null, revoked_at is not null
		from refresh_tokens where hash = $1`, hash).
		Scan(&t.Hash, &t.LoginID, &t.ClientID, &t.UserID, &t.Scopes, &t.AuthAt, &t.Generation, &t.Expires, &t.Used, &t.Revoked)
	if pg.NoRows(err) {
		return t, ErrNone
	}
	if err != nil {
		return t, fmt.Errorf("get refresh token: %w", err)
	}
	return t, nil
}

// Exchange is what one visit to the token endpoint writes, all of it or nothing.
type Exchange struct {
	UseCode    string        // hash of the code that is used up
	UseRefresh string        // hash of the refresh token that is used up
	Add        *auth.Refresh // the new refresh token
}

// Exchange writes it. ErrUsed when another request was first.
func (s *Store) Exchange(ctx context.Context, x Exchange) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		for _, use := range []struct{ statement, hash string }{
			{`update codes set used_at = now() where hash = $1 and used_at is null`, x.UseCode},
			{`update refresh_tokens set used_at = now() where hash = $1 and used_at is null and revoked_at is null`, x.UseRefresh},
		} {
			if use.hash == "" {
				continue
			}
			tag, err := tx.Exec(ctx, use.statement, use.hash)
			if err != nil {
				return fmt.Errorf("use up: %w", err)
			}
			if tag.RowsAffected() == 0 {
				return ErrUsed
			}
		}
		if x.Add == nil {
			return nil
		}
		_, err := tx.Exec(ctx, `insert into refresh_tokens (hash, login_id, client_id, user_id, scopes, auth_at, generation, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
			x.Add.Hash, x.Add.LoginID, x.Add.ClientID, x.Add.UserID, none(x.Add.Scopes), x.Add.AuthAt, x.Add.Generation, x.Add.Expires)
		if err != nil {
			return fmt.Errorf("add refresh token: %w", err)
		}
		return nil
	})
}

// Revoke ends an access token by its id, or a login with all its tokens by the login's id. That somebody ended another's is kept
// in the audit trail; nil is for one's own.
func (s *Store) Revoke(ctx context.Context, by *auth.Who, id string, now time.Time) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if by != nil {
			if err := audit(ctx, tx, *by, "token.revoke", "token", id, nil); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `insert into revoked (id, expires_at) values ($1, $2) on conflict (id) do nothing`, id, now.Add(auth.MaxAccess+time.Hour)); err != nil {
			return fmt.Errorf("revoke: %w", err)
		}
		if _, err := tx.Exec(ctx, `update refresh_tokens set revoked_at = $2 where login_id = $1 and revoked_at is null`, id, now); err != nil {
			return fmt.Errorf("revoke login: %w", err)
		}
		return nil
	})
}

// LoginOwner tells whose login it is. ErrNone when it has no refresh token.
func (s *Store) LoginOwner(ctx context.Context, id string) (userID, clientID string, err error) {
	err = s.pool.QueryRow(ctx, `select user_id, client_id from refresh_tokens where login_id = $1 limit 1`, id).Scan(&userID, &clientID)
	if pg.NoRows(err) {
		return "", "", ErrNone
	}
	return userID, clientID, err
}

// Revoked tells whether a token must not be believed: it or its login was revoked, or its person or client is gone, disabled or
// of another generation.
func (s *Store) Revoked(ctx context.Context, tokenID, loginID, userID, clientID, generation string) (bool, error) {
	var revoked bool
	var user, client *string
	err := s.pool.QueryRow(ctx, `select exists (select from revoked where id = $1 or id = nullif($2, '')),
		(select generation from users where id = $3 and active), (select generation from clients where id = $4)`, tokenID, loginID, userID, clientID).
		Scan(&revoked, &user, &client)
	if err != nil {
		return false, fmt.Errorf("look for revocation: %w", err)
	}
	if revoked || client == nil || (userID != "" && user == nil) {
		return true, nil
	}
	now := ""
	if userID != "" {
		now = *user
	}
	return generation != auth.Generation(now, *client), nil
}

// Session is a browser in which somebody is logged in.
type Session struct {
	UserID string
	AuthAt time.Time
}

// AddSession keeps a session by the hash of its cookie, and notes the login.
func (s *Store) AddSession(ctx context.Context, hash, userID string, now, expires time.Time) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into sessions (hash, user_id, generation, auth_at, expires_at) select $1, id, generation, $3, $4 from users where id = $2`,
			hash, userID, now, expires)
		if err != nil {
			return fmt.Errorf("add session: %w", err)
		}
		return nil
	})
}

// SessionOf finds a session that is still good.
func (s *Store) SessionOf(ctx context.Context, hash string, now time.Time) (Session, error) {
	var found Session
	err := s.pool.QueryRow(ctx, `select s.user_id, s.auth_at from sessions s join users u on u.id = s.user_id and u.active and u.generation = s.generation
		where s.hash = $1 and s.expires_at > $2`, hash, now).Scan(&found.UserID, &found.AuthAt)
	if pg.NoRows(err) {
		return found, ErrNone
	}
	if err != nil {
		return found, fmt.Errorf("get session: %w", err)
	}
	return found, nil
}

// DropSession ends a session.
func (s *Store) DropSession(ctx context.Context, hash string) error {
	_, err := s.pool.Exec(ctx, `delete from sessions where hash = $1`, hash)
	return err
}

// AddPasscode keeps a one-time passcode.
func (s *Store) AddPasscode(ctx context.Context, hash, userID string, expires time.Time) error {
	_, err := s.pool.Exec(ctx, `insert into passcodes (hash, user_id, generation, expires_at) select $1, id, generation, $3 from users where id = $2`, hash, userID, expires)
	if err != nil {
		return fmt.Errorf("add passcode: %w", err)
	}
	return nil
}

// UsePasscode takes a passcode away and says whose it was.
func (s *Store) UsePasscode(ctx context.Context, hash string, now time.Time) (userID string, err error) {
	var expires time.Time
	err = s.pool.QueryRow(ctx, `delete from passcodes p using users u where p.hash = $1 and u.id = p.user_id and u.generation = p.generation returning p.user_id, p.expires_at`, hash).Scan(&userID, &expires)
	if pg.NoRows(err) || (err == nil && !now.Before(expires)) {
		return "", ErrNone
	}
	if err != nil {
		return "", fmt.Errorf("use passcode: %w", err)
	}
	return userID, nil
}

// Approved is what a person has allowed a client.
func (s *Store) Approved(ctx context.Context, userID, clientID string) ([]string, error) {
	var scopes []string
	err := s.pool.QueryRow(ctx, `select scopes from approvals where user_id = $1 and client_id = $2`, userID, clientID).Scan(&scopes)
	if err != nil && !pg.NoRows(err) {
		return nil, fmt.Errorf("get approval: %w", err)
	}
	return scopes, nil
}

// Approve remembers what a person allows a client, beside what they allowed before.
func (s *Store) Approve(ctx context.Context, userID, clientID string, scopes []string) error {
	_, err := s.pool.Exec(ctx, `insert into approvals (user_id, client_id, scopes) values ($1, $2, $3)
		on conflict (user_id, client_id) do update set granted_at = now(),
			scopes = (select array_agg(distinct x order by x) from unnest(approvals.scopes || excluded.scopes) x)`, userID, clientID, none(scopes))
	if err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	return nil
}

// Failures counts the failed logins with a name.
func (s *Store) Failures(ctx context.Context, nameHash string) (auth.Failures, error) {
	var f auth.Failures
	err := s.pool.QueryRow(ctx, `select failures, last_at from login_failures where name_hash = $1`, nameHash).Scan(&f.Count, &f.Last)
	if err != nil && !pg.NoRows(err) {
		return f, fmt.Errorf("get failures: %w", err)
	}
	return f, nil
}

// Failed counts one more. Failures older than the lock's time are forgotten first.
func (s *Store) Failed(ctx context.Context, nameHash string, now time.Time) error {
	_, err := s.pool.Exec(ctx, `insert into login_failures (name_hash, failures, last_at) values ($1, 1, $2)
		on conflict (name_hash) do update set last_at = $2, failures = case when login_failures.last_at < $3 then 1 else login_failures.failures + 1 end`,
		nameHash, now, now.Add(-auth.LockFor))
	if err != nil {
		return fmt.Errorf("count failure: %w", err)
	}
	return nil
}

// LoggedIn forgets the failures of a name and notes the login.
func (s *Store) LoggedIn(ctx context.Context, nameHash, userID string, now time.Time) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from login_failures where name_hash = $1`, nameHash); err != nil {
			return fmt.Errorf("forget failures: %w", err)
		}
		if _, err := tx.Exec(ctx, `update users set last_login_at = $2 where id = $1`, userID, now); err != nil {
			return fmt.Errorf("note login: %w", err)
		}
		return nil
	})
}
