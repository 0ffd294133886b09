-- +goose Up
CREATE TABLE users (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	first_name text NOT NULL,
	last_name  text NOT NULL,
	birthday   date NOT NULL,
	email      text NOT NULL,
	password   text NOT NULL
);

-- +goose Down
DROP TABLE users;
