package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// One of several processes acts for a cluster: the one whose connection holds a lock. When the connection is cut, the server
// notices after 5 s of silence and three questions 2 s apart, and gives the lock to another. By then its former holder has
// stopped: it asks every 2 s and waits 3 s for the answer.
const (
	leadTry    = 2 * time.Second
	leadAsk    = 2 * time.Second
	leadAnswer = 3 * time.Second
)

// ErrLeadLost ends the context of who led, and tells why.
var ErrLeadLost = errors.New("another process may act for this cluster now: the connection that held the lock was lost")

// JoinCluster makes a cluster known, so that spaces may be placed on it.
func (s *Store) JoinCluster(ctx context.Context, cluster string) error {
	if _, err := s.pool.Exec(ctx, `insert into clusters (id) values ($1) on conflict do nothing`, cluster); err != nil {
		return fmt.Errorf("join cluster: %w", err)
	}
	return nil
}

// Lead waits until no other process acts for a cluster, and then calls act, whose context ends as soon as that is no longer
// certain. Hints come when something of the cluster may have changed in the database; many are one. The lock is let go only
// after act has returned.
func (s *Store) Lead(ctx context.Context, cluster string, act func(ctx context.Context, hints <-chan struct{}) error) error {
	conn, err := s.leadConn(ctx, cluster)
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), leadAnswer)
		defer cancel()
		_ = conn.Close(bye)
	}()
	lead, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	hints, watched := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(watched)
		lose(holdLead(lead, conn, hints))
	}()
	err = act(lead, hints)
	if cause := context.Cause(lead); cause != nil && ctx.Err() == nil {
		err = cause
	}
	lose(nil)
	<-watched
	return err
}

// leadConn is a connection of its own: one of the pool's could be closed for its age.
func (s *Store) leadConn(ctx context.Context, cluster string) (*pgx.Conn, error) {
	config := s.pool.Config().ConnConfig.Copy()
	for name, seconds := range map[string]string{"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "tcp_user_timeout": "11000"} {
		config.RuntimeParams[name] = seconds
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to lead: %w", err)
	}
	for {
		var mine bool
		if err = conn.QueryRow(ctx, `select pg_try_advisory_lock(hashtextextended('proa cluster ' || $1, 0))`, cluster).Scan(&mine); err != nil {
			err = fmt.Errorf("lock cluster: %w", err)
			break
		}
		if mine {
			if _, err = conn.Exec(ctx, `listen proa_cluster`); err == nil {
				return conn, nil
			}
			break
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(leadTry):
			continue
		}
		break
	}
	_ = conn.Close(context.WithoutCancel(ctx))
	return nil, err
}

// holdLead returns when the connection no longer answers.
func holdLead(ctx context.Context, conn *pgx.Conn, hints chan<- struct{}) error {
	for {
		wait, cancel := context.WithTimeout(ctx, leadAsk)
		_, err := conn.WaitForNotification(wait)
		cancel()
		if err == nil {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ask, cancel := context.WithTimeout(ctx, leadAnswer)
		err = conn.Ping(ask)
		cancel()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrLeadLost, err)
		}
	}
}
