-- +goose Up

-- Whoever follows a stream asks for the lines behind the last one.
create index log_lines_follow on log_lines (app_guid, id);
