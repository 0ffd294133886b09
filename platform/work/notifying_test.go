package work_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	v1 "github.com/proa-dev/proa/notify/v1"
)

// notifier stands in for the authorization server and the notification service. It refuses what those refuse: a wrong secret, no token or an
// unknown one, a missing scope, a kind that is not registered, a message that cannot be sent, and a key with another body.
type notifier struct {
	*httptest.Server

	mu      sync.Mutex
	scopes  []string // that our client has
	token   string   // the one that is good
	kinds   map[string]string
	source  string
	keys    map[string]string // the bodies that they were used with
	taken   []taken
	asked   []string // method, path and status of each request
	away    bool     // it cannot take anything
	drop    bool     // the next message is taken, and its answer lost
	hang    chan struct{}
	arrived chan struct{} // says that a message was taken whose answer hangs
}

// taken is a message that was accepted.
type taken struct {
	space string
	v1.Message
}

const clientSecret = "hush-client"

func newNotifier(w *world) *notifier {
	n := &notifier{scopes: []string{"notifications.write", "notifications.manage"}, kinds: map[string]string{}, keys: map[string]string{}, arrived: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", n.login)
	mux.HandleFunc("PUT /notifications", n.guarded("notifications.manage", n.register))
	mux.HandleFunc("POST /spaces/{id}", n.guarded("notifications.write", n.send))
	n.Server = httptest.NewServer(mux)
	w.t.Cleanup(n.Close)
	return n
}

// client is how the workers reach it.
func (n *notifier) client() *v1.Client { return notifyAt(n.URL) }

func notifyAt(url string) *v1.Client {
	auth := &uaa.Conn{URL: url, HTTP: &http.Client{Timeout: time.Second}}
	return &v1.Client{URL: url, HTTP: &http.Client{Timeout: time.Second}, Token: auth.ClientCredentials("cloud_controller", clientSecret), Pause: 10 * time.Millisecond}
}

func (n *notifier) login(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, secret, ok := r.BasicAuth(); !ok || id != "cloud_controller" || secret != clientSecret || r.FormValue("grant_type") != "client_credentials" {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(uaa.Error{Code: "invalid_client", Description: "Bad credentials"})
		return
	}
	n.token = "hush-token"
	_ = json.NewEncoder(w).Encode(uaa.Token{Access: n.token, ExpiresIn: 1}) // so that what is granted later is soon had
}

func (n *notifier) guarded(scope string, handle func(http.ResponseWriter, *http.Request) (int, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		var status int
		var say string
		switch {
		case n.away:
			status, say = http.StatusServiceUnavailable, "The database is away."
		case n.token == "" || r.Header.Get("Authorization") != "bearer "+n.token:
			status, say = http.StatusUnauthorized, "Send an access token."
		case !slices.Contains(n.scopes, scope):
			status, say = http.StatusForbidden, "This needs the scope "+scope+", and the token does not have it."
		default:
			status, say = handle(w, r)
		}
		n.asked = append(n.asked, fmt.Sprint(r.Method, " ", r.URL.Path, " ", status))
		drop, hang := n.drop && status == http.StatusOK, n.hang
		n.drop = n.drop && !drop
		n.mu.Unlock()
		switch {
		case drop:
			panic(http.ErrAbortHandler)
		case hang != nil && status == http.StatusOK:
			select {
			case n.arrived <- struct{}{}:
			default: // it has been said
			}
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		w.WriteHeader(status)
		if status >= http.StatusBadRequest {
			_ = json.NewEncoder(w).Encode(v1.Errors{Errors: []string{say}})
			return
		}
		_, _ = fmt.Fprint(w, say)
	}
}

func (n *notifier) register(_ http.ResponseWriter, r *http.Request) (int, string) {
	var in v1.Registration
	strict := json.NewDecoder(r.Body)
	strict.DisallowUnknownFields()
	if err := strict.Decode(&in); err != nil || in.SourceName == "" {
		return http.StatusUnprocessableEntity, "source_name is missing."
	}
	for id, kind := range in.Notifications {
		if kind.Description == "" || kind.Critical {
			return http.StatusUnprocessableEntity, "description is missing, or the kind is critical."
		}
		n.kinds[id] = kind.Description
	}
	n.source = in.SourceName
	return http.StatusNoContent, ""
}

func (n *notifier) send(_ http.ResponseWriter, r *http.Request) (int, string) {
	var in v1.Message
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return http.StatusBadRequest, "The body must be JSON."
	}
	key, space := r.Header.Get("Idempotency-Key"), r.PathValue("id")
	body := fmt.Sprint(space, in)
	switch before, used := n.keys[key]; {
	case n.kinds[in.KindID] == "":
		return http.StatusNotFound, "The kind is not registered. Register it with PUT /notifications, then send again."
	case in.Subject == "" || strings.ContainsAny(in.Subject, "\r\n") || in.Text == "" && in.HTML == "":
		return http.StatusUnprocessableEntity, "subject must be one line, and text or html is missing."
	case !slices.Contains([]string{"", "SpaceDeveloper", "SpaceManager", "SpaceAuditor"}, in.Role):
		return http.StatusUnprocessableEntity, "role must be SpaceDeveloper, SpaceManager or SpaceAuditor, or be left out."
	case key == "":
		return http.StatusBadRequest, "Without a key a message may be sent twice." // the service allows it; we never do
	case used && before != body:
		return http.StatusConflict, "This Idempotency-Key was used for another request in the last 24 hours."
	case !used:
		n.keys[key] = body
		n.taken = append(n.taken, taken{space, in})
	}
	reply, err := json.Marshal([]v1.Accepted{{Status: v1.Queued, Recipient: space, ID: key}})
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	return http.StatusOK, string(reply)
}

// with changes or looks at it while nobody else does.
func (n *notifier) with(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

func (n *notifier) sent() (all []taken) {
	n.with(func() { all = slices.Clone(n.taken) })
	return all
}

// heard tells whether a request came so.
func (n *notifier) heard(request string) (yes bool) {
	n.with(func() { yes = slices.Contains(n.asked, request) })
	return yes
}
