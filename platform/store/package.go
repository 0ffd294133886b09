package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var packages = noun[platform.Package]{
	name: "Package", from: `packages t` + inApp, space: `a.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.app_guid, t.type, t.state, t.error, t.image, t.docker_image, t.docker_username, t.size, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(p *platform.Package) []any {
		return []any{&p.GUID, &p.AppGUID, &p.Type, &p.State, &p.Error, &p.Image, &p.Docker.Image, &p.Docker.Username, &p.Size,
			&p.Metadata.Labels, &p.Metadata.Annotations, &p.CreatedAt, &p.UpdatedAt}
	},
	filters: map[string]string{"types": `t.type`, "states": `t.state`, "app_guids": `t.app_guid`, "space_guids": `a.space_guid`, "organization_guids": `s.org_guid`},
	labels:  `t.labels`,
}

// Packages lists packages.
func (s *Store) Packages(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Package], error) {
	return packages.list(ctx, s.pool, who, l)
}

// Package reads one package.
func (s *Store) Package(ctx context.Context, who platform.Who, guid string) (platform.Package, error) {
	return packages.find(ctx, s.pool, who, platform.Read, guid)
}

// CreatePackage makes room for an upload, or notes an image.
func (s *Store) CreatePackage(ctx context.Context, who platform.Who, p platform.Package) (platform.Package, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Package, error) {
		a, err := apps.named(ctx, tx, who, platform.Develop, p.AppGUID)
		if err != nil {
			return p, err
		}
		if err := p.Check(a); err != nil {
			return p, err
		}
		p.GUID = platform.NewGUID()
		var password []byte
		if p.Docker.Password != "" {
			if password, err = s.seal(p.Docker.Password, "package password "+p.GUID); err != nil {
				return p, err
			}
		}
		_, err = tx.Exec(ctx, `insert into packages (guid, app_guid, type, state, docker_image, docker_username, docker_password, labels, annotations)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			p.GUID, p.AppGUID, p.Type, p.State, p.Docker.Image, p.Docker.Username, password, none2(p.Metadata.Labels), none2(p.Metadata.Annotations))
		if err != nil {
			return p, fmt.Errorf("write package: %w", err)
		}
		if err := s.recordApp(ctx, tx, who, "package.create", a, map[string]any{"package_guid": p.GUID}); err != nil {
			return p, err
		}
		return packages.read(ctx, tx, p.GUID)
	})
}

// MayUpload says whether somebody may upload to a package, before all of the upload is there.
func (s *Store) MayUpload(ctx context.Context, who platform.Who, guid string) error {
	p, err := packages.find(ctx, s.pool, who, platform.Develop, guid)
	if err != nil {
		return err
	}
	return p.TakeUpload()
}

// BeginUpload takes the one upload of a package.
func (s *Store) BeginUpload(ctx context.Context, who platform.Who, guid string) (platform.Package, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Package, error) {
		p, err := packages.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return p, err
		}
		if err := p.TakeUpload(); err != nil {
			return p, err
		}
		a, err := apps.read(ctx, tx, p.AppGUID)
		if err != nil {
			return p, err
		}
		if err := s.recordApp(ctx, tx, who, "package.upload", a, map[string]any{"package_guid": p.GUID}); err != nil {
			return p, err
		}
		_, err = tx.Exec(ctx, `update packages set state = $2, updated_at = now() where guid = $1`, guid, p.State)
		if err != nil {
			return p, fmt.Errorf("begin upload: %w", err)
		}
		return packages.read(ctx, tx, guid)
	})
}

// EndUpload writes what became of an upload that was begun: the image, or why there is none. Notes may have changed meanwhile; they stay.
func (s *Store) EndUpload(ctx context.Context, p platform.Package) (platform.Package, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Package, error) {
		tag, err := tx.Exec(ctx, `update packages set state = $2, error = $3, image = $4, size = $5, updated_at = now() where guid = $1 and state = $6`,
			p.GUID, p.State, p.Error, p.Image, p.Size, platform.PackageProcessing)
		if err != nil {
			return p, fmt.Errorf("end upload: %w", err)
		}
		if err := exactly(tag.RowsAffected(), "Package"); err != nil {
			return p, err
		}
		return packages.read(ctx, tx, p.GUID)
	})
}

// UpdatePackage changes what is noted on a package.
func (s *Store) UpdatePackage(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.Package, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Package, error) {
		p, err := packages.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return p, err
		}
		p.Metadata.Apply(change)
		if err := p.Metadata.Check(); err != nil {
			return p, err
		}
		_, err = tx.Exec(ctx, `update packages set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, p.Metadata.Labels, p.Metadata.Annotations)
		if err != nil {
			return p, fmt.Errorf("save package: %w", err)
		}
		return packages.read(ctx, tx, guid)
	})
}

// DeletePackage forgets a package that is not being staged; its image goes with the sweep.
func (s *Store) DeletePackage(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		p, err := packages.find(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if _, err := apps.lock(ctx, tx, who, platform.Develop, p.AppGUID); err != nil { // no build begins meanwhile
			return platform.Job{}, err
		}
		var staging bool
		if err := tx.QueryRow(ctx, `select exists (select from builds where app_guid = $1 and package_guid = $2 and state = $3)`, p.AppGUID, guid, platform.BuildStaging).Scan(&staging); err != nil {
			return platform.Job{}, fmt.Errorf("look for builds: %w", err)
		}
		if staging {
			return platform.Job{}, platform.ErrPackageStaging
		}
		tag, err := tx.Exec(ctx, `delete from packages where guid = $1`, guid)
		if err != nil {
			return platform.Job{}, fmt.Errorf("delete package: %w", err)
		}
		if err := exactly(tag.RowsAffected(), "Package"); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "package.delete", platform.JobComplete)
	})
}
