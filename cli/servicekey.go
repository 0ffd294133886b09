package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var createServiceKeyCommand = command{
	name: "create-service-key", args: "NAME KEY", group: "Services", short: "Create credentials for a service instance that are for no app, but for you",
	examples: []string{"proa create-service-key db laptop", "proa service-key db laptop    # shows them"},
	needs:    aSpace,
	setup: func(f *flags) action {
		parameters, wait := parametersFlag(f), f.on("wait,w", "wait until the broker is done")
		return func(ctx context.Context, s *session, args []string) error {
			ask := v3.ServiceBindingCreate{Type: "key", Name: &args[1]}
			var err error
			if ask.Parameters, err = parameters(s); err != nil {
				return err
			}
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			ask.Relationships.Instance = v3.One(i.GUID)
			s.say("Creating key %s for service instance %s %s...", s.bold(clean(args[1])), s.bold(clean(i.Name)), s.where())
			job, err := s.api.Begin(ctx, http.MethodPost, "/v3/service_credential_bindings", ask)
			if err := s.exists(err, "Key binding names must be unique", "Key "+args[1]+" exists already; nothing was created."); err != nil {
				return err
			}
			done, err := s.follow(ctx, job, following{service: i.Name, wait: *wait, mend: "proa delete-service-key " + shell(i.Name) + " " + shell(args[1])})
			if err != nil {
				return err
			}
			s.ok()
			if !done {
				s.say("\nCreation in progress. Watch it with: proa service-keys %s", shell(i.Name))
				return nil
			}
			s.say("\nNext: proa service-key %s %s    # shows the credentials", shell(i.Name), shell(args[1]))
			return nil
		}
	},
}

var serviceKeysCommand = command{
	name: "service-keys", args: "NAME", group: "Services", short: "List the keys of a service instance",
	needs: aSpace,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			keys, err := v3.All[v3.ServiceBinding](ctx, s.api, bindingsPath(i, "key"))
			if err != nil {
				return err
			}
			none := fmt.Sprintf("Service instance %s has no keys. Next: proa create-service-key %s KEY", clean(i.Name), shell(i.Name))
			err = list(s, keys, none, []string{"key", "status", "created"}, func(k v3.ServiceBinding) []string {
				return []string{clean(as(k.Name)), s.ofOperation(k.LastOperation), s.ago(time.Time(k.CreatedAt))}
			})
			for _, k := range keys {
				if said := clean(k.LastOperation.Description); said != "" && !s.flags.json {
					s.say("%s: %s", clean(as(k.Name)), said)
				}
			}
			return err
		}
	},
}

// findKey is a key of an instance.
func (s *session) findKey(ctx context.Context, service, name string) (v3.ServiceInstance, v3.ServiceBinding, error) {
	i, err := s.findService(ctx, service)
	if err != nil {
		return i, v3.ServiceBinding{}, err
	}
	q := url.Values{"service_instance_guids": {i.GUID}, "type": {"key"}, "names": {escapeName(name)}, "per_page": {"1"}, "page": {"1"}}
	k, err := v3.First[v3.ServiceBinding](ctx, s.api, "/v3/service_credential_bindings?"+q.Encode())
	if err != nil {
		return i, v3.ServiceBinding{}, err
	}
	if k == nil {
		return i, v3.ServiceBinding{}, missing("proa service-keys "+shell(i.Name)+"    # lists them", "Service instance %s has no key %q.", i.Name, name)
	}
	return i, *k, nil
}

var serviceKeyCommand = command{
	name: "service-key", args: "NAME KEY", group: "Services", short: "Show the credentials of a key, as JSON",
	examples: []string{"proa service-key db laptop", "proa service-key db laptop | jq -r .credentials.uri"},
	needs:    aSpace,
	setup: func(f *flags) action {
		guid := f.on("guid", "print only the id of the key")
		return func(ctx context.Context, s *session, args []string) error {
			i, k, err := s.findKey(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			switch op := k.LastOperation; {
			case *guid:
				s.say("%s", clean(k.GUID))
				return nil
			case op.Type == "create" && pending(op):
				return failed("proa service-keys "+shell(i.Name)+"    # shows when it is there", "Key %s is still being created.", args[1])
			case op.Type == "create" && op.State == "failed":
				return failed(fmt.Sprintf("proa delete-service-key %s %s    # then create it again", shell(i.Name), shell(args[1])), "Key %s could not be created: %s", args[1], op.Description)
			}
			var details json.RawMessage
			if err := s.get(ctx, "/v3/service_credential_bindings/"+url.PathEscape(k.GUID)+"/details", &details); err != nil {
				return err
			}
			return s.printObject(details)
		}
	},
}

var deleteServiceKeyCommand = command{
	name: "delete-service-key", args: "NAME KEY", group: "Services", short: "Delete a key: its credentials work no more",
	examples: []string{"proa delete-service-key db laptop -f"},
	needs:    aSpace,
	setup: func(f *flags) action {
		force, wait := f.on("force,f", "do not ask"), f.on("wait,w", "wait until it is gone")
		return func(ctx context.Context, s *session, args []string) error {
			i, k, err := s.findKey(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			if err := s.confirm(ctx, *force, fmt.Sprintf("Really delete key %s of service instance %s?", clean(args[1]), clean(i.Name))); err != nil {
				return err
			}
			s.say("Deleting key %s of service instance %s %s...", s.bold(clean(args[1])), s.bold(clean(i.Name)), s.where())
			done, err := s.unbindOne(ctx, i, k, *wait)
			if err != nil {
				return err
			}
			s.ok()
			if !done {
				s.say("\nDeletion in progress. Watch it with: proa service-keys %s", shell(i.Name))
			}
			return nil
		}
	},
}
