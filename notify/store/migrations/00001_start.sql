-- +goose Up

create table templates (
    id          text primary key,
    name        text        not null,
    subject     text        not null,
    body_text   text        not null,
    body_html   text        not null,
    metadata    jsonb       not null default '{}',
    version     integer     not null default 0,
    created_at  timestamptz not null default now(),
    modified_at timestamptz not null default now()
);
create index templates_name on templates (name, id);

create table sources (
    client_id   text primary key,
    name        text        not null,
    template_id text        constraint source_template references templates,
    modified_at timestamptz not null default now()
);
create index sources_template on sources (template_id);

create table kinds (
    client_id   text        not null references sources on delete cascade,
    id          text        not null,
    description text        not null,
    critical    boolean     not null,
    template_id text        constraint kind_template references templates,
    modified_at timestamptz not null default now(),
    primary key (client_id, id)
);
create index kinds_template on kinds (template_id);

-- Messages and their deliveries stand in partitions by day, so that forgetting old ones is dropping a table. The id of both begins
-- with the time of the message, so a look-up by id alone knows its partition.
create table messages (
    id            text        not null,
    at            timestamptz not null,
    client_id     text        not null,
    kind_id       text        not null,
    critical      boolean     not null,
    class         text        not null,
    audience      text        not null,
    audience_id   text        not null,
    audience_role text        not null,
    subject       text        not null,
    body_text     text        not null,
    body_html     text        not null,
    reply_to      text        not null,
    request_id    text        not null,
    -- What is filled in while the audience is read.
    names         jsonb       not null default '{}',
    cursor        text        not null default '',
    chunks        integer     not null default 0,
    expanded_at   timestamptz,
    failed_reason text        not null default '',
    total         integer     not null default 0,
    delivered     integer     not null default 0,
    failed        integer     not null default 0,
    skipped       jsonb       not null default '{}',
    primary key (at, id)
) partition by range (at);
create index messages_client on messages (client_id, at);

create table deliveries (
    id         text        not null,
    at         timestamptz not null, -- of its message
    message_id text        not null,
    chunk      integer     not null,
    user_id    text        not null, -- empty for a bare address
    address    text        not null,
    state      text        not null,
    reason     text        not null default '',
    attempts   integer     not null default 0,
    changed_at timestamptz not null default now(),
    primary key (at, id)
) partition by range (at);
create unique index deliveries_person on deliveries (user_id, message_id, lower(address), at);
create index deliveries_chunk on deliveries (message_id, chunk);

create table attempts (
    delivery_id text        not null,
    at          timestamptz not null, -- of its message
    tried_at    timestamptz not null,
    attempt     integer     not null,
    outcome     text        not null, -- transient, permanent, bounced
    code        text        not null default '',
    reason      text        not null default ''
) partition by range (at);
create index attempts_delivery on attempts (at, delivery_id);

create table idempotency (
    client_id  text        not null,
    key        text        not null,
    body_hash  bytea       not null,
    reply      jsonb       not null,
    expires_at timestamptz not null,
    primary key (client_id, key)
);
create index idempotency_expiry on idempotency (expires_at);

-- Who has ever been written to by whom: those sources appear among a person's preferences.
create table receipts (
    user_id   text not null,
    client_id text not null,
    primary key (user_id, client_id)
);

create table unsubscribes (
    user_id    text        not null,
    client_id  text        not null,
    kind_id    text        not null,
    created_at timestamptz not null default now(),
    primary key (user_id, client_id, kind_id)
);

create table global_unsubscribes (
    user_id    text primary key,
    created_at timestamptz not null default now()
);

create table suppressions (
    address    text primary key, -- in lower case
    reason     text        not null,
    delivery_id text       not null default '',
    created_at timestamptz not null default now()
);

create table erased (
    user_id    text primary key,
    created_at timestamptz not null default now()
);

create table audit_events (
    id         bigint generated always as identity primary key,
    at         timestamptz not null default now(),
    action     text        not null,
    target     text        not null,
    actor      text        not null,
    request_id text        not null,
    detail     jsonb       not null default '{}'
);

-- +goose Down
drop table audit_events, erased, suppressions, global_unsubscribes, unsubscribes, receipts, idempotency, attempts, deliveries, messages, kinds, sources, templates;
