package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	patience = 30 * time.Second // for one request
	most     = 10_000           // users that one request adds
)

// app answers the requests. It also runs without a database, and says so to whoever asks for users: a service is bound to an app
// that may be there already.
type app struct {
	pool  *pgxpool.Pool
	where string // the database, for the log
	none  error  // why there is no database
}

// open finds the database in the environment. It does not connect yet.
func open(ctx context.Context, getenv func(string) string) *app {
	d, err := findDatabase(getenv)
	if err != nil {
		return &app{none: err, where: "not there: " + err.Error()}
	}
	pool, err := pgxpool.New(ctx, d.url())
	if err != nil {
		return &app{none: fmt.Errorf("read the settings of the database: %w", err), where: "not there: its settings cannot be read"}
	}
	return &app{pool: pool, where: d.String()}
}

func (a *app) close() {
	if a.pool != nil {
		a.pool.Close()
	}
}

func (a *app) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /migrate", a.answer(a.migrate))
	mux.HandleFunc("GET /users", a.answer(a.users))
	mux.HandleFunc("GET /users/add/{amount}", a.answer(a.addUsers))
	mux.HandleFunc("GET /users/delete", a.answer(a.deleteUsers))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string][]string{"paths": {"/migrate", "/users", "/users/add/{amount}", "/users/delete"}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNotFound, failure("There is nothing at "+r.URL.Path+" for "+r.Method+". See / for the paths.", nil))
	})
	return mux
}

// answer makes a handler of what a path does: what it returns is the answer, as JSON.
func (a *app) answer(do func(ctx context.Context, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		err := a.none
		var result any
		if err == nil {
			result, err = do(ctx, r)
		}
		status := http.StatusOK
		if err != nil {
			var sentence string
			status, sentence = explain(err)
			result = failure(sentence, err)
			log.Printf("%s %q: %d: %v", r.Method, r.URL.Path, status, err)
		}
		reply(w, status, result)
	}
}

func (a *app) migrate(ctx context.Context, _ *http.Request) (any, error) {
	if err := migrate(ctx, a.pool); err != nil {
		return nil, err
	}
	return map[string]bool{"migrated": true}, nil
}

func (a *app) addUsers(ctx context.Context, r *http.Request) (any, error) {
	amount, err := strconv.Atoi(r.PathValue("amount"))
	if err != nil || amount < 1 || amount > most {
		return nil, errAmount
	}
	users := make([]user, amount)
	for i := range users {
		users[i] = invent()
	}
	if err := insert(ctx, a.pool, users); err != nil {
		return nil, err
	}
	return added{Amount: amount, Users: users}, nil
}

type added struct {
	Amount int    `json:"amount"`
	Users  []user `json:"users added"`
}

func (a *app) users(ctx context.Context, _ *http.Request) (any, error) {
	users, err := list(ctx, a.pool)
	return listed{Count: len(users), Users: users}, err
}

type listed struct {
	Count int    `json:"count"`
	Users []user `json:"users"`
}

func (a *app) deleteUsers(ctx context.Context, _ *http.Request) (any, error) {
	return map[string][]user{"users": {}}, empty(ctx, a.pool)
}
