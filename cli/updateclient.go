package cli

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
)

var updateClientCommand = command{
	name: "update-client", args: "ID", group: "Users and clients", short: "Change what a client may do for itself",
	long:     "What is not named stays. A token that the client holds already keeps what it had: it gets another one when that expires. Options may be repeated, or hold commas.",
	examples: []string{"proa update-client harbour --add-authority emails.write", "proa update-client harbour --remove-authority critical_notifications.write"},
	needs:    aLogin,
	setup: func(f *flags) action {
		adds, removes := f.list("add-authority", "SCOPE", "what it may do from now on"), f.list("remove-authority", "SCOPE", "what it may do no more")
		return func(ctx context.Context, s *session, args []string) error {
			add, remove := split(*adds), split(*removes)
			if len(add)+len(remove) == 0 {
				return usage("Nothing is to be changed. Name a scope with --add-authority or --remove-authority.")
			}
			s.say("Updating client %s as %s...", s.bold(clean(args[0])), s.bold(clean(s.who())))
			var c uaa.Client
			path := "/oauth/clients/" + url.PathEscape(args[0])
			err := s.auth.Call(ctx, http.MethodGet, path, nil, &c)
			if fault.Is(err, fault.KindNotFound) {
				return missing("proa clients", "There is no client %q.", args[0])
			}
			if err != nil {
				return err
			}
			all := slices.DeleteFunc(slices.Concat(c.Authorities, add), func(scope string) bool { return slices.Contains(remove, scope) })
			slices.Sort(all)
			change := map[string]any{"client_id": c.ID, "authorities": slices.Compact(all)}
			if err := s.auth.Call(ctx, http.MethodPut, path, change, nil); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}
