-- +goose Up

-- An app as it was started once. What could be secret of it is sealed.
create table revisions (
    guid         text primary key,
    app_guid     text        not null references apps on delete cascade,
    version      int         not null,
    droplet_guid text        not null, -- it may be gone: then nobody goes back to the revision
    description  text        not null,
    body         bytea       not null,
    labels       jsonb       not null default '{}',
    annotations  jsonb       not null default '{}',
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    constraint revision_version unique (app_guid, version)
);
create index revisions_app on revisions (app_guid, created_at, guid);
alter table releases add column revision_guid text; -- null: from before there were any

create table deployments (
    guid                  text primary key,
    app_guid              text        not null references apps on delete cascade,
    strategy              text        not null,
    status_value          text        not null,
    status_reason         text        not null,
    max_in_flight         int         not null,
    steps                 int[]       not null,
    step                  int         not null,
    scale                 jsonb       not null, -- of the web process, as it was asked for
    droplet_guid          text        not null,
    previous_droplet_guid text        not null,
    revision_guid         text        not null,
    version               int         not null, -- of the new releases
    previous_version      int         not null,
    ready                 int         not null default 0,
    before                bytea, -- what a cancel gives back to the app, sealed
    labels                jsonb       not null default '{}',
    annotations           jsonb       not null default '{}',
    changed_at            timestamptz not null default now(), -- the status
    healthy_at            timestamptz not null default now(), -- a new instance became so
    created_at            timestamptz not null default now(),
    updated_at            timestamptz not null default now()
);
create unique index deployment_active on deployments (app_guid) where status_value = 'ACTIVE';
create index deployments_app on deployments (app_guid, created_at, guid);
create index deployments_created on deployments (created_at, guid);

-- Releases that give way to the one their process runs, while a deployment is under way.
create table draining (
    process_guid text        not null references processes on delete cascade,
    release_guid text        not null references releases on delete cascade,
    since        timestamptz not null default now(),
    primary key (process_guid, release_guid)
);

-- Two releases of a process run at once while one takes the other's place. Controllers of before cannot record instances from here on:
-- they are stopped first.
alter table instances drop constraint instances_pkey, add primary key (process_guid, release_guid, index);

create trigger deployments_hint after insert or update of status_reason, step on deployments for each statement execute function hint_cluster();
