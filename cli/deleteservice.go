package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var deleteServiceCommand = command{
	name: "delete-service", args: "NAME", group: "Services", short: "Delete a service instance, with its bindings and all that is in it",
	examples: []string{"proa delete-service db", "proa delete-service db -f --wait"},
	needs:    aSpace,
	setup: func(f *flags) action {
		force, wait := f.on("force,f", "do not ask"), f.on("wait,w", "wait until it is gone")
		return func(ctx context.Context, s *session, args []string) error {
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			bound, err := s.boundNames(ctx, i)
			if err != nil {
				return err
			}
			if err := s.confirm(ctx, *force, reallyDelete(i, bound.all)); err != nil {
				return err
			}
			s.say("Deleting service instance %s %s...", s.bold(clean(i.Name)), s.where())
			job, err := s.api.Begin(ctx, http.MethodDelete, instancePath(i), nil)
			if err != nil {
				return err
			}
			done, err := s.follow(ctx, job, following{service: i.Name, wait: *wait, words: s.brokerWords(i.Name)})
			if err != nil {
				return err
			}
			s.ok()
			switch {
			case done && len(bound.started) > 0:
				s.sayLeftover(i, bound.started...)
			case !done:
				s.inProgress("Deletion", i.Name)
				if len(bound.started) > 0 {
					s.say("When it is done, restart what was bound to it: %s", restarts(bound.started))
				}
			}
			return nil
		}
	},
}

// boundNames are the apps that are bound to an instance, each once, and those of them that are started.
type boundNames struct{ all, started []string }

func (s *session) boundNames(ctx context.Context, i v3.ServiceInstance) (boundNames, error) {
	bindings, b, err := whole[v3.ServiceBinding](ctx, s, bindingsPath(i, "app")+"&include=app")
	var names boundNames
	for _, one := range bindings {
		a, known := b.apps[one.Relationships["app"].GUID()]
		if !known || slices.Contains(names.all, a.Name) {
			continue
		}
		names.all = append(names.all, a.Name)
		if a.State == "STARTED" {
			names.started = append(names.started, a.Name)
		}
	}
	return names, err
}

// reallyDelete is the question before an instance goes. It names the apps that use it.
func reallyDelete(i v3.ServiceInstance, apps []string) string {
	question := "Really delete service instance " + clean(i.Name)
	switch {
	case len(apps) == 1:
		question += ", which app " + join(apps) + " is bound to"
	case len(apps) > 1:
		question += ", which the apps " + join(apps) + " are bound to"
	}
	switch {
	case i.Type == v3.UserProvidedInstance:
		return question + "?"
	case len(apps) > 0:
		question += ","
	}
	return question + " and all that is in it?"
}

var purgeServiceInstanceCommand = command{
	name: "purge-service-instance", args: "NAME", group: "Service brokers", short: "Forget a service instance without asking its broker",
	long:     "For an instance whose broker is gone for good. What the broker has made for it stays there, and nobody knows of it any more.",
	examples: []string{"proa purge-service-instance db"},
	needs:    aSpace,
	setup: func(f *flags) action {
		force := f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, args []string) error {
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			if err := managed(i, "proa delete-service"); err != nil {
				return err
			}
			question := fmt.Sprintf("The broker will not be asked, so what it made stays there. Really forget service instance %s and its bindings?", clean(i.Name))
			if err := s.confirm(ctx, *force, question); err != nil {
				return err
			}
			s.say("Purging service instance %s %s...", s.bold(clean(i.Name)), s.where())
			if err := s.remove(ctx, instancePath(i)+"?purge=true"); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}
