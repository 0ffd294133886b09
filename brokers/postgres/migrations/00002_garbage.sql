-- +goose Up

-- A row is a role that nobody can use any more and that the server did not let us drop yet.
create table garbage (
    role     text collate "C" primary key, -- its name on the server
    instance text collate "C" not null,    -- the instance that it was for; it may be gone
    since    timestamptz not null default now(),
    tries    integer     not null default 0,
    due      timestamptz not null default now() -- not before
);
create index garbage_queue on garbage (due);
