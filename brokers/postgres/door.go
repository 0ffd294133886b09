package postgres

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"time"

	"code.cloudfoundry.org/brokerapi/v13"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

// Account is the platform's.
type Account struct{ Username, Password string }

// routes are those of the Open Service Broker API.
var routes = []string{
	"GET /v2/catalog",
	"PUT /v2/service_instances/{instance_id}",
	"GET /v2/service_instances/{instance_id}",
	"PATCH /v2/service_instances/{instance_id}",
	"DELETE /v2/service_instances/{instance_id}",
	"GET /v2/service_instances/{instance_id}/last_operation",
	"PUT /v2/service_instances/{instance_id}/service_bindings/{binding_id}",
	"GET /v2/service_instances/{instance_id}/service_bindings/{binding_id}",
	"DELETE /v2/service_instances/{instance_id}/service_bindings/{binding_id}",
	"GET /v2/service_instances/{instance_id}/service_bindings/{binding_id}/last_operation",
}

// Handler speaks the protocol to those who know the account.
func (b *Broker) Handler(account Account, metrics *web.Metrics) http.Handler {
	app := &web.App{Log: b.Log, Ready: b.State.Ping, Metrics: metrics, MaxBody: 64 << 10, Fault: writeFault}
	app.Health()
	guesses := &web.Limiter{Every: 6 * time.Second, Burst: 20, Now: time.Now}
	// It would log parameters, and credentials that could not be sent: our own lines say what there is to say.
	wire := brokerapi.NewWithOptions(b, slog.New(slog.DiscardHandler))
	for _, pattern := range routes {
		app.Handle(pattern, func(w http.ResponseWriter, r *http.Request) error {
			addr := app.Addr(r)
			if guesses.Wait(addr) > 0 {
				return fault.TooMany("Too many wrong passwords came from this address. Wait a minute.")
			}
			if !account.allows(r) {
				guesses.Mistake(addr)
				w.Header().Set("WWW-Authenticate", `Basic realm="broker"`)
				return fault.Unauthorized("The username or password is wrong. Use those that the broker was set up with.")
			}
			r.Header.Set("Content-Type", "application/json") // a body that is said to be a form, as curl says, would be gone before it is read
			wire.ServeHTTP(w, r)
			return nil
		})
	}
	return app
}

func (a Account) allows(r *http.Request) bool {
	username, password, _ := r.BasicAuth()
	got, want := sha256.Sum256([]byte(username+"\x00"+password)), sha256.Sum256([]byte(a.Username+"\x00"+a.Password))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func writeFault(w http.ResponseWriter, _ *http.Request, f *fault.Error) {
	body := map[string]string{"description": f.Detail}
	if f.Code != "" {
		body["error"] = f.Code
	}
	_ = web.JSON(w, f.Status(), body) // the client has gone
}
