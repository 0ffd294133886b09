package brokertest

import (
	"net/http"
	"slices"
	"strings"
)

// Binding is one that the broker has.
type Binding struct {
	ID         string
	InstanceID string
	AppGUID    string // empty: a key
	Parameters map[string]any
	Ready      bool
}

// Bindings are what it has, by id.
func (b *Broker) Bindings() []Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Binding
	for _, x := range b.bindings {
		all = append(all, *x)
	}
	slices.SortFunc(all, func(x, y Binding) int { return strings.Compare(x.ID, y.ID) })
	return all
}

// Password is the secret of a binding. It is another for each, and always the same, so that it can be looked for where it must not be.
func Password(bindingID string) string { return "hush-" + bindingID }

func (x *Binding) credentials() map[string]any {
	return map[string]any{
		"username": "user-" + x.ID, "password": Password(x.ID), "host": "db.example.org", "port": 5432,
		"uri": "postgres://user-" + x.ID + ":" + Password(x.ID) + "@db.example.org:5432/" + x.InstanceID,
	}
}

func (b *Broker) bind(asked *Asked, act Act) reply {
	r, no, bad := read(asked)
	if bad {
		return no
	}
	is := b.instances[asked.InstanceID]
	switch {
	case is == nil:
		return refusal(http.StatusNotFound, "", "There is no such instance.")
	case is.ServiceID != r.ServiceID || !slices.Contains(is.plans, r.PlanID):
		return badRequest("The instance is of another service or plan.")
	case !is.Ready || b.running[is.ID+"/"].busy():
		return busy()
	case !b.bindable(is):
		return badRequest("The service cannot be bound.")
	}
	if old := b.bindings[key(asked)]; old != nil {
		return b.bindAgain(asked, old, r)
	}
	made := &Binding{ID: asked.BindingID, InstanceID: asked.InstanceID, AppGUID: r.app(), Parameters: r.Parameters}
	return b.do(task{
		asked: asked, act: act, of: r.of(), planID: is.PlanID,
		begin: func() { b.bindings[key(asked)] = made },
		finish: func(done bool) {
			if made.Ready = done; done {
				b.bindings[key(asked)] = made
			} else {
				delete(b.bindings, key(asked))
			}
		},
		answer: func() reply { return say(http.StatusCreated, map[string]any{"credentials": made.credentials()}) },
	})
}

func (b *Broker) bindable(is *Instance) bool {
	s, p, known := b.catalog.find(is.ServiceID, is.PlanID)
	if p.Bindable != nil {
		return *p.Bindable
	}
	return s.Bindable || !known // what was taken from the catalog stays what it was
}

func (b *Broker) bindAgain(asked *Asked, old *Binding, r request) reply {
	o := b.running[key(asked)]
	switch {
	case old.AppGUID != r.app() || !sameJSON(old.Parameters, r.Parameters):
		return refusal(http.StatusConflict, "", "There is a binding of this id with other attributes.")
	case o.busy() && o.call != Bind:
		return busy()
	case o.busy():
		return accepted(o, nil)
	}
	return say(http.StatusOK, map[string]any{"credentials": old.credentials()})
}

func (b *Broker) unbind(asked *Asked, act Act) reply {
	is, old, o := b.instances[asked.InstanceID], b.bindings[key(asked)], b.running[key(asked)]
	if no, bad := misnamed(asked, is); bad {
		return no
	}
	switch {
	case old == nil:
		return say(http.StatusGone, map[string]any{})
	case o.busy() && o.call == Unbind:
		return accepted(o, nil)
	}
	return b.do(task{
		asked: asked, act: act, planID: is.PlanID,
		finish: func(done bool) {
			if done {
				delete(b.bindings, key(asked))
			}
		},
		answer: func() reply { return say(http.StatusOK, map[string]any{}) },
	})
}

func (b *Broker) getBinding(asked *Asked) reply {
	x, is := b.bindings[key(asked)], b.instances[asked.InstanceID]
	if x == nil || !x.Ready || is == nil || !b.catalog.services[is.ServiceID].BindingsRetrievable {
		return refusal(http.StatusNotFound, "", "There is no such binding.")
	}
	return say(http.StatusOK, map[string]any{"credentials": x.credentials(), "parameters": orEmpty(x.Parameters)})
}
