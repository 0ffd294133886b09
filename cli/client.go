package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
)

var createClientCommand = command{
	name: "create-client", args: "ID", group: "Users and clients", short: "Create a client: an application that gets tokens of its own",
	long: "The secret is asked for, or read from PROA_CLIENT_SECRET. Options that take a list may be repeated, or hold commas.",
	examples: []string{
		"proa create-client ci --authority cloud_controller.read,cloud_controller.write",
		"proa create-client shop --grant authorization_code --scope openid --redirect-uri https://shop.example.com/callback",
	},
	needs: aLogin,
	setup: func(f *flags) action {
		secret := f.text("secret", "SECRET", "the secret; others on this machine can see it here")
		name := f.text("name", "NAME", "what people read when they are asked for consent")
		grants := f.list("grant", "TYPE", "how it may get tokens (client_credentials)")
		scopes, authorities := f.list("scope", "SCOPE", "what it may do for people"), f.list("authority", "SCOPE", "what it may do for itself")
		redirects := f.list("redirect-uri", "URL", "where people return to after they logged in")
		return func(ctx context.Context, s *session, args []string) error {
			c := uaa.Client{ID: args[0], Name: *name, Scope: split(*scopes), Authorities: split(*authorities), Grants: split(*grants), RedirectURI: *redirects}
			if len(c.Grants) == 0 {
				c.Grants = uaa.List{"client_credentials"}
			}
			c.Secret = firstOf(*secret, s.Getenv("PROA_CLIENT_SECRET"))
			if c.Secret == "" && s.InTTY {
				var err error
				if c.Secret, err = s.askHidden(ctx, "Secret for "+clean(c.ID)); err != nil {
					return err
				}
			}
			if c.Secret == "" {
				return usage("A secret is missing. Set PROA_CLIENT_SECRET.")
			}
			s.say("Creating client %s as %s...", s.bold(clean(c.ID)), s.bold(clean(s.who())))
			err := s.auth.Call(ctx, http.MethodPost, "/oauth/clients", c, nil)
			if fault.Is(err, fault.KindConflict) {
				return failed("proa clients", "There is a client %q already.", c.ID)
			}
			if err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

func split(lists []string) uaa.List {
	all := uaa.List{}
	for _, l := range lists {
		all = append(all, strings.FieldsFunc(l, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return all
}

var clientsCommand = command{
	name: "clients", group: "Users and clients", short: "List clients",
	needs: aLogin,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			all := []uaa.Client{}
			for {
				var page uaa.Page[uaa.Client]
				if err := s.auth.Call(ctx, http.MethodGet, fmt.Sprintf("/oauth/clients?count=100&startIndex=%d", len(all)+1), nil, &page); err != nil {
					return err
				}
				all = append(all, page.Resources...)
				if len(page.Resources) == 0 || len(all) >= page.TotalResults {
					break
				}
			}
			headings := []string{"id", "name", "grants", "scopes", "authorities"}
			return list(s, all, "There are no clients.", headings, func(c uaa.Client) []string {
				return []string{clean(c.ID), clean(c.Name), join(c.Grants), join(c.Scope), join(c.Authorities)}
			})
		}
	},
}

func join(l []string) string { return clean(strings.Join(l, ", ")) }

var deleteClientCommand = command{
	name: "delete-client", args: "ID", group: "Users and clients", short: "Delete a client, and end its tokens",
	needs: aLogin,
	setup: func(f *flags) action {
		force := f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, args []string) error {
			if err := s.confirm(ctx, *force, fmt.Sprintf("Really delete the client %s?", clean(args[0]))); err != nil {
				return err
			}
			err := s.auth.Call(ctx, http.MethodDelete, "/oauth/clients/"+url.PathEscape(args[0]), nil, nil)
			if fault.Is(err, fault.KindNotFound) {
				return missing("proa clients", "There is no client %q.", args[0])
			}
			if err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}
