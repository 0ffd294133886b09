-- +goose Up

-- Where apps run. A space lives on one cluster and never moves.
create table clusters (
    id         text primary key,
    created_at timestamptz not null default now()
);
insert into clusters (id) values ('default');

create table orgs (
    guid        text primary key,
    name        text        not null constraint org_name unique,
    suspended   boolean     not null default false,
    labels      jsonb       not null default '{}',
    annotations jsonb       not null default '{}',
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);
create index orgs_created on orgs (created_at, guid);

create table spaces (
    guid        text primary key,
    org_guid    text        not null constraint space_org references orgs on delete cascade,
    name        text        not null,
    cluster_id  text        not null references clusters,
    allow_ssh   boolean     not null default true,
    labels      jsonb       not null default '{}',
    annotations jsonb       not null default '{}',
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    constraint space_name unique (org_guid, name)
);
create index spaces_created on spaces (created_at, guid);
create index spaces_named on spaces (name, guid);
create index spaces_cluster on spaces (cluster_id);

-- People and clients that we have heard of; the authorization server knows them.
create table users (
    guid       text primary key,
    username   text        not null default '',
    origin     text        not null default '',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);
create index users_created on users (created_at, guid);
create index users_named on users (username, origin);

-- A role in a space names the space's organization too, so that one index answers what somebody may do in either.
create table roles (
    guid       text primary key,
    type       text        not null,
    user_guid  text        not null constraint role_user references users on delete cascade,
    org_guid   text        not null constraint role_org references orgs on delete cascade,
    space_guid text        constraint role_space references spaces on delete cascade,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint role_held unique nulls not distinct (user_guid, org_guid, space_guid, type)
);
create index roles_created on roles (created_at, guid);
create index roles_org on roles (org_guid, created_at, guid);
create index roles_space on roles (space_guid, created_at, guid) where space_guid is not null;
create index roles_place on roles ((coalesce(space_guid, org_guid)), created_at, guid);

create table domains (
    guid        text primary key,
    name        text        not null constraint domain_name unique,
    internal    boolean     not null default false,
    org_guid    text        references orgs on delete cascade, -- null: shared by all
    labels      jsonb       not null default '{}',
    annotations jsonb       not null default '{}',
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);
create index domains_org on domains (org_guid);

-- Only what somebody has set; the rest is as the program has it.
create table feature_flags (
    name       text primary key,
    enabled    boolean     not null,
    message    text        not null default '',
    updated_at timestamptz not null default now()
);

-- What happened stays when what it happened to has gone: no foreign keys.
create table audit_events (
    guid        text primary key,
    type        text        not null,
    actor_guid  text        not null,
    actor_type  text        not null,
    actor_name  text        not null,
    target_guid text        not null,
    target_type text        not null,
    target_name text        not null,
    space_guid  text,
    org_guid    text,
    request_id  text        not null,
    data        jsonb       not null,
    created_at  timestamptz not null default clock_timestamp() -- events of one transaction keep their order
);
create index audit_events_created on audit_events (created_at, guid);
create index audit_events_target on audit_events (target_guid, created_at, guid);
create index audit_events_space on audit_events (space_guid, created_at, guid) where space_guid is not null;
create index audit_events_org on audit_events (org_guid, created_at, guid) where org_guid is not null;
create index audit_events_place on audit_events ((coalesce(space_guid, org_guid)), created_at, guid);

create table jobs (
    guid       text primary key,
    operation  text        not null,
    state      text        not null,
    errors     jsonb       not null default '[]',
    warnings   jsonb       not null default '[]',
    owner      text        not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);
create index jobs_created on jobs (created_at);
