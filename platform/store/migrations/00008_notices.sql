-- +goose Up

alter table apps add column notices boolean not null default false; -- developers are told when the app breaks
create index apps_notices on apps (space_guid) where notices;
alter table exits add column told boolean not null default false; -- developers know of the streak that it belongs to
