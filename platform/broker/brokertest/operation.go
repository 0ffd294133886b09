package brokertest

import (
	"fmt"
	"net/http"
)

// operation is something that is not done at once.
type operation struct {
	call   Call
	token  string
	of     string // what was asked, to know it again
	planID string // of the instance before it
	left   int    // polls
	never  bool
	fails  string
	state  string
	finish func(done bool)
}

func (o *operation) busy() bool { return o != nil && o.state == inProgress }

const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
)

func key(a *Asked) string { return a.InstanceID + "/" + a.BindingID }

// task is something to do. It is done at once, unless an act or the broker's nature says that it takes polls.
type task struct {
	asked  *Asked
	act    Act
	of     string
	planID string
	begin  func()          // when it begins, if it is not done at once; may be nil
	finish func(done bool) // when it has ended
	answer func() reply    // when it was done at once
	more   map[string]any  // said beside the operation
}

func (b *Broker) do(t task) reply {
	polls := t.act.Polls
	if polls == 0 {
		polls = b.polls
	}
	if polls == 0 && !t.act.Never && t.act.Fails == "" {
		delete(b.running, key(t.asked))
		t.finish(true)
		return t.answer()
	}
	if t.asked.Query.Get("accepts_incomplete") != "true" {
		return refusal(http.StatusUnprocessableEntity, "AsyncRequired", "This service needs a client that can wait.")
	}
	if t.begin != nil {
		t.begin()
	}
	b.tokens++
	o := &operation{
		call: t.asked.Call, token: fmt.Sprintf("%s-%d", t.asked.Call, b.tokens), of: t.of, planID: t.planID,
		left: max(polls, 1), never: t.act.Never, fails: t.act.Fails, state: inProgress, finish: t.finish,
	}
	b.running[key(t.asked)] = o
	return accepted(o, t.more)
}

func accepted(o *operation, more map[string]any) reply {
	said := map[string]any{"operation": o.token}
	for name, value := range more {
		said[name] = value
	}
	return say(http.StatusAccepted, said)
}

// poll tells how far an operation is, and takes it a step further.
func (b *Broker) poll(asked *Asked) reply {
	o, there := b.running[key(asked)], b.instances[asked.InstanceID] != nil
	if asked.BindingID != "" {
		there = b.bindings[key(asked)] != nil
	}
	switch {
	case o == nil && !there:
		return refusal(http.StatusGone, "", "It does not exist.")
	case o == nil:
		return say(http.StatusOK, map[string]string{"state": succeeded})
	case asked.Query.Get("operation") != o.token:
		return refusal(http.StatusBadRequest, "", "There is no such operation.")
	case asked.Query.Get("plan_id") != "" && asked.Query.Get("plan_id") != o.planID:
		return refusal(http.StatusBadRequest, "", "The plan must be that before the operation, "+o.planID+".")
	}
	b.step(asked, o)
	said := map[string]string{"state": o.state, "description": string(o.call) + " is " + o.state}
	if o.state == failed {
		said["description"] = o.fails
	}
	return say(http.StatusOK, said)
}

func (b *Broker) step(asked *Asked, o *operation) {
	if o.left--; o.state != inProgress || o.never || o.left > 0 {
		return
	}
	o.state = succeeded
	if o.fails != "" {
		o.state = failed
	}
	o.finish(o.state == succeeded)
	if o.state == succeeded && (o.call == Deprovision || o.call == Unbind) {
		delete(b.running, key(asked)) // who asks again hears that it is gone
	}
}

// Finish lets all operations that are in progress end well at their next poll, also those that take for ever.
func (b *Broker) Finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.running {
		o.left, o.never = 1, false
	}
}

func (b *Broker) work(asked *Asked, act Act) reply {
	switch asked.Call {
	case GetCatalog:
		return reply{status: http.StatusOK, body: b.catalog.text}
	case Provision:
		return b.provision(asked, act)
	case Update:
		return b.update(asked, act)
	case Deprovision:
		return b.deprovision(asked, act)
	case Bind:
		return b.bind(asked, act)
	case Unbind:
		return b.unbind(asked, act)
	case GetInstance:
		return b.getInstance(asked)
	case GetBinding:
		return b.getBinding(asked)
	default:
		return b.poll(asked)
	}
}

func badRequest(why string) reply { return refusal(http.StatusBadRequest, "", why) }

func busy() reply {
	return refusal(http.StatusUnprocessableEntity, "ConcurrencyError", "Another operation is in progress.")
}
