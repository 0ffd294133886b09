-- +goose Up

-- Routes of a domain for tcp are ports. A gateway has each port once, whatever the domain.
alter table domains add column protocol text not null default 'http';
create unique index route_port on routes (port) where port <> 0;
