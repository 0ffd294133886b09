package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLoad drives a server that answers well, badly and not at all.
func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"good": {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"access_token":"x"}`)) }},
		"long": {answer: func(w http.ResponseWriter, _ *http.Request) { // too long for one write: it comes in chunks
			_, _ = w.Write([]byte(`{"access_token":"` + strings.Repeat("x", 10_000) + `"}`))
		}},
		"other":   {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }, want: "200 OK: {}"},
		"refused": {answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `"access_token"`, http.StatusUnauthorized) }, want: "401"},
		"gone":    {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			l := load{addr: server.Listener.Addr().String(), request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), holds: []byte(`"access_token"`), conns: 2}
			n, err := l.run(t.Context(), 50*time.Millisecond)
			switch {
			case c.want == "" && (err != nil || n < 2):
				t.Errorf("got %d, %v", n, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	stuck := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer server.Close()
	defer close(stuck)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	l := load{addr: server.Listener.Addr().String(), request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), conns: 2}
	begin := time.Now()
	if _, err := l.run(ctx, time.Minute); err == nil || time.Since(begin) > 10*time.Second {
		t.Errorf("got %v after %s", err, time.Since(begin))
	}
}
