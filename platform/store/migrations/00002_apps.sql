-- +goose Up

-- What is secret is sealed by the program before it comes here: env, docker passwords, releases.
create table apps (
    guid           text primary key,
    space_guid     text        not null constraint app_space references spaces on delete cascade,
    name           text        not null,
    state          text        not null default 'STOPPED',
    lifecycle      text        not null default 'buildpack',
    buildpacks     text[]      not null default '{}',
    stack          text        not null default '',
    droplet_guid   text,
    env            bytea,
    allow_ssh      boolean     not null default true,
    releases       int         not null default 0, -- how many there have been: the next one's number
    labels         jsonb       not null default '{}',
    annotations    jsonb       not null default '{}',
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    constraint app_name unique (space_guid, name)
);
create index apps_created on apps (created_at, guid);
create index apps_named on apps (name, guid);

create table processes (
    guid         text primary key,
    app_guid     text        not null references apps on delete cascade,
    type         text        not null,
    command      text,
    instances    int         not null,
    memory_mb    int         not null,
    disk_mb      int         not null,
    log_rate     bigint      not null,
    health       jsonb       not null,
    readiness    jsonb       not null,
    release_guid text, -- what it runs, or would if its app were started
    labels       jsonb       not null default '{}',
    annotations  jsonb       not null default '{}',
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    constraint process_type unique (app_guid, type)
);
create index processes_created on processes (created_at, guid);

create table sidecars (
    guid          text primary key,
    app_guid      text        not null references apps on delete cascade,
    name          text        not null,
    command       text        not null,
    process_types text[]      not null,
    memory_mb     int,
    origin        text        not null,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    constraint sidecar_name unique (app_guid, name)
);

create table packages (
    guid            text primary key,
    app_guid        text        not null references apps on delete cascade,
    type            text        not null,
    state           text        not null,
    error           text        not null default '',
    image           text        not null default '',
    docker_image    text        not null default '',
    docker_username text        not null default '',
    docker_password bytea,
    size            bigint      not null default 0,
    labels          jsonb       not null default '{}',
    annotations     jsonb       not null default '{}',
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now()
);
create index packages_app on packages (app_guid, created_at, guid);
create index packages_created on packages (created_at, guid);

create table droplets (
    guid         text primary key,
    app_guid     text        not null references apps on delete cascade,
    package_guid text        not null,
    build_guid   text        not null,
    state        text        not null,
    image        text        not null,
    lifecycle    text        not null,
    stack        text        not null default '',
    processes    jsonb       not null default '[]',
    buildpacks   jsonb       not null default '[]',
    labels       jsonb       not null default '{}',
    annotations  jsonb       not null default '{}',
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now()
);
create index droplets_app on droplets (app_guid, created_at, guid);
create index droplets_created on droplets (created_at, guid);
create index droplets_package on droplets (package_guid);

create table builds (
    guid         text primary key,
    app_guid     text        not null references apps on delete cascade,
    package_guid text        not null,
    droplet_guid text        not null default '',
    state        text        not null,
    error        text        not null default '',
    lifecycle    text        not null,
    buildpacks   text[]      not null default '{}',
    stack        text        not null default '',
    memory_mb    int         not null,
    disk_mb      int         not null,
    actor_guid   text        not null,
    actor_type   text        not null,
    actor_name   text        not null,
    env          bytea, -- as it was when the build was asked for
    labels       jsonb       not null default '{}',
    annotations  jsonb       not null default '{}',
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now()
);
create index builds_app on builds (app_guid, created_at, guid);
create index builds_created on builds (created_at, guid);
create index builds_running on builds (created_at) where state = 'STAGING';

-- A process as it was when it was started. Never changed: what differs is the next release.
create table releases (
    guid         text primary key,
    app_guid     text        not null references apps on delete cascade,
    process_guid text        not null references processes on delete cascade,
    version      int         not null,
    body         bytea       not null,
    created_at   timestamptz not null default now(),
    constraint release_version unique (process_guid, version)
);

-- What the controller of a cluster saw last. The truth about instances is the cluster; this is for those who ask the API.
create table instances (
    process_guid text        not null references processes on delete cascade,
    index        int         not null,
    release_guid text        not null,
    pod          text        not null,
    node         text        not null,
    address      text        not null,
    state        text        not null,
    since        timestamptz not null,
    ready        boolean     not null,
    restarts     int         not null,
    details      text        not null,
    primary key (process_guid, index)
);

-- Lines that no container keeps: of staging, of the platform itself. Those of apps are read from the cluster.
create table log_lines (
    id       bigint generated always as identity primary key,
    app_guid text   not null references apps on delete cascade,
    at       bigint not null, -- nanoseconds since 1970, ascending for each app
    source   text   not null, -- such as STG
    instance text   not null,
    stderr   boolean not null,
    text     text   not null
);
create index log_lines_app on log_lines (app_guid, at);

-- Whoever runs a cluster wants to know at once. Losing a hint costs seconds, because everything is looked through anyway.
-- +goose StatementBegin
create function hint_cluster() returns trigger language plpgsql as $$
begin
    perform pg_notify('proa_cluster', '');
    return null;
end $$;
-- +goose StatementEnd
create trigger apps_hint after insert or update of state, droplet_guid, releases or delete on apps for each statement execute function hint_cluster();
create trigger processes_hint after update of instances, release_guid on processes for each statement execute function hint_cluster();
create trigger builds_hint after insert on builds for each statement execute function hint_cluster();
create trigger spaces_hint after delete on spaces for each statement execute function hint_cluster();
