-- +goose Up

-- What is sealed: credentials, parameters, and what was asked of a broker.

alter table apps add column binding_files boolean not null default false; -- credentials as files, too

create table service_brokers (
    guid        text primary key,
    name        text        not null constraint service_broker_name unique,
    url         text        not null,
    credentials bytea       not null,
    space_guid  text        constraint service_broker_space references spaces on delete cascade, -- null: for all
    state       text        not null,
    labels      jsonb       not null default '{}',
    annotations jsonb       not null default '{}',
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);
create index service_brokers_created on service_brokers (created_at, guid);
create index service_brokers_space on service_brokers (space_guid) where space_guid is not null;

create table service_offerings (
    guid                  text primary key,
    broker_guid           text        not null constraint service_offering_broker references service_brokers on delete cascade,
    unique_id             text        not null, -- the broker's
    name                  text        not null,
    description           text        not null,
    active                boolean     not null, -- in the broker's catalog
    bindable              boolean     not null,
    plan_updateable       boolean     not null,
    instances_retrievable boolean     not null,
    bindings_retrievable  boolean     not null,
    context_updates       boolean     not null,
    shareable             boolean     not null,
    tags                  text[]      not null,
    requires              text[]      not null,
    documentation_url     text        not null,
    catalog_metadata      jsonb       not null,
    labels                jsonb       not null default '{}',
    annotations           jsonb       not null default '{}',
    created_at            timestamptz not null default now(),
    updated_at            timestamptz not null default now(),
    constraint service_offering_id unique (broker_guid, unique_id)
);
create index service_offerings_created on service_offerings (created_at, guid);
create index service_offerings_named on service_offerings (name, guid);

create table service_plans (
    guid             text primary key,
    offering_guid    text        not null references service_offerings on delete cascade,
    unique_id        text        not null,
    name             text        not null,
    description      text        not null,
    free             boolean     not null,
    active           boolean     not null,
    bindable         boolean     not null, -- its own word, or the offering's
    plan_updateable  boolean     not null,
    visibility       text        not null, -- public, admin, organization, space
    max_polling      int         not null, -- seconds; 0: ours
    maintenance_info jsonb,
    catalog_metadata jsonb       not null,
    schemas          jsonb       not null,
    labels           jsonb       not null default '{}',
    annotations      jsonb       not null default '{}',
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    constraint service_plan_id unique (offering_guid, unique_id)
);
create index service_plans_created on service_plans (created_at, guid);
create index service_plans_named on service_plans (name, guid);

create table service_plan_orgs (
    plan_guid text not null references service_plans on delete cascade,
    org_guid  text not null references orgs on delete cascade,
    primary key (plan_guid, org_guid)
);
create index service_plan_orgs_org on service_plan_orgs (org_guid);

-- Held: a broker was asked for it and may have it, under the ids beside it. They stay what they were when a catalog changes.
create table service_instances (
    guid              text primary key,
    space_guid        text        not null constraint service_instance_space references spaces on delete cascade,
    name              text        not null,
    plan_guid         text        constraint service_instance_plan references service_plans, -- null: user-provided
    held              boolean     not null default false,
    service_id        text        not null default '',
    plan_id           text        not null default '',
    tags              text[]      not null default '{}',
    credentials       bytea, -- user-provided
    parameters        bytea, -- as the broker told them after the last operation
    dashboard_url     text        not null default '',
    maintenance_info  jsonb,
    op_type           text        not null default 'create',
    op_state          text        not null default 'succeeded',
    op_description    text        not null default '',
    op_created_at     timestamptz not null default now(),
    op_updated_at     timestamptz not null default now(),
    labels            jsonb       not null default '{}',
    annotations       jsonb       not null default '{}',
    created_at        timestamptz not null default now(),
    updated_at        timestamptz not null default now(),
    constraint service_instance_name unique (space_guid, name)
);
create index service_instances_created on service_instances (created_at, guid);
create index service_instances_named on service_instances (name, guid);
create index service_instances_space on service_instances (space_guid, created_at, guid);
create index service_instances_space_named on service_instances (space_guid, name, guid);
create index service_instances_plan on service_instances (plan_guid, created_at, guid);
create index service_instances_labels on service_instances using gin (labels);

create table service_instance_shares (
    instance_guid text        not null references service_instances on delete cascade,
    space_guid    text        not null references spaces on delete cascade,
    created_at    timestamptz not null default now(),
    primary key (instance_guid, space_guid)
);
create index service_instance_shares_space on service_instance_shares (space_guid);

-- For an app or, without one, a key. The space is the app's, and the instance's for a key.
create table service_bindings (
    guid             text primary key,
    type             text        not null, -- app, key
    name             text        not null default '',
    instance_guid    text        not null constraint service_binding_instance references service_instances on delete cascade,
    app_guid         text        constraint service_binding_app references apps on delete cascade,
    space_guid       text        not null constraint service_binding_space references spaces on delete cascade,
    held             boolean     not null default false,
    credentials      bytea,
    parameters       bytea,
    op_type          text        not null default 'create',
    op_state         text        not null default 'succeeded',
    op_description   text        not null default '',
    op_created_at    timestamptz not null default now(),
    op_updated_at    timestamptz not null default now(),
    labels           jsonb       not null default '{}',
    annotations      jsonb       not null default '{}',
    created_at       timestamptz not null default clock_timestamp(),
    updated_at       timestamptz not null default clock_timestamp()
);
create unique index service_key_name on service_bindings (instance_guid, name) where type = 'key';
create index service_bindings_created on service_bindings (created_at, guid);
create index service_bindings_instance on service_bindings (instance_guid, created_at, guid);
create index service_bindings_app on service_bindings (app_guid, created_at, guid) where app_guid is not null;
create index service_bindings_space on service_bindings (space_guid, created_at, guid);

-- What is being asked of a broker. It names its subject without a key: what a broker was asked is followed to its end even when the
-- subject has gone. The row goes when it has ended; the job tells how.
create table service_operations (
    guid       text primary key,
    job_guid   text        not null,
    kind       text        not null, -- as the job's operation, such as service_instance.create
    subject    text        not null, -- guid of the broker, instance or binding
    request    bytea       not null,
    plan_guid  text        not null default '', -- that an instance is to have; it is kept until the operation has ended
    stage      text        not null default 'ask', -- ask, poll, fetch
    asked_at   timestamptz,          -- first; the broker may know of it since
    token      text        not null default '', -- what the broker calls it
    polls      int         not null default 0,
    binding    text        not null default '', -- of the deletion of an instance: the binding that goes first
    deadline   timestamptz,          -- of polling
    broker_guid text       not null default '', -- who was asked last
    working    boolean     not null default false, -- by somebody, until due_at
    step       int         not null default 0, -- grows with each change: whoever has read another one was overtaken
    due_at     timestamptz not null default now(), -- when it is next to be worked; while it is, when its worker counts as dead
    created_at timestamptz not null default now()
);
create index service_operations_job on service_operations (job_guid);
create index service_operations_subject on service_operations (subject);
create index service_operations_due on service_operations (due_at);
create index service_operations_plan on service_operations (plan_guid) where plan_guid <> '';
create index service_operations_working on service_operations (broker_guid) where working;

-- What a broker may still have and must not: the sweep asks it to delete it until it has. It carries the way to its broker, which may
-- have gone too.
create table service_orphans (
    guid          text primary key default gen_random_uuid()::text,
    broker_guid   text        not null,
    broker_url    text        not null,
    credentials   bytea       not null, -- sealed for the broker
    service_id    text        not null,
    plan_id       text        not null,
    instance_guid text        not null,
    binding_guid  text        not null default '', -- empty: the instance itself
    token         text        not null default '', -- of its deletion, if the broker said that it takes longer
    refused_to    text        not null default '', -- of a binding: the last deletion of its instance that asked for it in vain
    tries         int         not null default 0,
    due_at        timestamptz not null default now(),
    last_error    text        not null default '',
    created_at    timestamptz not null default now()
);
create unique index service_orphan on service_orphans (instance_guid, binding_guid);
create index service_orphans_due on service_orphans (due_at);

-- However a row goes, with its app, its space or its organization: what its broker holds is not forgotten. Whoever deletes a row that the
-- broker has deleted already sets held to false first.
-- +goose StatementBegin
create function orphan_instance() returns trigger language plpgsql as $$
begin
    if old.held then
        insert into service_orphans (broker_guid, broker_url, credentials, service_id, plan_id, instance_guid)
            select b.guid, b.url, b.credentials, old.service_id, old.plan_id, old.guid
            from service_plans p join service_offerings o on o.guid = p.offering_guid join service_brokers b on b.guid = o.broker_guid where p.guid = old.plan_guid
            on conflict do nothing;
    end if;
    delete from service_bindings where instance_guid = old.guid; -- before the instance, which says where they are
    return old;
end $$;
create function orphan_binding() returns trigger language plpgsql as $$
begin
    if old.held then
        insert into service_orphans (broker_guid, broker_url, credentials, service_id, plan_id, instance_guid, binding_guid)
            select b.guid, b.url, b.credentials, i.service_id, i.plan_id, i.guid, old.guid
            from service_instances i join service_plans p on p.guid = i.plan_guid join service_offerings o on o.guid = p.offering_guid
            join service_brokers b on b.guid = o.broker_guid where i.guid = old.instance_guid
            on conflict do nothing;
    end if;
    return old;
end $$;
-- A space takes its brokers along: its instances go before them.
create function empty_space() returns trigger language plpgsql as $$
begin
    perform from service_instances where space_guid = old.guid order by guid for update; -- before their bindings, as all do
    delete from service_bindings where space_guid = old.guid;
    delete from service_instances where space_guid = old.guid;
    return old;
end $$;
-- +goose StatementEnd
create trigger service_instances_orphan before delete on service_instances for each row execute function orphan_instance();
create trigger service_bindings_orphan before delete on service_bindings for each row execute function orphan_binding();
create trigger spaces_empty before delete on spaces for each row execute function empty_space();
