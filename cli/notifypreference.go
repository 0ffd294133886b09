package cli

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	v1 "github.com/proa-dev/proa/notify/v1"
)

var notifyPreferencesCommand = command{
	name: "notify preferences", group: notifications, short: "Show or change which notifications you get",
	long: "These are the preferences of the person who is logged in. Listed are the kinds of every client that has written to you; critical ones are not\n" +
		"yours to choose.",
	examples: []string{"proa notify preferences", "proa notify preferences --off harbour/tides --on harbour/berths", "proa notify preferences --all-off"},
	needs:    aLogin,
	setup: func(f *flags) action {
		on, off := f.list("on", "CLIENT/KIND", "get this kind"), f.list("off", "CLIENT/KIND", "do not get this kind")
		allOn, allOff := f.on("all-on", "get what you have not turned off"), f.on("all-off", "get nothing but critical kinds")
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			change, err := preferenceChange(*on, *off, *allOn, *allOff)
			if err != nil {
				return err
			}
			if s.cfg.ClientID != "" {
				return failed("proa login    # as a person", "A client has no preferences, and the client %s is logged in.", s.cfg.ClientID)
			}
			at, err := s.findNotify(ctx)
			if err != nil {
				return err
			}
			service := s.notifyClient(at, s.accessToken)
			if change.Clients != nil || change.GlobalUnsubscribe != nil {
				if err := service.Call(ctx, http.MethodPatch, v1.MyPreferences, change, nil); err != nil {
					return explainPreference(err)
				}
			}
			var p v1.Preferences
			if err := service.Call(ctx, http.MethodGet, v1.MyPreferences, nil, &p); err != nil {
				return explainPreference(err)
			}
			return s.showPreferences(p)
		}
	},
}

func preferenceChange(on, off []string, allOn, allOff bool) (v1.Preferences, error) {
	var change v1.Preferences
	if allOn && allOff {
		return change, usage("--all-on and --all-off contradict each other.")
	}
	if allOn || allOff {
		change.GlobalUnsubscribe = &allOff
	}
	for i, name := range slices.Concat(on, off) {
		at := strings.LastIndex(name, "/") // a kind has no slash in it
		if at < 1 || at == len(name)-1 {
			return change, usage("%q is not a kind of a client. Write it as CLIENT/KIND.", name)
		}
		client, kind := name[:at], name[at+1:]
		if change.Clients == nil {
			change.Clients = map[string]map[string]v1.Preference{}
		}
		if change.Clients[client] == nil {
			change.Clients[client] = map[string]v1.Preference{}
		}
		if _, twice := change.Clients[client][kind]; twice {
			return change, usage("%q is named twice.", name)
		}
		change.Clients[client][kind] = v1.Preference{Email: i < len(on)}
	}
	return change, nil
}

// explainPreference keeps the words of the service, and says what helps a person.
func explainPreference(err error) error {
	f := fault.From(err)
	scope := scopeName.FindString(f.Detail)
	switch {
	case f.Kind == fault.KindForbidden && scope != "":
		return failed("log in again; if that does not help, ask an administrator to put you into the group "+scope, "%s", f.Detail)
	case f.Kind == fault.KindUnprocessable:
		return failed("proa notify preferences    # lists what can be chosen", "%s", f.Detail)
	}
	return err
}

func (s *session) showPreferences(p v1.Preferences) error {
	if s.flags.json {
		return s.json(p)
	}
	rows := [][]string{}
	for _, client := range slices.Sorted(maps.Keys(p.Clients)) {
		for _, kind := range slices.Sorted(maps.Keys(p.Clients[client])) {
			one := p.Clients[client][kind]
			rows = append(rows, []string{clean(client + "/" + kind), map[bool]string{true: s.green("on"), false: s.yellow("off")}[one.Email], clean(one.Kind), clean(one.Source)})
		}
	}
	if as(p.GlobalUnsubscribe) {
		s.say("%s You get nothing but critical notifications. Next: proa notify preferences --all-on\n", s.yellow("All off."))
	}
	if len(rows) == 0 {
		s.say("Nobody has sent you anything yet that you could turn off.")
		return nil
	}
	s.table(s.Out, []string{"kind", "mail", "description", "source"}, rows)
	return nil
}
