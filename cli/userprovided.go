package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var createUserProvidedServiceCommand = command{
	name: "create-user-provided-service", args: "NAME", group: "Services", short: "Create a service instance of credentials that you have already",
	long: "Apps that are bound to it find them in VCAP_SERVICES, as those of a broker. Names after -p are asked for one by one, and what you type is not shown: that " +
		"keeps them out of the history of your shell.",
	examples: []string{"proa create-user-provided-service ldap -p uri,password", "proa create-user-provided-service ldap -p credentials.json -t directory",
		`proa create-user-provided-service ldap -p '{"uri": "ldap://ldap.example.com"}'`},
	needs: aSpace,
	setup: func(f *flags) action {
		credentials, tags := credentialsFlag(f), f.text("tags,t", "TAGS", "words for apps to find it by, with commas between them")
		return func(ctx context.Context, s *session, args []string) error {
			ask := v3.ServiceInstanceCreate{Type: v3.UserProvidedInstance, Name: args[0], Tags: tagsOf(*tags)}
			ask.Relationships.Space = v3.One(s.cfg.Space.GUID)
			var err error
			if ask.Credentials, err = credentials(ctx, s); err != nil {
				return err
			}
			s.say("Creating user-provided service instance %s %s...", s.bold(clean(ask.Name)), s.where())
			return s.createService(ctx, ask, false)
		}
	},
}

// credentialsFlag takes a JSON object, a file with one, or names to ask for.
func credentialsFlag(f *flags) func(context.Context, *session) (json.RawMessage, error) {
	text := f.maybe("credentials,p", "JSON", "the credentials: a JSON object, the name of a file with one, or names to be asked for, with commas between them")
	return func(ctx context.Context, s *session) (json.RawMessage, error) {
		if *text == nil {
			return nil, nil
		}
		given := strings.TrimSpace(**text)
		_, err := os.Stat(s.path(given))
		if given == "" || strings.HasPrefix(given, "{") || err == nil || strings.ContainsAny(given, `/\`) || strings.HasSuffix(given, ".json") {
			return s.object("-p", given)
		}
		return s.askCredentials(ctx, tagsOf(given))
	}
}

func (s *session) askCredentials(ctx context.Context, names []string) (json.RawMessage, error) {
	if !s.InTTY {
		return nil, usage("-p names no file, and nobody can be asked for credentials here. Give a JSON object, or the name of a file with one.")
	}
	credentials := map[string]string{}
	for _, name := range names {
		value, err := s.askHidden(ctx, clean(name))
		if err != nil {
			return nil, err
		}
		credentials[name] = value
	}
	return json.Marshal(credentials)
}

var updateUserProvidedServiceCommand = command{
	name: "update-user-provided-service", args: "NAME", group: "Services", short: "Change the credentials or the tags of a user-provided service instance",
	long:     "What is given takes the place of what there was. Apps see it after their next restart.",
	examples: []string{"proa update-user-provided-service ldap -p credentials.json", "proa update-user-provided-service ldap -t directory,people"},
	needs:    aSpace,
	setup: func(f *flags) action {
		credentials, tags := credentialsFlag(f), f.maybe("tags,t", "TAGS", "words for apps to find it by, with commas between them, instead of those it has")
		return func(ctx context.Context, s *session, args []string) error {
			var change v3.ServiceInstanceChange
			var err error
			if change.Credentials, err = credentials(ctx, s); err != nil {
				return err
			}
			if *tags != nil {
				change.Tags = new(tagsOf(**tags))
			}
			if change.Credentials == nil && change.Tags == nil {
				return usage("There is nothing to change. Give -p or -t.")
			}
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			if i.Type != v3.UserProvidedInstance {
				return failed("proa update-service "+shell(i.Name), "Service instance %s is not user-provided: a broker made it.", i.Name)
			}
			s.say("Updating user-provided service instance %s %s...", s.bold(clean(i.Name)), s.where())
			if err := s.api.Call(ctx, http.MethodPatch, instancePath(i), change, nil); err != nil {
				return err
			}
			s.ok()
			s.say("\nNext: proa restart APP    # so that apps that are bound to it see the change")
			return nil
		}
	},
}
