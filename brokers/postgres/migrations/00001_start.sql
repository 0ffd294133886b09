-- +goose Up

-- A row is an instance that somebody asked for, and the last operation on it. Rows whose operation is under way are the queue.
create table instances (
    id            text collate "C" primary key,
    plan          text        not null, -- the plan's id
    extensions    text[]      not null default '{}',
    organization  text        not null,
    space         text        not null,
    created_at    timestamptz not null default now(),

    op            text        not null default 'create' check (op in ('create', 'update', 'delete')),
    op_id         text        not null,
    op_state      text        not null default 'in progress' check (op_state in ('in progress', 'succeeded', 'failed')),
    op_said       text        not null default '', -- why it failed, for people
    op_plan       text        not null,            -- what an update leads to
    op_extensions text[]      not null default '{}',
    op_since      timestamptz not null default now(),
    op_tries      integer     not null default 0,
    op_due        timestamptz not null default now(), -- not before
    leased_until  timestamptz not null default '-infinity' -- somebody is at it until then
);
create index instances_queue on instances (op_due) where op_state = 'in progress';

create table bindings (
    instance   text collate "C" not null references instances on delete cascade,
    id         text collate "C" not null,
    app        text        not null default '',
    password   bytea       not null, -- sealed
    ready      boolean     not null default false, -- its role has been made
    created_at timestamptz not null default now(),
    primary key (instance, id)
);

-- Tenants may log in to the same server: this database is none of their business.
-- +goose StatementBegin
do $$
begin
    if (select pg_has_role(datdba, 'usage') from pg_database where datname = current_database()) then
        execute format('revoke connect, temporary on database %I from public', current_database());
    end if;
end
$$;
-- +goose StatementEnd
