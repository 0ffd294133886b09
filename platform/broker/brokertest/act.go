package brokertest

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Call is a request of the API.
type Call string

// The calls.
const (
	GetCatalog   Call = "catalog"
	Provision    Call = "provision"
	Update       Call = "update"
	Deprovision  Call = "deprovision"
	Bind         Call = "bind"
	Unbind       Call = "unbind"
	PollInstance Call = "poll instance"
	PollBinding  Call = "poll binding"
	GetInstance  Call = "get instance"
	GetBinding   Call = "get binding"
)

// Act is what to do with one request. The zero Act is to behave. The work is done first, unless it says otherwise; then comes the
// waiting; then the answer.
type Act struct {
	Undone bool // do nothing, and answer with Status and Body; without a Status, 200 {}

	Polls int    // the work takes so many polls: answer 202
	Never bool   // it takes for ever
	Fails string // it fails in the end, and this is why

	Wait  time.Duration   // before the answer
	Until <-chan struct{} // hold the answer until this is closed
	Hang  bool            // hold it until the client or the server goes away

	Drop       bool   // close the connection without an answer
	Status     int    // instead of that of the answer
	Body       string // instead of that of the answer, as it is
	RetryAfter string // as it is
	Header     http.Header
}

// Behave is what a correct broker does. It fills a place in a script.
var Behave = Act{}

// LostBefore closes the connection instead of doing anything.
var LostBefore = Act{Undone: true, Drop: true}

// LostAfter does what was asked and closes the connection.
var LostAfter = Act{Drop: true}

// Refuse does nothing and says why, as brokers do. The code may be empty.
func Refuse(status int, code, description string) Act {
	return Act{Undone: true, Status: status, Body: refusal(status, code, description).body}
}

// Say does nothing and answers with this.
func Say(status int, body string) Act { return Act{Undone: true, Status: status, Body: body} }

// DoAndSay does what was asked and answers with this instead. Without a body it keeps that of the right answer.
func DoAndSay(status int, body string) Act { return Act{Status: status, Body: body} }

// Later does what was asked while it is polled so many times.
func Later(polls int) Act { return Act{Polls: polls} }

// LaterFails fails after so many polls. What it was about is not there then; a change or a deletion is not made.
func LaterFails(polls int, why string) Act { return Act{Polls: polls, Fails: why} }

// Never is in progress for ever.
var Never = Act{Never: true}

// Script says what to do with the next requests of a call, one act for each. After that, or before it, the broker does what Always says.
func (b *Broker) Script(call Call, acts ...Act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scripts[call] = append(b.scripts[call], acts...)
}

// Always says what to do with requests of a call that no script is about. Behave ends it.
func (b *Broker) Always(call Call, act Act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.always[call] = act
}

// Polls says how many polls it takes from now on to do what is asked; 0: it is done at once.
func (b *Broker) Polls(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.polls = n
}

// Unplayed is how many acts of scripts have not had their turn.
func (b *Broker) Unplayed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, acts := range b.scripts {
		n += len(acts)
	}
	return n
}

func (b *Broker) next(call Call) Act {
	acts := b.scripts[call]
	if len(acts) == 0 {
		return b.always[call]
	}
	b.scripts[call] = acts[1:]
	return acts[0]
}

// over puts what the act says over an answer.
func (a Act) over(out reply) reply {
	switch {
	case out.status == 0 && a.Status == 0:
		out = reply{status: http.StatusOK, body: "{}"}
	case a.Status != 0:
		out.status = a.Status
	}
	if a.Body != "" {
		out.body = a.Body
	}
	if a.RetryAfter != "" {
		out.retryAfter = a.RetryAfter
	}
	out.header = a.Header
	return out
}

// route tells which call a path is, behind any prefix.
func route(method, escaped string) (call Call, instance, binding string) {
	_, rest, found := strings.Cut(escaped, "/v2/")
	steps := strings.Split(rest, "/")
	for i, step := range steps {
		plain, err := url.PathUnescape(step)
		if err != nil || plain == "" {
			return "", "", ""
		}
		steps[i] = plain
	}
	shape := ""
	switch {
	case !found:
	case len(steps) == 1:
		return map[string]Call{"GET catalog": GetCatalog}[method+" "+steps[0]], "", ""
	case steps[0] != "service_instances":
	case len(steps) == 2:
		shape, instance = "instance", steps[1]
	case len(steps) == 3 && steps[2] == "last_operation":
		shape, instance = "poll instance", steps[1]
	case len(steps) == 4 && steps[2] == "service_bindings":
		shape, instance, binding = "binding", steps[1], steps[3]
	case len(steps) == 5 && steps[2] == "service_bindings" && steps[4] == "last_operation":
		shape, instance, binding = "poll binding", steps[1], steps[3]
	}
	return calls[method+" "+shape], instance, binding
}

var calls = map[string]Call{
	"PUT instance": Provision, "PATCH instance": Update, "DELETE instance": Deprovision, "GET instance": GetInstance, "GET poll instance": PollInstance,
	"PUT binding": Bind, "DELETE binding": Unbind, "GET binding": GetBinding, "GET poll binding": PollBinding,
}
