package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/uaa"
)

// authServer is an authorization server on a database of its own, in the state in which operators start it.
type authServer struct {
	url      string
	addr     string
	path     string // of the program
	pid      int
	database string
	admin    *uaa.Conn

	notifySecret string // of the notification service
}

// withAuth builds and starts it.
func (b *bench) withAuth(ctx context.Context, use func(context.Context, *authServer) error) error {
	path, err := b.build(ctx, "cmd/auth")
	if err != nil {
		return err
	}
	keyset, err := newKeyset(ctx, path)
	if err != nil {
		return err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	return b.withDatabase(ctx, func(database string) error {
		s := &authServer{url: "http://" + addr, addr: addr, path: path, database: database, notifySecret: rand.Text()}
		password := rand.Text()
		p := program{path: path, ready: s.url + "/readyz", env: []string{
			"PATH=" + os.Getenv("PATH"),
			"PROA_AUTH_DATABASE_URL=" + database,
			"PROA_AUTH_KEYSET=" + keyset,
			"PROA_AUTH_URL=" + s.url,
			"PROA_AUTH_LISTEN=" + addr,
			"PROA_AUTH_METRICS_LISTEN=127.0.0.1:0",
			"PROA_AUTH_START_FILE=" + filepath.Join(b.root, "deploy", "auth", "start.yaml"),
			"PROA_SSH_CLIENT_SECRET=" + rand.Text(),
			"PROA_NOTIFY_CLIENT_SECRET=" + s.notifySecret, "PROA_API_CLIENT_SECRET=" + s.notifySecret,
			"PROA_ADMIN_USERNAME=admin",
			"PROA_ADMIN_PASSWORD=" + password,
		}}
		return b.withProcess(ctx, p, func(ctx context.Context, pid int) error {
			s.pid = pid
			if err := s.logIn(ctx, password); err != nil {
				return fmt.Errorf("log in as the administrator: %w", err)
			}
			return use(ctx, s)
		})
	})
}

// newKeyset is the secret that a server seals others with.
func newKeyset(ctx context.Context, auth string) (string, error) {
	keyset, err := exec.CommandContext(ctx, auth, "keyset", "new").Output()
	if err != nil {
		return "", fmt.Errorf("make a keyset: %w", err)
	}
	return strings.TrimSpace(string(keyset)), nil
}

func (s *authServer) conn() *uaa.Conn { return &uaa.Conn{URL: s.url, HTTP: http.DefaultClient} }

func (s *authServer) logIn(ctx context.Context, password string) error {
	s.admin = s.conn()
	token, err := s.admin.Fetch(ctx, "cf", "", url.Values{"grant_type": {auth.GrantPassword}, "username": {"admin"}, "password": {password}})
	s.admin.Token = uaa.Static(token.Access)
	return err
}

// newClient makes a client that acts for itself, and gives its secret.
func (s *authServer) newClient(ctx context.Context, id string, authorities ...string) (secret string, err error) {
	secret = rand.Text()
	err = s.admin.Call(ctx, http.MethodPost, "/oauth/clients", uaa.Client{ID: id, Secret: secret,
		Grants: uaa.List{auth.GrantClientCredentials}, Authorities: authorities}, nil)
	return secret, err
}
