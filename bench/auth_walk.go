package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg"
)

// pageFunc reads the page of people that follows an id.
type pageFunc func(ctx context.Context, after string) ([]auth.User, error)

// barePages reads pages straight from PostgreSQL, with the columns that the server reads.
func barePages(ctx context.Context, database string) (page pageFunc, done func(), err error) {
	pool, err := pg.Open(ctx, database)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, after string) ([]auth.User, error) {
		rows, err := pool.Query(ctx, `select id, username, origin, email, given_name, family_name, external_id, password, active, verified,
			generation, version, created_at, modified_at, password_set_at, last_login_at from users where id > $1 order by id limit $2`, after, pageSize)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		users := make([]auth.User, 0, pageSize)
		for rows.Next() {
			var u auth.User
			err := rows.Scan(&u.ID, &u.UserName, &u.Origin, &u.Email, &u.GivenName, &u.FamilyName, &u.ExternalID, &u.Password, &u.Active, &u.Verified,
				&u.Generation, &u.Version, &u.Created, &u.Modified, &u.PasswordSet, &u.LastLogin)
			if err != nil {
				return nil, err
			}
			users = append(users, u)
		}
		return users, rows.Err()
	}, pool.Close, nil
}

// walk is a way through all people: what it took, and the most memory of this process on the way.
type walk struct {
	took time.Duration
	peak float64
}

// take goes the way, and fails unless it meets everyone once. ids calls meet for each.
func take(total int, ids func(meet func(id string) error) error) (walk, error) {
	debug.FreeOSMemory()
	if err := forgetPeak(); err != nil {
		return walk{}, err
	}
	begin := time.Now()
	met, last := 0, ""
	err := ids(func(id string) error {
		if id <= last {
			return fmt.Errorf("%s came after %s", id, last)
		}
		met, last = met+1, id
		if met%200_000 == 0 {
			say("%s walked after %.1f s", number(float64(met)), time.Since(begin).Seconds())
		}
		return nil
	})
	w := walk{took: time.Since(begin)}
	if err == nil && met != total {
		err = fmt.Errorf("the walk met %d people instead of %d", met, total)
	}
	if err != nil {
		return w, err
	}
	w.peak, err = peakMemory(os.Getpid())
	return w, err
}

func takeBare(ctx context.Context, page pageFunc, total int) (walk, error) {
	say("%s: walking by plain SQL", walkName)
	return take(total, func(meet func(string) error) error {
		for after := ""; ; {
			users, err := page(ctx, after)
			if err != nil {
				return err
			}
			for i := range users {
				if err := meet(users[i].ID); err != nil {
					return err
				}
				after = users[i].ID
			}
			if len(users) < pageSize {
				return nil
			}
		}
	})
}

func takeOurs(ctx context.Context, conn *uaa.Conn, total int) (walk, error) {
	say("%s: walking over HTTP", walkName)
	return take(total, func(meet func(string) error) error {
		for u, err := range conn.Users(ctx, "", pageSize) {
			if err != nil {
				return err
			}
			if err := meet(u.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// edges gives the milliseconds of the first page and of the one after an id: medians, taken in turn. Who begins changes too,
// because the second finds the garbage of the first.
func edges(read func(after string) (int, error), last string) (first, end float64, err error) {
	times := map[string][]float64{}
	order := []string{"", last}
	for range edgeRounds {
		for _, after := range order {
			begin := time.Now()
			n, err := read(after)
			if err == nil && n != pageSize {
				err = fmt.Errorf("the page after %q has %d people instead of %d", after, n, pageSize)
			}
			if err != nil {
				return 0, 0, err
			}
			times[after] = append(times[after], time.Since(begin).Seconds()*1000)
		}
		slices.Reverse(order)
	}
	return median(times[""]), median(times[last]), nil
}

func beforeLastPage(ctx context.Context, database string) (id string, err error) {
	pool, err := pg.Open(ctx, database)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	err = pool.QueryRow(ctx, `select id from users order by id desc offset $1 limit 1`, pageSize).Scan(&id)
	return id, err
}

// countPage asks for one page as a walk does.
func countPage(ctx context.Context, conn *uaa.Conn, after string) (int, error) {
	query := url.Values{"filter": {`id gt "` + after + `"`}, "sortBy": {"id"}, "count": {strconv.Itoa(pageSize)}}
	var page uaa.Page[uaa.User]
	err := conn.Call(ctx, http.MethodGet, "/Users?"+query.Encode(), nil, &page)
	return len(page.Resources), err
}
