package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/proa-dev/proa/notify/v1"
)

var notifyRegisterCommand = command{
	name: "notify register", group: notifications, short: "Register a client and the kinds of notification it sends",
	long: "A kind that is not registered cannot be sent. Nobody can unsubscribe from a critical one. Registering again brings up to date what is named and\n" +
		"leaves the rest. A file holds what PUT /notifications takes: source_name, and notifications with a description and critical for each kind.",
	examples: []string{
		"proa notify register --source 'The harbour office' --kind 'tides=High and low water' --kind 'storm:critical=Storm warnings'",
		"proa notify register -f kinds.json",
	},
	setup: func(f *flags) action {
		source, kinds := f.text("source", "NAME", "who sends, as people read it"), f.list("kind", "ID[:critical]=DESCRIPTION", "a kind; may be repeated")
		file, as := f.text("f,file", "FILE", "a JSON object, or the name of a file with one"), senderFlags(f)
		return func(ctx context.Context, s *session, _ []string) error {
			body, reg, err := s.registration(*file, *source, *kinds)
			if err != nil {
				return err
			}
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			s.say("Registering %s of %s as client %s...", plural(len(reg.Notifications), "kind"), s.bold(clean(reg.SourceName)), s.bold(clean(x.id)))
			if err := x.call(ctx, http.MethodPut, v1.Kinds, body, nil); err != nil {
				return err
			}
			s.ok()
			s.say("\nNext: proa notify send --everyone --kind %s --subject SUBJECT --text TEXT", shell(firstOf(append(slices.Sorted(maps.Keys(reg.Notifications)), "KIND")...)))
			return nil
		}
	},
}

// registration is what is to be sent, and what it says. A file goes as it is, so that nothing in it is overlooked without a word.
func (s *session) registration(file, source string, kinds []string) (body any, reg v1.Registration, err error) {
	if file != "" {
		if source != "" || len(kinds) > 0 {
			return nil, reg, usage("With -f the file says everything. Leave --source and --kind out.")
		}
		raw, err := s.object("-f", file)
		if err != nil {
			return nil, reg, err
		}
		if err := json.Unmarshal(raw, &reg); err != nil {
			return nil, reg, usage("-f wants source_name and notifications, with a description and critical for each: %v.", err)
		}
		return raw, reg, nil
	}
	if source == "" || len(kinds) == 0 {
		p := usage("A registration needs --source and at least one --kind, or -f.")
		p.next = "proa notify register --help"
		return nil, reg, p
	}
	reg = v1.Registration{SourceName: source, Notifications: map[string]v1.Kind{}}
	for _, text := range kinds {
		name, description, found := strings.Cut(text, "=")
		id, mark, marked := strings.Cut(name, ":")
		if _, twice := reg.Notifications[id]; !found || id == "" || description == "" || marked && mark != "critical" || twice {
			return nil, reg, usage("--kind cannot be %q: write it as ID=DESCRIPTION or ID:critical=DESCRIPTION, each id once.", text)
		}
		reg.Notifications[id] = v1.Kind{Description: description, Critical: marked}
	}
	return reg, reg, nil
}

// listedKind is a kind as `notify kinds` shows it.
type listedKind struct {
	Client string `json:"client"`
	Source string `json:"source_name"`
	ID     string `json:"kind_id"`
	v1.Kind
}

var notifyKindsCommand = command{
	name: "notify kinds", group: notifications, short: "List the kinds that a client has registered",
	examples: []string{"proa notify kinds", "proa notify kinds --all --output json"},
	setup: func(f *flags) action {
		all, as := f.on("all", "those of all clients"), senderFlags(f)
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			var sources map[string]v1.Source
			if err := x.call(ctx, http.MethodGet, v1.Kinds, nil, &sources); err != nil {
				return err
			}
			kinds := []listedKind{}
			for _, client := range slices.Sorted(maps.Keys(sources)) {
				source := sources[client]
				if client != x.id && !*all {
					continue
				}
				for _, id := range slices.Sorted(maps.Keys(source.Notifications)) {
					kind := source.Notifications[id]
					if kind.Template == v1.DefaultTemplate {
						kind.Template = source.Template
					}
					kinds = append(kinds, listedKind{client, source.Name, id, kind})
				}
			}
			none := fmt.Sprintf("The client %s has registered no kinds. Next: proa notify register --source NAME --kind ID=DESCRIPTION", clean(x.id))
			return list(s, kinds, none, []string{"kind", "critical", "description", "template", "client", "source"}, func(k listedKind) []string {
				return []string{clean(k.ID), map[bool]string{true: s.yellow("yes"), false: "no"}[k.Critical], clean(k.Description), clean(k.Template), clean(k.Client), clean(k.Source)}
			})
		}
	},
}
