package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var domains = noun[platform.Domain]{
	name: "Domain", from: `domains t`, columns: `t.guid, t.name, t.internal, coalesce(t.org_guid, ''), t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(d *platform.Domain) []any {
		return []any{&d.GUID, &d.Name, &d.Internal, &d.OrgGUID, &d.Metadata.Labels, &d.Metadata.Annotations, &d.CreatedAt, &d.UpdatedAt}
	},
	filters: map[string]string{"names": `t.name`, "organization_guids": `t.org_guid`}, order: map[string]string{"name": `t.name`}, labels: `t.labels`,
	open: func(q *query, who platform.Who) string {
		return `t.org_guid is null or ` + seesOrg(q, who, platform.Read, `t.org_guid`)
	},
}

// Domains lists domains.
func (s *Store) Domains(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Domain], error) {
	return domains.list(ctx, s.pool, who, l)
}

// OrgDomains lists the domains that an organization can use.
func (s *Store) OrgDomains(ctx context.Context, who platform.Who, org string, l platform.List) (platform.Page[platform.Domain], error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Page[platform.Domain], error) {
		if _, err := orgs.find(ctx, tx, who, platform.Read, org); err != nil {
			return platform.Page[platform.Domain]{}, err
		}
		usable := domains
		usable.open = func(q *query, _ platform.Who) string { return `t.org_guid is null or t.org_guid = ` + q.arg(org) }
		who.Scopes = nil // narrowed for those who see everything, too
		return usable.list(ctx, tx, who, l)
	})
}

// Domain reads one domain.
func (s *Store) Domain(ctx context.Context, who platform.Who, guid string) (platform.Domain, error) {
	return domains.find(ctx, s.pool, who, platform.Read, guid)
}

// AppsDomain makes sure of the shared domain, and gives it.
func (s *Store) AppsDomain(ctx context.Context, name string) (platform.Domain, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Domain, error) {
		if _, err := tx.Exec(ctx, `insert into domains (guid, name) values ($1, $2) on conflict (name) do nothing`, platform.NewGUID(), name); err != nil {
			return platform.Domain{}, fmt.Errorf("make the apps domain: %w", err)
		}
		return domains.collect(ctx, tx, `select `+domains.columns+` from `+domains.from+` where t.name = $1 and t.org_guid is null`, []any{name})
	})
}
