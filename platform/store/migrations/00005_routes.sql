-- +goose Up

-- The hostname is the host and the name of its domain, which never changes: so that an address is one route, whatever domains there are.
create table routes (
    guid        text primary key,
    space_guid  text        not null constraint route_space references spaces on delete cascade,
    domain_guid text        not null constraint route_domain references domains on delete cascade,
    host        text        not null,
    hostname    text        not null,
    path        text        not null,
    port        int         not null default 0, -- 0: http
    labels      jsonb       not null default '{}',
    annotations jsonb       not null default '{}',
    created_at  timestamptz not null default clock_timestamp(), -- those of one manifest keep their order
    updated_at  timestamptz not null default clock_timestamp(),
    constraint route_address unique (hostname, path, port)
);
create index routes_created on routes (created_at, guid);
create index routes_space on routes (space_guid, created_at, guid);
create index routes_domain on routes (domain_guid, created_at, guid);
create index routes_host on routes (host, created_at, guid);
create index routes_path on routes (path, created_at, guid);
create index routes_port on routes ((port::text), created_at, guid);
create index routes_labels on routes using gin (labels);

create table destinations (
    guid         text primary key,
    route_guid   text        not null references routes on delete cascade,
    app_guid     text        not null references apps on delete cascade,
    process_type text        not null,
    port         int         not null, -- 0: the default, 8080
    weight       int         not null, -- 0: none
    protocol     text        not null,
    created_at   timestamptz not null default clock_timestamp(), -- those of one request keep their order
    updated_at   timestamptz not null default clock_timestamp()
);
create unique index destination_place on destinations (route_guid, app_guid, process_type, (coalesce(nullif(port, 0), 8080)));
create index destinations_app on destinations (app_guid, route_guid);

-- So that a statement can say which destinations wait for the next release. Those that were made before
-- have ports without a name, which nothing finds: their destinations wait too.
alter table releases add column ports int[] not null default '{}';

create index domains_created on domains (created_at, guid);

-- A route without destinations may have to be served too, so that no other gets its requests.
create trigger routes_hint after insert or delete on routes for each statement execute function hint_cluster();
create trigger destinations_hint after insert or update or delete on destinations for each statement execute function hint_cluster();
