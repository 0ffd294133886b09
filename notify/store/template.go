package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/notify"
)

const templateColumns = `id, name, subject, body_text, body_html, metadata, version, created_at, modified_at`

func noTemplate(id string) error {
	return fault.NotFound("There is no template %q. List them with GET /templates.", id)
}

// seed keeps the system's own template up to date until somebody changes it.
func (s *Store) seed(ctx context.Context) error {
	t := notify.Default()
	_, err := s.pool.Exec(ctx, `insert into templates (id, name, subject, body_text, body_html, metadata) values ($1, $2, $3, $4, $5, $6)
		on conflict (id) do update set name = $2, subject = $3, body_text = $4, body_html = $5 where templates.version = 0`,
		notify.DefaultTemplateID, t.Name, t.Subject, t.Text, t.HTML, metadata(t))
	if err != nil {
		return fmt.Errorf("seed the default template: %w", err)
	}
	return nil
}

func metadata(t notify.Template) []byte {
	if len(t.Metadata) == 0 {
		return []byte("{}")
	}
	return t.Metadata
}

// Template reads one template.
func (s *Store) Template(ctx context.Context, id string) (notify.Template, error) {
	rows, err := s.pool.Query(ctx, `select `+templateColumns+` from templates where id = $1`, id)
	if err != nil {
		return notify.Template{}, fmt.Errorf("get template: %w", err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[notify.Template])
	if pg.NoRows(err) {
		return t, noTemplate(id)
	}
	return t, err
}

// Templates lists all but the default.
func (s *Store) Templates(ctx context.Context) ([]notify.Template, error) {
	rows, err := s.pool.Query(ctx, `select `+templateColumns+` from templates where id <> $1 order by name, id`, notify.DefaultTemplateID)
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[notify.Template])
}

// CreateTemplate adds a template that was checked.
func (s *Store) CreateTemplate(ctx context.Context, who Who, t notify.Template) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into templates (id, name, subject, body_text, body_html, metadata) values ($1, $2, $3, $4, $5, $6)`,
			t.ID, t.Name, t.Subject, t.Text, t.HTML, metadata(t)); err != nil {
			return fmt.Errorf("create template: %w", err)
		}
		return audit(ctx, tx, who, "template.create", t.ID, map[string]any{"name": t.Name})
	})
}

// UpdateTemplate replaces a template with one that was checked.
func (s *Store) UpdateTemplate(ctx context.Context, who Who, t notify.Template) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update templates set name = $2, subject = $3, body_text = $4, body_html = $5, metadata = $6, version = version + 1, modified_at = now() where id = $1`,
			t.ID, t.Name, t.Subject, t.Text, t.HTML, metadata(t))
		if err != nil {
			return fmt.Errorf("update template: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return noTemplate(t.ID)
		}
		return audit(ctx, tx, who, "template.update", t.ID, map[string]any{"name": t.Name})
	})
}

// DeleteTemplate removes a template that nothing uses.
func (s *Store) DeleteTemplate(ctx context.Context, who Who, id string) error {
	if id == notify.DefaultTemplateID {
		return fault.Conflict("The default template cannot be deleted. Change it with PUT /default_template.")
	}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from templates where id = $1`, id)
		if _, used := pg.Conflict(err); used {
			return fault.Conflict("The template is in use. See GET /templates/%s/associations, and assign another one there first.", id).Because(err)
		}
		if err != nil {
			return fmt.Errorf("delete template: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return noTemplate(id)
		}
		return audit(ctx, tx, who, "template.delete", id, nil)
	})
}

// Association is a source or kind that uses a template.
type Association struct{ ClientID, KindID string }

// Associations lists what uses a template: sources first.
func (s *Store) Associations(ctx context.Context, id string) ([]Association, error) {
	if _, err := s.Template(ctx, id); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, `select client_id, '' from sources where template_id = $1 union all select client_id, id from kinds where template_id = $1 order by 2, 1`, id)
	if err != nil {
		return nil, fmt.Errorf("list associations: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Association])
}

// Look is all that stays the same for every mail of a message: the template it is dressed in and the words about its kind.
type Look struct {
	Template notify.Template
	Kind     string // described in words
	Source   string // described in words
}

// Look finds the template of a kind: its own, else its source's, else the default.
func (s *Store) Look(ctx context.Context, clientID, kindID string) (Look, error) {
	var l Look
	t := &l.Template
	var created, modified time.Time
	err := s.pool.QueryRow(ctx, `select t.id, t.name, t.subject, t.body_text, t.body_html, t.metadata, t.version, t.created_at, t.modified_at,
			coalesce(k.description, nullif($2, ''), ''), coalesce(s.name, $1)
		from (select 1) one left join sources s on s.client_id = $1 left join kinds k on k.client_id = $1 and k.id = $2
		join templates t on t.id = coalesce(k.template_id, s.template_id, $3)`, clientID, kindID, notify.DefaultTemplateID).
		Scan(&t.ID, &t.Name, &t.Subject, &t.Text, &t.HTML, &t.Metadata, &t.Version, &created, &modified, &l.Kind, &l.Source)
	if err != nil {
		return l, fmt.Errorf("find template: %w", err)
	}
	t.Created, t.Modified = created, modified
	return l, nil
}
