-- +goose Up

-- Ids are text in byte order, so that a walk by `id gt "…"` is one index range for any value a client sends.
create table users (
    id               text collate "C" primary key default gen_random_uuid()::text,
    username         text        not null,
    origin           text        not null default 'uaa',
    email            text        not null,
    given_name       text        not null default '',
    family_name      text        not null default '',
    external_id      text        not null default '',
    password         text        not null default '',
    active           boolean     not null default true,
    verified         boolean     not null default true,
    generation       text        not null default substr(md5(gen_random_uuid()::text), 1, 12),
    version          integer     not null default 0,
    created_at       timestamptz not null default now(),
    modified_at      timestamptz not null default now(),
    password_set_at  timestamptz not null default now(),
    last_login_at    timestamptz
);
create unique index users_name on users (lower(username) text_pattern_ops, origin);
create index users_email on users (lower(email) text_pattern_ops);
create index users_sorted on users (lower(username), id);
create index users_created on users (created_at, id);

create table groups (
    id          text collate "C" primary key default gen_random_uuid()::text,
    name        text        not null constraint groups_name unique,
    description text        not null default '',
    everyone    boolean     not null default false,
    version     integer     not null default 0,
    created_at  timestamptz not null default now(),
    modified_at timestamptz not null default now()
);

create table members (
    group_id   text collate "C" not null references groups on delete cascade,
    user_id    text collate "C" not null references users on delete cascade,
    created_at timestamptz not null default now(),
    primary key (group_id, user_id)
);
create index members_user on members (user_id);

create table clients (
    id               text collate "C" primary key,
    name             text        not null default '',
    secrets          text[]      not null default '{}',
    scopes           text[]      not null default '{}',
    authorities      text[]      not null default '{}',
    grants           text[]      not null default '{}',
    redirect_uris    text[]      not null default '{}',
    autoapprove      text[]      not null default '{}',
    access_seconds   integer     not null default 0,
    refresh_seconds  integer     not null default 0,
    generation       text        not null default substr(md5(gen_random_uuid()::text), 1, 12),
    version          integer     not null default 0,
    created_at       timestamptz not null default now(),
    modified_at      timestamptz not null default now()
);

-- One row for each key that signs, has signed, or will. Private halves are sealed.
create table signing_keys (
    kid        text primary key,
    public     bytea       not null,
    sealed     bytea       not null,
    created_at timestamptz not null default now(),
    signs_from timestamptz not null,
    gone_at    timestamptz
);

-- Codes and refresh tokens are kept by the hash of what the client holds. A login is everything that one act of logging in
-- has led to: revoking it ends its access tokens and its refresh tokens.
create table codes (
    hash         text primary key,
    login_id     text        not null,
    client_id    text collate "C" not null references clients on delete cascade,
    user_id      text collate "C" not null references users on delete cascade,
    scopes       text[]      not null,
    form         jsonb       not null,
    auth_at      timestamptz not null,
    generation   text        not null,
    expires_at   timestamptz not null,
    used_at      timestamptz
);
create index codes_expiry on codes (expires_at);

create table refresh_tokens (
    hash         text primary key,
    login_id     text        not null,
    client_id    text collate "C" not null references clients on delete cascade,
    user_id      text collate "C" not null references users on delete cascade,
    scopes       text[]      not null,
    auth_at      timestamptz not null,
    generation   text        not null,
    expires_at   timestamptz not null,
    used_at      timestamptz,
    revoked_at   timestamptz
);
create index refresh_tokens_login on refresh_tokens (login_id);
create index refresh_tokens_user on refresh_tokens (user_id);
create index refresh_tokens_expiry on refresh_tokens (expires_at);

-- Ids of access tokens and of logins that must not be believed any more, until they would have expired anyway.
create table revoked (
    id         text primary key,
    expires_at timestamptz not null
);
create index revoked_expiry on revoked (expires_at);

create table passcodes (
    hash       text primary key,
    user_id    text collate "C" not null references users on delete cascade,
    generation text        not null,
    expires_at timestamptz not null
);

create table sessions (
    hash       text primary key,
    user_id    text collate "C" not null references users on delete cascade,
    generation text        not null,
    auth_at    timestamptz not null,
    expires_at timestamptz not null
);
create index sessions_user on sessions (user_id);

create table approvals (
    user_id    text collate "C" not null references users on delete cascade,
    client_id  text collate "C" not null references clients on delete cascade,
    scopes     text[]      not null,
    granted_at timestamptz not null default now(),
    primary key (user_id, client_id)
);

-- Failed logins by the hash of the name that was tried, whether or not somebody has that name.
create table login_failures (
    name_hash text primary key,
    failures  integer     not null,
    last_at   timestamptz not null
);

create table audit_events (
    id           bigint generated always as identity primary key,
    at           timestamptz not null default now(),
    action       text        not null,
    target_kind  text        not null,
    target       text        not null,
    actor_client text        not null,
    actor_user   text        not null,
    actor_name   text        not null,
    address      text        not null,
    request_id   text        not null,
    detail       jsonb       not null default '{}'
);
create index audit_events_target on audit_events (target, id);

-- +goose Down
drop table audit_events, login_failures, approvals, sessions, passcodes, revoked, refresh_tokens, codes, signing_keys, clients, members, groups, users;
