// Package api is the platform's door: one table of routes, and the JSON of the Cloud Foundry API.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// Server answers for the platform.
type Server struct {
	Store     *store.Store
	Verifier  *token.Verifier
	Directory *Directory // who exists
	URL       *url.URL   // where clients reach us
	Auth      *url.URL   // where they log in
	Offer     Offer
	Bits      *bits.Packer             // where uploads go; none: there is no registry, and they are refused
	Clusters  map[string]*kube.Cluster // by id: what apps say and use is read there when somebody asks
	Log       *slog.Logger
	Metrics   *web.Metrics
	Proxies   []netip.Prefix

	streams logHub

	app   *web.App
	met   met
	meter *kube.Meter
}

// Offer is what apps can be built and reached with here, given when a process starts.
type Offer struct {
	Domain     platform.Domain // shared, for apps
	TCP        store.TCP       // where routes of tcp stand
	Reach      *url.URL        // scheme and port at which clients reach apps; nil: the scheme of this API
	Reserved   platform.Reserved
	Stacks     []platform.Stack
	Buildpacks []platform.Buildpack
	SSH        SSH
	Notify     *url.URL // the notification service; nil: there is none
	Since      time.Time
}

// SSH is where `cf ssh` goes. It goes nowhere when the address is empty.
type SSH struct {
	Address     string // host:port
	Fingerprint string // of its host key: SHA-256 in base64, without padding
}

// settings are what apps take from this installation.
func (s *Server) settings() store.Settings {
	set := store.Settings{API: s.at(""), Builder: s.Offer.Buildpacks, Domain: s.Offer.Domain, TCP: s.Offer.TCP, Reserved: s.Offer.Reserved, Notices: s.Offer.Notify != nil}
	for _, stack := range s.Offer.Stacks {
		if set.Stacks = append(set.Stacks, stack.Name); stack.Default { // it comes first
			last := len(set.Stacks) - 1
			set.Stacks[0], set.Stacks[last] = set.Stacks[last], set.Stacks[0]
		}
	}
	return set
}

// Audience is what a token must be meant for to be shown to us.
var Audience = []string{"cloud_controller"}

// Handler is the whole server.
func (s *Server) Handler() http.Handler {
	s.app = &web.App{Log: s.Log, Fault: s.fault, Ready: s.Store.Ping, Explain: pg.Fault, Proxies: s.Proxies, Metrics: s.Metrics}
	s.app.Health()
	s.meter = kube.NewMeter()
	for _, r := range s.routes() {
		s.app.HandleIn(r.room, r.pattern, s.guard(r))
	}
	return s.app
}

// route is one line of the table. A route is open, for a reason, or it needs a token; who may do what with a record is decided where
// the record is found. Query names the parameters it takes: any other is refused.
type route struct {
	pattern string
	open    string
	query   []string
	room    web.Room // for a request that is larger than most; zero: as for all
	lasts   bool     // it goes on until the token expires
	handler func(http.ResponseWriter, *http.Request, platform.Who) error
}

// guard is the path on which every request is held against its route before its handler runs.
func (s *Server) guard(r route) web.Handler {
	return func(w http.ResponseWriter, req *http.Request) error {
		who := platform.Who{RequestID: web.RequestID(req.Context())}
		if r.open == "" {
			claims, err := s.Verifier.FromRequest(req)
			if err != nil {
				return err
			}
			who = sender(claims, who.RequestID)
			if err := who.Speaks(req.Method != http.MethodGet); err != nil {
				return err
			}
			if err := s.meet(req, who); err != nil {
				return err
			}
			if r.lasts {
				ctx, cancel := context.WithDeadlineCause(req.Context(), claims.Expires.Time(), errTokenExpired)
				defer cancel()
				req = req.WithContext(ctx)
			}
		}
		if err := known(req.URL.Query(), r.query); err != nil {
			return err
		}
		return r.handler(w, req, who)
	}
}

// sender is whom a token speaks of: a person, or a client that acts for itself.
func sender(c token.Claims, requestID string) platform.Who {
	who := platform.Who{GUID: c.UserID, Name: c.UserName, Origin: c.Origin, ClientID: c.ClientID, Scopes: c.Scopes, RequestID: requestID}
	if c.UserID == "" {
		who.GUID, who.Name, who.Origin = c.ClientID, c.ClientID, ""
	}
	return who
}

// met remembers whom this process has seen, so that not every request writes them down.
type met struct {
	mu    sync.Mutex
	users map[string]platform.User
}

const maxMet = 10_000

// meet makes sure that the sender is in our books, under the name they have now.
func (s *Server) meet(r *http.Request, who platform.Who) error {
	user := who.User()
	s.met.mu.Lock()
	seen := s.met.users[user.GUID] == user
	s.met.mu.Unlock()
	if seen {
		return nil
	}
	if err := s.Store.Meet(r.Context(), user); err != nil {
		return err
	}
	s.met.mu.Lock()
	defer s.met.mu.Unlock()
	if s.met.users == nil || len(s.met.users) >= maxMet {
		s.met.users = map[string]platform.User{}
	}
	s.met.users[user.GUID] = user
	return nil
}

// forget lets somebody who was deleted be met again.
func (s *Server) forget(guid string) {
	s.met.mu.Lock()
	defer s.met.mu.Unlock()
	delete(s.met.users, guid)
}

// named picks the record with a guid from those given at the start.
func named[T any](all []T, guid, noun string, of func(T) string) (T, error) {
	i := slices.IndexFunc(all, func(one T) bool { return of(one) == guid })
	if i < 0 {
		var none T
		return none, platform.NotFound(noun)
	}
	return all[i], nil
}
