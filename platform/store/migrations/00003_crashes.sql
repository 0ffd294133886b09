-- +goose Up

-- How runs of instances ended that nobody had asked to end. The id is that of the run, which ends once.
create table exits (
    id           text primary key,
    app_guid     text        not null,
    process_guid text        not null references processes on delete cascade,
    release_guid text        not null,
    index        int         not null,
    pod_uid      text        not null,
    node         text        not null,
    at           timestamptz not null,
    description  text        not null,
    crashes      int         not null, -- in a row, this one included
    next_try     timestamptz, -- none: at once
    created_at   timestamptz not null default now()
);
create index exits_instance on exits (process_guid, index, created_at);

-- Which run was seen last: when it is gone, somebody has taken it away. No values while there is none.
alter table instances add column pod_uid text, add column run text;

-- Lines that a crashed instance has printed are kept when its pod goes. Whoever has read them from the pod leaves them out here.
alter table log_lines add column pod_uid text not null default '';
