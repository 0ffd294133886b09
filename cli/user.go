package cli

import (
	"context"
	"net/http"
	"strings"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

var createUserCommand = command{
	name: "create-user", args: "NAME [PASSWORD]", group: "Users and clients", short: "Create a user",
	long:     "Without PASSWORD it is asked for. A name that is a mail address is also the user's address, unless --email names another.",
	examples: []string{"proa create-user ada@example.com", "proa create-user ada --email ada@example.com"},
	needs:    aLogin,
	setup: func(f *flags) action {
		email, origin := f.text("email", "ADDRESS", "mail address"), f.text("origin", "ORIGIN", "where the user logs in; no password is kept then")
		return func(ctx context.Context, s *session, args []string) error {
			args = append(args, "")
			u := uaa.User{UserName: args[0], Password: args[1], Origin: *origin, Name: uaa.Name{Given: args[0], Family: args[0]}}
			u.Emails = []uaa.Email{{Value: firstOf(*email, args[0]), Primary: true}}
			if u.Password == "" && *origin == "" {
				if !s.InTTY {
					return usage("A password is missing. Give it as the second argument.")
				}
				var err error
				if u.Password, err = s.askHidden(ctx, "Password for "+clean(args[0])); err != nil {
					return err
				}
			}
			s.say("Creating user %s as %s...", s.bold(clean(args[0])), s.bold(clean(s.who())))
			if err := s.createUser(ctx, u); err != nil {
				return err
			}
			s.ok()
			s.say("\nNext: proa set-space-role %s ORG SPACE SpaceDeveloper", shell(args[0]))
			return nil
		}
	},
}

// createUser makes the user known to the authorization server and to the platform. Somebody whom the first knows already may have
// been missed by the second: that is made up for.
func (s *session) createUser(ctx context.Context, u uaa.User) error {
	var made uaa.User
	err := s.auth.Call(ctx, http.MethodPost, "/Users", u, &made)
	if fault.Is(err, fault.KindConflict) {
		s.say("User %s exists already; nothing of it was changed.", clean(u.UserName))
		var ids []string
		if ids, err = idsOf(ctx, s.auth, u.UserName); err != nil || len(ids) == 0 {
			return err
		}
		made.ID = ids[0]
	}
	if err != nil {
		return err
	}
	err = s.post(ctx, "/v3/users", v3.UserCreate{GUID: made.ID}, nil)
	if err != nil && strings.Contains(err.Error(), "already exists") {
		return nil
	}
	return err
}

// idsOf are the ids of those whom the authorization server knows by a name: one for each place where somebody of this name logs in.
func idsOf(ctx context.Context, server *uaa.Conn, name string) (ids []string, err error) {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name)
	for u, err := range server.Users(ctx, `userName eq "`+quoted+`"`, 100, "id") {
		if err != nil {
			return nil, err
		}
		ids = append(ids, u.ID)
	}
	return ids, nil
}
