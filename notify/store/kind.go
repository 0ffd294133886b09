package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/notify"
)

func noKind(clientID, kindID string) error {
	return fault.NotFound("The kind %q is not registered for the client %q. Register it with PUT /notifications, then send again.", kindID, clientID)
}

// Register makes a client and its kinds known. A kind that is known is brought up to date and keeps its template; one that is not
// named stays. Only who may do critical things can make a kind critical, or take over one that is.
func (s *Store) Register(ctx context.Context, who Who, clientID string, r notify.Registration, mayCritical bool) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into sources (client_id, name) values ($1, $2) on conflict (client_id) do update set name = $2, modified_at = now()`,
			clientID, r.SourceName); err != nil {
			return fmt.Errorf("register source: %w", err)
		}
		for _, k := range r.Kinds {
			if k.Critical && !mayCritical {
				return notify.ErrCritical
			}
			var was bool
			err := tx.QueryRow(ctx, `select critical from kinds where client_id = $1 and id = $2 for update`, clientID, k.ID).Scan(&was)
			if err != nil && !pg.NoRows(err) {
				return fmt.Errorf("read kind: %w", err)
			}
			if was && !mayCritical {
				return notify.ErrCritical
			}
			if _, err := tx.Exec(ctx, `insert into kinds (client_id, id, description, critical) values ($1, $2, $3, $4)
				on conflict (client_id, id) do update set description = $3, critical = $4, modified_at = now()`, clientID, k.ID, k.Description, k.Critical); err != nil {
				return fmt.Errorf("register kind: %w", err)
			}
		}
		return audit(ctx, tx, who, "registration", clientID, map[string]any{"kinds": len(r.Kinds)})
	})
}

// Sources lists every source with its kinds.
func (s *Store) Sources(ctx context.Context) ([]notify.Source, []notify.Kind, error) {
	rows, err := s.pool.Query(ctx, `select client_id, name, coalesce(template_id, ''), modified_at from sources order by client_id`)
	if err != nil {
		return nil, nil, fmt.Errorf("list sources: %w", err)
	}
	sources, err := pgx.CollectRows(rows, pgx.RowToStructByPos[notify.Source])
	if err != nil {
		return nil, nil, err
	}
	rows, err = s.pool.Query(ctx, `select `+kindColumns+` from kinds order by client_id, id`)
	if err != nil {
		return nil, nil, fmt.Errorf("list kinds: %w", err)
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[notify.Kind])
	return sources, kinds, err
}

const kindColumns = `client_id, id, description, critical, coalesce(template_id, ''), modified_at`

func getKind(ctx context.Context, tx pgx.Tx, clientID, kindID, lock string) (notify.Kind, error) {
	rows, err := tx.Query(ctx, `select `+kindColumns+` from kinds where client_id = $1 and id = $2 `+lock, clientID, kindID)
	if err != nil {
		return notify.Kind{}, fmt.Errorf("get kind: %w", err)
	}
	k, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[notify.Kind])
	if pg.NoRows(err) {
		return k, noKind(clientID, kindID)
	}
	return k, err
}

// UpdateKind changes a kind under its lock.
func (s *Store) UpdateKind(ctx context.Context, who Who, clientID, kindID string, mayCritical bool, change func(*notify.Kind) error) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		k, err := getKind(ctx, tx, clientID, kindID, "for update")
		if err != nil {
			return err
		}
		was := k.Critical
		if err := change(&k); err != nil {
			return err
		}
		if (was || k.Critical) && !mayCritical {
			return notify.ErrCritical
		}
		_, err = tx.Exec(ctx, `update kinds set description = $3, critical = $4, template_id = nullif($5, ''), modified_at = now() where client_id = $1 and id = $2`,
			clientID, kindID, k.Description, k.Critical, template(k.TemplateID))
		if err != nil {
			return noSuchTemplate(err, k.TemplateID)
		}
		return audit(ctx, tx, who, "kind.update", clientID+"/"+kindID, nil)
	})
}

// template is how the default is kept: as none.
func template(id string) string {
	if id == notify.DefaultTemplateID {
		return ""
	}
	return id
}

// DeleteKind removes a kind. What people have decided about it stays, should it come back.
func (s *Store) DeleteKind(ctx context.Context, who Who, clientID, kindID string, mayCritical bool) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		k, err := getKind(ctx, tx, clientID, kindID, "for update")
		if err != nil {
			return err
		}
		if k.Critical && !mayCritical {
			return notify.ErrCritical
		}
		if _, err := tx.Exec(ctx, `delete from kinds where client_id = $1 and id = $2`, clientID, kindID); err != nil {
			return fmt.Errorf("delete kind: %w", err)
		}
		return audit(ctx, tx, who, "kind.delete", clientID+"/"+kindID, nil)
	})
}

// SetKindTemplate gives a kind a template; "" and the default's id take it away.
func (s *Store) SetKindTemplate(ctx context.Context, who Who, clientID, kindID, templateID string) error {
	return s.setTemplate(ctx, who, templateID, clientID+"/"+kindID, noKind(clientID, kindID),
		`update kinds set template_id = nullif($1, ''), modified_at = now() where client_id = $2 and id = $3`, clientID, kindID)
}

// SetSourceTemplate gives a template to all kinds of a source that have none of their own.
func (s *Store) SetSourceTemplate(ctx context.Context, who Who, clientID, templateID string) error {
	return s.setTemplate(ctx, who, templateID, clientID, fault.NotFound("The client %q has registered nothing. It registers with PUT /notifications.", clientID),
		`update sources set template_id = nullif($1, ''), modified_at = now() where client_id = $2`, clientID)
}

func (s *Store) setTemplate(ctx context.Context, who Who, templateID, target string, missing error, statement string, args ...any) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statement, append([]any{template(templateID)}, args...)...)
		if err != nil {
			return noSuchTemplate(err, templateID)
		}
		if tag.RowsAffected() == 0 {
			return missing
		}
		return audit(ctx, tx, who, "template.assign", target, map[string]any{"template": templateID})
	})
}

func noSuchTemplate(err error, id string) error {
	if _, missing := pg.Conflict(err); missing {
		return fault.Unprocessable("template: there is no template %q. List them with GET /templates.", id).Because(err)
	}
	return fmt.Errorf("assign template: %w", err)
}
