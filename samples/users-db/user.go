package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/brianvoe/gofakeit/v7"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// user is one of the people in the table. Nobody here is real: whoever keeps real people keeps a hash of their password, and shows
// that to nobody.
type user struct {
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
	Birthday  string `json:"birthday"` // 1984-02-29
	Email     string `json:"email"`
	Password  string `json:"password"`
}

func invent() user {
	now := time.Now()
	return user{
		FirstName: gofakeit.FirstName(),
		LastName:  gofakeit.LastName(),
		Birthday:  gofakeit.DateRange(now.AddDate(-90, 0, 0), now.AddDate(-18, 0, 0)).Format(time.DateOnly),
		Email:     gofakeit.Email(),
		Password:  gofakeit.Password(true, true, true, true, false, 16),
	}
}

// migrate brings the tables up to date, however far they are: it asks nobody, and calling it again does no harm. When several
// instances are asked at once, one works and the others wait.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, uint64(patience.Seconds())))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // it holds nothing: the connections are the pool's
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker), goose.WithAllowOutofOrder(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// insert adds all of the users or none.
func insert(ctx context.Context, pool *pgxpool.Pool, users []user) error {
	columns := []string{"first_name", "last_name", "birthday", "email", "password"}
	rows := pgx.CopyFromSlice(len(users), func(i int) ([]any, error) {
		u := users[i]
		day, err := time.Parse(time.DateOnly, u.Birthday)
		return []any{u.FirstName, u.LastName, day, u.Email, u.Password}, err
	})
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"users"}, columns, rows); err != nil {
		return fmt.Errorf("add users: %w", err)
	}
	return nil
}

func list(ctx context.Context, pool *pgxpool.Pool) ([]user, error) {
	rows, err := pool.Query(ctx, "SELECT first_name, last_name, to_char(birthday, 'YYYY-MM-DD'), email, password FROM users ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowToStructByPos[user])
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	return users, nil
}

func empty(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "TRUNCATE users"); err != nil {
		return fmt.Errorf("delete users: %w", err)
	}
	return nil
}
