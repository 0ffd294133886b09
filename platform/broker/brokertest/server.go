// Package brokertest owns a service broker for tests: it speaks the Open Service Broker API over real HTTP, keeps instances and bindings
// as a correct broker does, refuses what one refuses, and can be told to answer slowly, wrongly, later or not at all.
package brokertest

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
)

// Options say what a broker is like. The zero Options are one without TLS that does all at once and has the Catalog of this package.
type Options struct {
	Addr    string // "127.0.0.1:0" unless said
	TLS     bool   // with a certificate that only those trust who are given Roots
	Catalog string
	Account platform.BrokerAccount // "broker" and "broker-secret" unless said
	Polls   int                    // what is asked of it takes so many polls to be done
}

// Broker is a running broker.
type Broker struct {
	URL     string
	Account platform.BrokerAccount
	Roots   *x509.CertPool // what a client has to trust; nil without TLS

	addr   string
	tls    bool
	server *httptest.Server
	gone   chan struct{} // closed when nobody listens any more

	mu        sync.Mutex
	catalog   catalog
	polls     int
	scripts   map[Call][]Act
	always    map[Call]Act
	asked     []*Asked
	news      chan struct{} // closed and replaced when one was asked or answered
	instances map[string]*Instance
	bindings  map[string]*Binding   // by instance and binding
	running   map[string]*operation // the last of an instance or a binding that it did not do at once, also when it has ended
	tokens    int
}

// Asked is a request that came, as it came.
type Asked struct {
	Call                  Call // empty: the API has no such request
	Method, Path          string
	Query                 url.Values
	Header                http.Header
	Body                  []byte
	InstanceID, BindingID string

	Worked bool // all that was to be done was done; only the answer may be missing
	Status int  // that was answered; 0: none was
}

// String is the call and the ids that it was about, such as "bind i1/b1".
func (a Asked) String() string {
	ids := strings.TrimSuffix(a.InstanceID+"/"+a.BindingID, "/")
	return strings.TrimSuffix(string(a.Call)+" "+ids, " ")
}

// Start starts a broker.
func Start(opt Options) (*Broker, error) {
	b := &Broker{
		Account: opt.Account, addr: opt.Addr, tls: opt.TLS, polls: opt.Polls, scripts: map[Call][]Act{}, always: map[Call]Act{}, news: make(chan struct{}),
		instances: map[string]*Instance{}, bindings: map[string]*Binding{}, running: map[string]*operation{},
	}
	if opt.Addr == "" {
		b.addr = "127.0.0.1:0"
	}
	if opt.Account == (platform.BrokerAccount{}) {
		b.Account = platform.BrokerAccount{Username: "broker", Password: "broker-secret"}
	}
	if opt.Catalog == "" {
		opt.Catalog = Catalog
	}
	b.SetCatalog(opt.Catalog)
	err := b.Up()
	return b, err
}

// Up listens at the address that it had, after Down. What it keeps is still there.
func (b *Broker) Up() error {
	l, err := net.Listen("tcp", b.addr) //nolint:noctx // listening ends with Down
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	b.addr, b.gone = l.Addr().String(), make(chan struct{})
	b.server = httptest.NewUnstartedServer(b.handler(b.gone))
	_ = b.server.Listener.Close()
	b.server.Listener = l
	if b.tls {
		b.server.StartTLS()
		b.Roots = x509.NewCertPool()
		b.Roots.AddCert(b.server.Certificate())
	} else {
		b.server.Start()
	}
	b.URL = b.server.URL
	return nil
}

// Down lets those go who wait for an answer, and refuses new connections.
func (b *Broker) Down() {
	if b.gone != nil {
		close(b.gone)
		b.gone = nil
		b.server.Close()
	}
}

// Close is Down for good.
func (b *Broker) Close() { b.Down() }

// Asked is all that was asked in its order, or only calls.
func (b *Broker) Asked(calls ...Call) []Asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []Asked
	for _, a := range b.asked {
		if len(calls) == 0 || slices.Contains(calls, a.Call) {
			found = append(found, *a)
		}
	}
	return found
}

// Story is what was asked in its order as words, such as "provision i1".
func (b *Broker) Story(calls ...Call) []string {
	words := []string{}
	for _, a := range b.Asked(calls...) {
		words = append(words, a.String())
	}
	return words
}

// Forget forgets what was asked. What it keeps stays.
func (b *Broker) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = nil
}

// Await waits until a call was asked n times and its work done, though perhaps not answered.
func (b *Broker) Await(ctx context.Context, call Call, n int) error {
	for {
		b.mu.Lock()
		news, count := b.news, 0
		for _, a := range b.asked {
			if a.Call == call && a.Worked {
				count++
			}
		}
		b.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("await %s: asked %d of %d times: %w", call, count, n, ctx.Err())
		}
	}
}

func (b *Broker) handler(gone <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := b.record(r)
		act, out := b.serve(r, asked)
		if !act.hold(r.Context(), gone) || act.Drop {
			panic(http.ErrAbortHandler) // closes the connection without a word
		}
		b.mu.Lock()
		asked.Status = out.status
		b.tell()
		b.mu.Unlock()
		out.write(w)
	})
}

func (b *Broker) record(r *http.Request) *Asked {
	body, _ := io.ReadAll(r.Body) // half a body is refused as what it is
	asked := &Asked{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Header: r.Header.Clone(), Body: body}
	asked.Call, asked.InstanceID, asked.BindingID = route(r.Method, asked.Path)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, asked)
	b.tell()
	return asked
}

// serve does what is asked, or what the script says, and makes the answer.
func (b *Broker) serve(r *http.Request, asked *Asked) (Act, reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if no, bad := b.stranger(r, asked); bad {
		return Act{}, no
	}
	act := b.next(asked.Call)
	var out reply
	if !act.Undone {
		out = b.work(asked, act)
	}
	asked.Worked = true
	b.tell()
	return act, act.over(out)
}

// stranger refuses who may not ask at all.
func (b *Broker) stranger(r *http.Request, asked *Asked) (reply, bool) {
	user, password, _ := r.BasicAuth()
	version := r.Header.Get("X-Broker-API-Version")
	switch {
	case user != b.Account.Username || password != b.Account.Password:
		return refusal(http.StatusUnauthorized, "", "Wrong user or password"), true
	case !strings.HasPrefix(version, "2."):
		return refusal(http.StatusPreconditionFailed, "", "X-Broker-API-Version must be 2.x, not '"+version+"'"), true
	case asked.Call == "":
		return refusal(http.StatusNotFound, "", "There is no such request"), true
	}
	return reply{}, false
}

// tell lets those look again who await something. The caller holds the lock.
func (b *Broker) tell() {
	close(b.news)
	b.news = make(chan struct{})
}

// reply is an answer before it is written.
type reply struct {
	status     int
	body       string
	retryAfter string
	header     http.Header
}

func say(status int, body any) reply {
	data, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("brokertest: %v", err))
	}
	return reply{status: status, body: string(data)}
}

func refusal(status int, code, description string) reply {
	said := map[string]string{"description": description}
	if code != "" {
		said["error"] = code
	}
	return say(status, said)
}

func (out reply) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if out.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="broker"`)
	}
	for name, values := range out.header {
		w.Header()[name] = values
	}
	if out.retryAfter != "" {
		w.Header().Set("Retry-After", out.retryAfter)
	}
	w.WriteHeader(out.status)
	_, _ = io.WriteString(w, out.body)
}

// hold waits as the act says, and tells whether there is still somebody to answer.
func (a Act) hold(client context.Context, gone <-chan struct{}) bool {
	var enough <-chan time.Time
	if a.Wait > 0 {
		timer := time.NewTimer(a.Wait)
		defer timer.Stop()
		enough = timer.C
	}
	if a.Wait == 0 && a.Until == nil && !a.Hang {
		return client.Err() == nil
	}
	select {
	case <-enough:
		return true
	case <-a.Until:
		return true
	case <-client.Done():
	case <-gone:
	}
	return false
}
