package bits

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/proa-dev/proa/kit/fault"
)

func TestCheck(t *testing.T) {
	r, _ := here(t)
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	stranger := *r
	stranger.Password = "wrong"
	broken := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	defer broken.Close()
	asleep, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = asleep.Close() }()
	for says, r := range map[string]*Registry{
		"does not accept the platform's account": &stranger,
		"refused a request":                      {Prefix: broken.Listener.Addr().String() + "/proa", Transport: broken.Client().Transport},
		"could not be reached":                   {Prefix: "127.0.0.1:1/proa"},
		"took too long":                          {Prefix: asleep.Addr().String() + "/proa"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := r.Check(ctx)
		cancel()
		if !fault.Is(err, fault.KindUnavailable) || !strings.Contains(fault.From(err).Detail, says) || fault.From(err).Cause == nil {
			t.Errorf("got %v, want a sentence with %q and a cause", err, says)
		}
	}
	if err := (&Registry{Prefix: "no host"}).Check(t.Context()); err == nil {
		t.Error("a prefix must be one")
	}
}

// TestPasswordNeedsTLS offers a registry without TLS on an address where the library would fall back to it.
func TestPasswordNeedsTLS(t *testing.T) {
	asked := make(chan string, 10)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer plain.Close()
	r := Registry{Prefix: plain.Listener.Addr().String() + "/proa", Username: "proa", Password: "secret"}
	if err := r.Check(t.Context()); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("got %v", err)
	}
	if len(asked) > 0 {
		t.Errorf("the registry was asked without TLS: %q", <-asked)
	}
}

func TestAccounts(t *testing.T) {
	r := Registry{Prefix: "reg.example:5000/team/proa", Username: "proa", Password: "secret"}
	var pull struct{ Auths map[string]map[string]string }
	if err := json.Unmarshal(r.PullSecret(), &pull); err != nil || pull.Auths["reg.example:5000/team/proa"]["auth"] != "cHJvYTpzZWNyZXQ=" {
		t.Errorf("%s: %v", r.PullSecret(), err)
	}
	if got := r.LifecycleAuth(); got != `{"reg.example:5000":"Basic cHJvYTpzZWNyZXQ="}` {
		t.Error(got)
	}
	if got := fmt.Sprintf("%v %+v %s %v", r, r, &r, slog.AnyValue(r).Resolve()); strings.Contains(got, "secret") {
		t.Errorf("a print holds the password: %s", got)
	}
	open := Registry{Prefix: "reg.example:5000/proa"}
	if got := string(open.PullSecret()) + open.LifecycleAuth(); got != `{"auths":{}}{}` {
		t.Error(got)
	}
}

func TestNames(t *testing.T) {
	r := Registry{Prefix: "reg.example:5000/proa"}
	if got, err := r.DropletName("app-1", "build-1"); err != nil || got != "reg.example:5000/proa/droplets/app-1:build-1" {
		t.Errorf("%s %v", got, err)
	}
	for _, guids := range [][2]string{{"..", "b"}, {"a", "b/c"}, {"", "b"}, {"a", ""}} {
		if got, err := r.DropletName(guids[0], guids[1]); err == nil {
			t.Errorf("%q made %s", guids, got)
		}
	}
	for image, want := range map[string]bool{
		"reg.example:5000/proa/droplets/x": true, "REG.example:5000/proa/x": true, "reg.example:5000/proa": true,
		"reg.example:5000/proa-not/x": false, "reg.example/proa/x": false, "proa/x": false,
	} {
		repo, err := name.NewRepository(image)
		if err != nil || r.ours(repo) != want {
			t.Errorf("%s: ours is %v, %v", image, !want, err)
		}
	}
}
