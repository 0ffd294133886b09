package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// brokerLogin is how the platform reaches a broker, as the command line says: USERNAME, the password or not, and URL. What is refused is not
// repeated: a word too little, and the password stands where the address should.
func (s *session) brokerLogin(ctx context.Context, name string, words []string) (string, *v3.BrokerAuthentication, error) {
	username, address := words[0], words[len(words)-1]
	if at, err := url.Parse(address); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		p := usage("URL comes last, and begins with http:// or https://.")
		p.next = "proa help create-service-broker"
		return "", nil, p
	}
	password := s.Getenv("PROA_BROKER_PASSWORD")
	if len(words) == 3 {
		password = words[1]
	}
	if password == "" && s.InTTY {
		var err error
		if password, err = s.askHidden(ctx, "Password of broker "+clean(name)); err != nil {
			return "", nil, err
		}
	}
	if password == "" {
		return "", nil, usage("The password of the broker is missing. Set PROA_BROKER_PASSWORD.")
	}
	return address, &v3.BrokerAuthentication{Type: "basic", Credentials: v3.BrokerCredentials{Username: username, Password: password}}, nil
}

const brokerPassword = "The password is asked for, or read from PROA_BROKER_PASSWORD; others on this machine can see it on the command line."

var createServiceBrokerCommand = command{
	name: "create-service-broker", args: "NAME USERNAME [PASSWORD] URL", group: "Service brokers", short: "Register a service broker, and read what it offers",
	long: brokerPassword + " What it offers is for administrators alone until proa enable-service-access, or for one space with --space-scoped.",
	examples: []string{"proa create-service-broker pg platform https://pgbroker.example.com", "proa create-service-broker team-broker me http://broker.example.com --space-scoped",
		"proa create-service-broker pg platform https://pgbroker.example.com --update-if-exists    # in scripts"},
	needs: aLogin,
	setup: func(f *flags) action {
		scoped, update := f.on("space-scoped", "only for the targeted space"), f.on("update-if-exists", "change the broker of this name if there is one")
		return func(ctx context.Context, s *session, args []string) error {
			ask := v3.ServiceBrokerCreate{Name: args[0]}
			if *scoped {
				if err := s.have(aSpace); err != nil {
					return err
				}
				ask.Relationships = &v3.BrokerRelationships{Space: v3.One(s.cfg.Space.GUID)}
			}
			var err error
			if ask.URL, ask.Authentication, err = s.brokerLogin(ctx, args[0], args[1:]); err != nil {
				return err
			}
			if *update {
				there, err := s.lookBroker(ctx, ask.Name)
				if err != nil {
					return err
				}
				if there != nil {
					return s.updateBroker(ctx, *there, v3.ServiceBrokerChange{URL: &ask.URL, Authentication: ask.Authentication})
				}
			}
			return s.createBroker(ctx, ask)
		}
	},
}

func (s *session) createBroker(ctx context.Context, ask v3.ServiceBrokerCreate) error {
	at := "as " + s.bold(clean(s.who()))
	if ask.Relationships != nil {
		at = s.where()
	}
	s.say("Creating service broker %s %s...", s.bold(clean(ask.Name)), at)
	job, err := s.api.Begin(ctx, http.MethodPost, "/v3/service_brokers", ask)
	if err != nil && strings.Contains(err.Error(), "Name must be unique") {
		return failed("repeat the command with --update-if-exists", "There is a service broker %q already.", ask.Name)
	}
	if err != nil {
		return err
	}
	if err := s.api.Finish(ctx, job); err != nil {
		p := problemOf(err)
		p.next = firstOf(p.next, "proa update-service-broker "+shell(ask.Name)+" USERNAME URL    # it is registered, but not what it offers")
		return p
	}
	s.ok()
	if ask.Relationships != nil {
		s.say("\nNext: proa marketplace -b %s", shell(ask.Name))
		return nil
	}
	s.say("\nNext: proa service-access -b %s    # shows what it offers; proa enable-service-access OFFERING lets others have it", shell(ask.Name))
	return nil
}

// lookBroker is the broker of that name, or nil.
func (s *session) lookBroker(ctx context.Context, name string) (*v3.ServiceBroker, error) {
	return v3.First[v3.ServiceBroker](ctx, s.api, "/v3/service_brokers?per_page=1&page=1&names="+queryName(name))
}

func (s *session) findBroker(ctx context.Context, name string) (v3.ServiceBroker, error) {
	b, err := s.lookBroker(ctx, name)
	if err != nil {
		return v3.ServiceBroker{}, err
	}
	if b == nil {
		return v3.ServiceBroker{}, missing("proa service-brokers    # lists those you can see", "There is no service broker %q.", name)
	}
	return *b, nil
}

func brokerPath(b v3.ServiceBroker) string { return "/v3/service_brokers/" + url.PathEscape(b.GUID) }

func (s *session) updateBroker(ctx context.Context, b v3.ServiceBroker, change v3.ServiceBrokerChange) error {
	s.say("Updating service broker %s as %s...", s.bold(clean(b.Name)), s.bold(clean(s.who())))
	job, err := s.api.Begin(ctx, http.MethodPatch, brokerPath(b), change)
	if err != nil {
		return err
	}
	if err := s.api.Finish(ctx, job); err != nil {
		return err
	}
	s.ok()
	return nil
}

var updateServiceBrokerCommand = command{
	name: "update-service-broker", args: "NAME [USERNAME] [PASSWORD] [URL]", group: "Service brokers", short: "Read again what a service broker offers, or change how it is reached",
	long:     "With NAME alone, what it offers is read again. " + brokerPassword,
	examples: []string{"proa update-service-broker pg    # after its catalog has changed", "proa update-service-broker pg platform https://pgbroker.example.com"},
	needs:    aLogin,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			var change v3.ServiceBrokerChange
			switch len(args) {
			case 1:
			case 2:
				return usage("URL is missing: give NAME alone, or NAME USERNAME URL.")
			default:
				address, login, err := s.brokerLogin(ctx, args[0], args[1:])
				if err != nil {
					return err
				}
				change.URL, change.Authentication = &address, login
			}
			b, err := s.findBroker(ctx, args[0])
			if err != nil {
				return err
			}
			if change.URL == nil {
				change.URL = &b.URL // the same again: its catalog is read whenever somebody says where it is
			}
			return s.updateBroker(ctx, b, change)
		}
	},
}

var renameServiceBrokerCommand = command{
	name: "rename-service-broker", args: "NAME NEW_NAME", group: "Service brokers", short: "Give a service broker another name",
	needs: aLogin,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			b, err := s.findBroker(ctx, args[0])
			if err != nil {
				return err
			}
			return s.updateBroker(ctx, b, v3.ServiceBrokerChange{Name: &args[1]})
		}
	},
}

var deleteServiceBrokerCommand = command{
	name: "delete-service-broker", args: "NAME", group: "Service brokers", short: "Delete a service broker that has no instances any more",
	needs: aLogin,
	setup: func(f *flags) action {
		force := f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, args []string) error {
			b, err := s.findBroker(ctx, args[0])
			if err != nil {
				return err
			}
			if err := s.confirm(ctx, *force, fmt.Sprintf("Really delete service broker %s and what it offers?", clean(b.Name))); err != nil {
				return err
			}
			s.say("Deleting service broker %s as %s...", s.bold(clean(b.Name)), s.bold(clean(s.who())))
			if err := s.remove(ctx, brokerPath(b)); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

var serviceBrokersCommand = command{
	name: "service-brokers", group: "Service brokers", short: "List the service brokers you can see",
	examples: []string{"proa service-brokers", "proa service-brokers --output json"},
	needs:    aLogin,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			brokers, err := v3.All[v3.ServiceBroker](ctx, s.api, "/v3/service_brokers?per_page=5000")
			if err != nil {
				return err
			}
			slices.SortFunc(brokers, func(a, b v3.ServiceBroker) int { return strings.Compare(a.Name, b.Name) })
			spaces := map[string]bool{}
			for _, b := range brokers {
				if guid := b.Relationships["space"].GUID(); guid != "" {
					spaces[guid] = true
				}
			}
			names, err := s.called(ctx, "/v3/spaces", spaces)
			if err != nil {
				return err
			}
			none := "There are no service brokers. Next: proa create-service-broker NAME USERNAME URL"
			return list(s, brokers, none, []string{"name", "url", "for", "state"}, func(b v3.ServiceBroker) []string {
				scope := "all"
				if guid := b.Relationships["space"].GUID(); guid != "" {
					scope = "space " + clean(names[guid])
				}
				return []string{clean(b.Name), clean(b.URL), scope, s.ofBroker(b.State)}
			})
		}
	},
}

// ofBroker is the state of a broker in words.
func (e *Env) ofBroker(state string) string {
	text := clean(strings.ToLower(strings.ReplaceAll(state, "_", " ")))
	switch state {
	case "AVAILABLE":
		return e.green(text)
	case "SYNCHRONIZATION_FAILED":
		return e.red(text)
	}
	return e.yellow(firstOf(text, "-"))
}
