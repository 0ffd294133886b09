package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var domains = noun[platform.Domain]{
	name: "Domain", from: `domains t`, columns: `t.guid, t.name, t.protocol, t.internal, coalesce(t.org_guid, ''), t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(d *platform.Domain) []any {
		return []any{&d.GUID, &d.Name, &d.Protocol, &d.Internal, &d.OrgGUID, &d.Metadata.Labels, &d.Metadata.Annotations, &d.CreatedAt, &d.UpdatedAt}
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

// AppsDomain makes sure of the shared domain, and gives it. It is refused where a domain of an organization is in its way.
func (s *Store) AppsDomain(ctx context.Context, name string) (platform.Domain, error) {
	return s.sharedDomain(ctx, name, platform.ProtocolHTTP)
}

// TCPDomain makes sure of the shared domain whose routes are ports, and gives it.
func (s *Store) TCPDomain(ctx context.Context, name string) (platform.Domain, error) {
	return s.sharedDomain(ctx, name, platform.ProtocolTCP)
}

func (s *Store) sharedDomain(ctx context.Context, name, protocol string) (platform.Domain, error) {
	name = strings.ToLower(name)
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Domain, error) {
		if err := lockDomains(ctx, tx); err != nil {
			return platform.Domain{}, err
		}
		d, err := domains.collect(ctx, tx, `select `+domains.columns+` from `+domains.from+` where t.name = $1 and t.org_guid is null`, []any{name})
		if err == nil && d.Protocol != protocol {
			return d, platform.ErrOtherProtocol(d, protocol)
		}
		if !pg.NoRows(err) {
			return d, err
		}
		d = platform.Domain{GUID: platform.NewGUID(), Name: name, Protocol: protocol}
		if err := standsAlone(ctx, tx, d); err != nil {
			return d, err
		}
		if _, err := tx.Exec(ctx, `insert into domains (guid, name, protocol) values ($1, $2, $3)`, d.GUID, d.Name, d.Protocol); err != nil {
			return d, fmt.Errorf("make the shared domain %s: %w", d.Name, err)
		}
		return domains.read(ctx, tx, d.GUID)
	})
}

// CreateDomain adds a domain to an organization, or a shared one.
func (s *Store) CreateDomain(ctx context.Context, who platform.Who, d platform.Domain, set Settings) (platform.Domain, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Domain, error) {
		if err := mayCreateDomain(ctx, tx, who, d); err != nil {
			return d, err
		}
		if err := d.Check(); err != nil {
			return d, err
		}
		if err := set.Reserved.MayCreate(d); err != nil {
			return d, err
		}
		if err := standsAlone(ctx, tx, d); err != nil {
			return d, err
		}
		d.GUID = platform.NewGUID()
		_, err := tx.Exec(ctx, `insert into domains (guid, name, org_guid, labels, annotations) values ($1, $2, nullif($3, ''), $4, $5)`,
			d.GUID, d.Name, d.OrgGUID, none2(d.Metadata.Labels), none2(d.Metadata.Annotations))
		if err != nil {
			return d, fmt.Errorf("write domain: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.domain.create", domainTarget(d), d.OrgGUID, "")); err != nil {
			return d, err
		}
		return domains.read(ctx, tx, d.GUID)
	})
}

func domainTarget(d platform.Domain) platform.Actor {
	return platform.Actor{GUID: d.GUID, Type: "domain", Name: d.Name}
}

func mayCreateDomain(ctx context.Context, tx pgx.Tx, who platform.Who, d platform.Domain) error {
	if d.Shared() {
		return who.MayAdminister()
	}
	if _, err := orgs.named(ctx, tx, who, platform.ManageOrg, d.OrgGUID); err != nil {
		return err
	}
	return allowed(ctx, tx, who, platform.FlagPrivateDomainCreation)
}

// lockDomains lets one domain be created at a time, so that no two pass each other.
func lockDomains(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('domains', 0))`); err != nil {
		return fmt.Errorf("lock domains: %w", err)
	}
	return nil
}

// standsAlone asks about all domains above and below a new one, and about a route that has the name of a shared one.
func standsAlone(ctx context.Context, tx pgx.Tx, d platform.Domain) error {
	if err := lockDomains(ctx, tx); err != nil {
		return err
	}
	if err := lockHost(ctx, tx, d.Name); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `select `+domains.columns+` from `+domains.from+` where t.name = any($1) or right(t.name, length($2::text) + 1) = '.' || $2::text order by t.name = $2::text desc, t.name`, d.AndAbove(), d.Name)
	if err != nil {
		return fmt.Errorf("find domains: %w", err)
	}
	others, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.Domain, error) {
		var other platform.Domain
		err := row.Scan(domains.into(&other)...)
		return other, err
	})
	if err != nil {
		return fmt.Errorf("find domains: %w", err)
	}
	for _, other := range others {
		if err := d.MayStandBeside(other); err != nil {
			return err
		}
	}
	var taken bool
	if err := tx.QueryRow(ctx, `select exists(select from routes where hostname = $1)`, d.Name).Scan(&taken); err != nil {
		return fmt.Errorf("find host: %w", err)
	}
	if taken && d.Shared() {
		return fault.Unprocessable("The domain '%s' cannot be created: a route has this name. Choose another, or have the route deleted first.", d.Name)
	}
	return nil
}

// UpdateDomain changes what is noted on a domain.
func (s *Store) UpdateDomain(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.Domain, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Domain, error) {
		d, err := ownDomain(ctx, tx, who, guid)
		if err != nil {
			return d, err
		}
		d.Metadata.Apply(change)
		if err := d.Metadata.Check(); err != nil {
			return d, err
		}
		if _, err := tx.Exec(ctx, `update domains set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, d.Metadata.Labels, d.Metadata.Annotations); err != nil {
			return d, fmt.Errorf("save domain: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.domain.update", domainTarget(d), d.OrgGUID, "")); err != nil {
			return d, err
		}
		return domains.read(ctx, tx, guid)
	})
}

// ownDomain locks a domain for somebody who may change it: a manager of its organization, or of a shared one an administrator.
func ownDomain(ctx context.Context, tx pgx.Tx, who platform.Who, guid string) (platform.Domain, error) {
	d, err := domains.lock(ctx, tx, who, platform.Read, guid)
	if err != nil {
		return d, err
	}
	if d.Shared() {
		return d, who.MayAdminister()
	}
	_, err = orgs.find(ctx, tx, who, platform.ManageOrg, d.OrgGUID)
	return d, err
}

// DeleteDomain removes a domain with its routes. Those that are made at the start stay.
func (s *Store) DeleteDomain(ctx context.Context, who platform.Who, guid string, set Settings) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		d, err := ownDomain(ctx, tx, who, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if d.GUID == set.Domain.GUID {
			return platform.Job{}, platform.ErrLastDomain
		}
		if d.GUID == set.TCP.Domain.GUID {
			return platform.Job{}, platform.ErrTCPDomain
		}
		if _, err := tx.Exec(ctx, `delete from domains where guid = $1`, guid); err != nil {
			return platform.Job{}, fmt.Errorf("delete domain: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.domain.delete-request", domainTarget(d), d.OrgGUID, "")); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "domain.delete", platform.JobComplete)
	})
}
