package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	errAmount = fmt.Errorf("the amount is not a number from 1 to %d", most)
	errNone   = errors.New("neither VCAP_SERVICES nor DB_HOST names a database")
)

// explain is the status of an error, and a sentence that says what to do about it.
func explain(err error) (int, string) {
	var connect *pgconn.ConnectError
	var said *pgconn.PgError
	switch {
	case errors.Is(err, errAmount):
		return http.StatusBadRequest, fmt.Sprintf("Say how many users to add, from 1 to %d, as in /users/add/10.", most)
	case errors.Is(err, errNone):
		return http.StatusServiceUnavailable, "This app has no database. Bind one to it and restage it, or set DB_HOST, DB_PORT, DB_NAME, DB_USER and DB_PASSWORD."
	case errors.As(err, &connect):
		return http.StatusServiceUnavailable, "The database cannot be reached. Look at how its service stands, and try again."
	case errors.As(err, &said) && said.Code == "42P01": // undefined_table
		return http.StatusConflict, "There is no table of users yet. Call /migrate once, and then this path again."
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, fmt.Sprintf("The database did not answer within %s. Try again.", patience)
	}
	return http.StatusInternalServerError, "That did not work. The trace says why, the cause last."
}

type failed struct {
	Error string   `json:"error"`
	Trace []string `json:"trace"`
}

func failure(sentence string, err error) failed {
	return failed{Error: sentence, Trace: append([]string{}, trace(err)...)}
}

// trace is an error step by step, the cause last: what each adds to the one it wraps.
func trace(err error) []string {
	if err == nil {
		return nil
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var steps []string
		for _, one := range several.Unwrap() {
			steps = append(steps, trace(one)...)
		}
		return steps
	}
	cause := errors.Unwrap(err)
	if cause == nil {
		return []string{err.Error()}
	}
	step := strings.TrimSuffix(strings.TrimSuffix(err.Error(), cause.Error()), ": ")
	if step == "" {
		return trace(cause)
	}
	return append([]string{step}, trace(cause)...)
}

// reply answers in JSON. Nobody may keep an answer: the paths that change data are GETs here, and must come through each time.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Printf("answer: %v", err)
	}
}
