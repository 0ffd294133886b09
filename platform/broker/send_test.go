package broker_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker"
	"github.com/proa-dev/proa/platform/broker/brokertest"
)

// TestUnsent holds what is said never to have left us against what arrived.
func TestUnsent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing, so that TLS never comes about
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, change := range map[string]func(*brokertest.Broker, *broker.Broker, *broker.Call){
		"nobody listens":    func(b *brokertest.Broker, _ *broker.Broker, _ *broker.Call) { b.Down() },
		"no such host":      func(_ *brokertest.Broker, c *broker.Broker, _ *broker.Call) { c.URL = "http://broker.invalid" },
		"no url":            func(_ *brokertest.Broker, c *broker.Broker, _ *broker.Call) { c.URL = "::" },
		"no scheme":         func(_ *brokertest.Broker, c *broker.Broker, _ *broker.Call) { c.URL = "ftp://127.0.0.1" },
		"no id":             func(_ *brokertest.Broker, _ *broker.Broker, call *broker.Call) { call.InstanceID = "" },
		"an id that climbs": func(_ *brokertest.Broker, _ *broker.Broker, call *broker.Call) { call.InstanceID = ".." },
		"an id that stays":  func(_ *brokertest.Broker, _ *broker.Broker, call *broker.Call) { call.InstanceID = "." },
		"parameters that are broken": func(_ *brokertest.Broker, _ *broker.Broker, call *broker.Call) {
			call.Parameters = json.RawMessage(`{"a":hush}`)
		},
		"a certificate of a stranger": func(_ *brokertest.Broker, c *broker.Broker, _ *broker.Call) {
			c.HTTP.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}}
		},
		"a handshake that never ends": func(_ *brokertest.Broker, c *broker.Broker, _ *broker.Call) {
			c.URL, c.HTTP.Timeout = "https://"+silent.Addr().String(), 100*time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := start(t, brokertest.Options{TLS: true})
			trust(b, c)
			call := call
			change(b, c, &call)
			a := c.Provision(t.Context(), call)
			if !a.Unsent || a.Status != 0 || a.Cause == "" || strings.Contains(a.Cause, "hush") {
				t.Errorf("got %+v", a)
			}
			if asked := b.Asked(); len(asked) != 0 {
				t.Errorf("the broker was asked: %v", asked)
			}
		})
	}
}

func trust(b *brokertest.Broker, c *broker.Broker) {
	c.HTTP.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.Roots, MinVersion: tls.VersionTLS12}}
}

func TestTLS(t *testing.T) {
	b, c := start(t, brokertest.Options{TLS: true})
	trust(b, c)
	if _, a := c.Catalog(t.Context()); a.Status != http.StatusOK || a.Malformed {
		t.Errorf("got %+v", a)
	}
}

// TestLost is about answers that do not come: the broker may have done its work, and we must not say that it cannot.
func TestLost(t *testing.T) {
	for name, x := range map[string]struct {
		act  brokertest.Act
		kept int
	}{
		"before the work": {brokertest.LostBefore, 0},
		"after the work":  {brokertest.LostAfter, 1},
		"too late":        {brokertest.Act{Hang: true}, 1},
		"slowly":          {brokertest.Act{Wait: time.Minute}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := start(t, brokertest.Options{})
			c.HTTP.Timeout = 300 * time.Millisecond
			b.Script(brokertest.Provision, x.act)
			if a := c.Provision(t.Context(), call); a.Status != 0 || a.Unsent || a.Malformed || a.Cause == "" || strings.Contains(a.Cause, b.URL) {
				t.Errorf("got %+v", a)
			}
			if asked, kept := b.Story(), b.Instances(); len(asked) != 1 || len(kept) != x.kept {
				t.Errorf("asked %v, kept %v", asked, kept)
			}
		})
	}
}

func TestCallerGoesAway(t *testing.T) {
	b, c := start(t, brokertest.Options{})
	b.Script(brokertest.Provision, brokertest.Act{Hang: true})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	came := make(chan platform.Answer)
	go func() { came <- c.Provision(ctx, call) }()
	if err := b.Await(t.Context(), brokertest.Provision, 1); err != nil {
		t.Fatal(err)
	}
	leave()
	if a := <-came; a.Status != 0 || a.Unsent {
		t.Errorf("got %+v", a)
	}
	if a := c.Provision(ctx, call); !a.Unsent {
		t.Errorf("of one who had left before: %+v", a)
	}
}

// TestHalfAnAnswer: what breaks off is no answer, whatever its status was.
func TestHalfAnAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, `{}`)
	}))
	defer s.Close()
	c := &broker.Broker{URL: s.URL, HTTP: s.Client()}
	if a := c.Provision(t.Context(), call); a.Status != 0 || a.Unsent || a.Malformed || !strings.Contains(a.Cause, "200 broke off") {
		t.Errorf("got %+v", a)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere, _ := start(t, brokertest.Options{})
	b, c := start(t, brokertest.Options{})
	for _, status := range []int{301, 302, 303, 307, 308} {
		b.Script(brokertest.Provision, brokertest.Act{Undone: true, Status: status, Header: http.Header{"Location": {elsewhere.URL + "/v2/catalog"}}})
		if a := c.Provision(t.Context(), call); a.Status != status || a.Malformed {
			t.Errorf("got %+v", a)
		}
	}
	if asked := elsewhere.Asked(); len(asked) != 0 {
		t.Errorf("our account went elsewhere: %v", asked)
	}
}

// TestOneConnectionEach: of a connection that was kept and then closed nobody could tell whether a request got through.
func TestOneConnectionEach(t *testing.T) {
	_, c := start(t, brokertest.Options{})
	dials := 0
	c.HTTP.Transport = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	for range 3 {
		if _, a := c.Catalog(t.Context()); a.Status != http.StatusOK {
			t.Fatalf("got %+v", a)
		}
	}
	if dials != 3 {
		t.Errorf("%d connections for three requests", dials)
	}
}

func TestWrongAccount(t *testing.T) {
	_, c := start(t, brokertest.Options{})
	c.Account.Password = "wrong"
	if _, a := c.Catalog(t.Context()); a.Status != http.StatusUnauthorized {
		t.Errorf("got %+v", a)
	}
}
