package main

import (
	"context"
	"fmt"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg"
)

// A send to everyone walks through the whole directory. The bare engine is the same pages of the same columns by plain SQL.
var walkUsers = figure{
	name:  walkName,
	about: "walk through all people by keyset over HTTP: speed, memory of server and walker, last page beside the first",
	run:   measureWalk,
}

const (
	walkName   = "auth.walk_users"
	pageSize   = 500
	edgeRounds = 40
	maxMemory  = 200 // megabytes
)

func measureWalk(ctx context.Context, b *bench) ([]line, error) {
	var lines []line
	err := b.withAuth(ctx, func(ctx context.Context, s *authServer) error {
		secret, err := s.newClient(ctx, "walker", "scim.read")
		if err != nil {
			return err
		}
		conn := s.conn()
		conn.Token = conn.ClientCredentials("walker", secret)
		total, err := addUsers(ctx, s.database, 1, b.users)
		if err != nil {
			return err
		}
		pages, done, err := barePages(ctx, s.database)
		if err != nil {
			return err
		}
		defer done()
		if lines, err = compareWalks(ctx, s, conn, pages, total); err != nil {
			return err
		}
		edge, err := compareEdges(ctx, s.database, conn, pages)
		lines = append(lines, edge)
		return err
	})
	return lines, err
}

// addUsers adds user-first to user-last to the directory, and gives the number of people that must be in it.
func addUsers(ctx context.Context, database string, first, last int) (total int, err error) {
	pool, err := pg.Open(ctx, database)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if err := pool.QueryRow(ctx, `select count(*) from users`).Scan(&total); err != nil {
		return 0, err
	}
	hash := auth.NewHash("the same password for everyone")
	const chunk = 100_000
	begin := time.Now()
	for from := first; from <= last; from += chunk {
		to := min(from+chunk-1, last)
		_, err := pool.Exec(ctx, `insert into users (username, email, given_name, family_name, password)
			select 'user-' || n, 'user-' || n || '@example.org', 'Given ' || n, 'Family ' || n, $3 from generate_series($1::int, $2::int) n`, from, to, hash)
		if err != nil {
			return 0, fmt.Errorf("add users: %w", err)
		}
		say("%s users added after %.0f s", number(float64(to)), time.Since(begin).Seconds())
	}
	_, err = pool.Exec(ctx, `vacuum (analyze) users`)
	return total + last - first + 1, err
}

// compareWalks walks by plain SQL before and after ours.
func compareWalks(ctx context.Context, s *authServer, conn *uaa.Conn, page pageFunc, total int) ([]line, error) {
	w, err := watchServer(ctx, s.pid, s.database)
	if err != nil {
		return nil, err
	}
	before, err := takeBare(ctx, page, total)
	if err != nil {
		return nil, err
	}
	var ours walk
	_, spent, err := w.during(func() (_ int64, err error) {
		ours, err = takeOurs(ctx, conn, total)
		return int64(total), err
	})
	if err != nil {
		return nil, err
	}
	server, err := peakMemory(s.pid)
	if err != nil {
		return nil, err
	}
	after, err := takeBare(ctx, page, total)
	if err != nil {
		return nil, err
	}
	bareTook := (before.took + after.took).Seconds() / 2
	users := func(took float64) quantity { return quantity{float64(total) / took, "users/s"} }
	memory := func(name string, peak float64) line {
		return line{name: walkName + name, ours: quantity{peak, "MB"}, bare: quantity{before.peak, "MB"}, aim: aim{of: "ours", is: "<", bound: maxMemory, unit: " MB"}}
	}
	speed := line{name: walkName, ours: users(ours.took.Seconds()), bare: users(bareTook), notes: []string{
		fmt.Sprintf("%s users in pages of %d: %.1f s over HTTP, %.1f s by plain SQL", number(float64(total)), pageSize, ours.took.Seconds(), bareTook),
		spent.String()}}
	return []line{speed, memory(".server_memory", server), memory(".walker_memory", ours.peak)}, nil
}

// compareEdges reads the first page and the last in turn.
func compareEdges(ctx context.Context, database string, conn *uaa.Conn, page pageFunc) (line, error) {
	say("%s: reading the first page and the last, %d times each", walkName, edgeRounds)
	last, err := beforeLastPage(ctx, database)
	if err != nil {
		return line{}, err
	}
	bare := func(after string) (int, error) {
		users, err := page(ctx, after)
		return len(users), err
	}
	ours := func(after string) (int, error) { return countPage(ctx, conn, after) }
	oursFirst, oursLast, err := edges(ours, last)
	if err != nil {
		return line{}, err
	}
	bareFirst, bareLast, err := edges(bare, last)
	return line{name: walkName + ".last_page", ours: quantity{oursLast / oursFirst, "of the first"}, bare: quantity{bareLast / bareFirst, "of the first"},
		aim:   aim{of: "ours", is: "<=", bound: 1.5},
		notes: []string{fmt.Sprintf("first and last page: %.1f and %.1f ms over HTTP, %.1f and %.1f ms by plain SQL", oursFirst, oursLast, bareFirst, bareLast)}}, err
}
