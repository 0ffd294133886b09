package token_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/token"
)

// keyServer publishes a key set, which may change, and counts who asks.
type keyServer struct {
	*httptest.Server
	hits atomic.Int64

	mu     sync.Mutex
	status int
	body   string
}

func newKeyServer(t *testing.T, keys ...jose.JSONWebKey) *keyServer {
	t.Helper()
	s := &keyServer{}
	s.publish(keys...)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		s.mu.Lock()
		defer s.mu.Unlock()
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(s.body))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) publish(keys ...jose.JSONWebKey) { s.answer(http.StatusOK, keySet(keys...)) }

func (s *keyServer) answer(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body = status, body
}

func keySet(keys ...jose.JSONWebKey) string {
	if keys == nil {
		keys = []jose.JSONWebKey{}
	}
	b, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// clock stands until it is moved.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return start.Add(time.Duration(c.at.Load())) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

// newRemote asks every minute, and for an unknown key once a second.
func newRemote(s *keyServer) (*token.Remote, *clock) {
	c := &clock{}
	return &token.Remote{URL: s.URL, Client: s.Client(), Now: c.now}, c
}

func wantKey(t *testing.T, r *token.Remote, kid string, want crypto.PublicKey) {
	t.Helper()
	key, err := r.Key(t.Context(), kid)
	if err != nil {
		t.Errorf("%s: %v", kid, err)
	} else if !want.(interface{ Equal(crypto.PublicKey) bool }).Equal(key) {
		t.Errorf("%s is another key", kid)
	}
}

func wantUnknown(t *testing.T, r *token.Remote, kid string) {
	t.Helper()
	if key, err := r.Key(t.Context(), kid); !errors.Is(err, token.ErrUnknownKey) || key != nil {
		t.Errorf("%s: %v %v, want it unknown", kid, key, err)
	}
}

func wantUnreachable(t *testing.T, err error) {
	t.Helper()
	f := fault.From(err)
	if err == nil || f.Status() != http.StatusServiceUnavailable || errors.Is(err, token.ErrUnknownKey) ||
		f.Detail != "The authorization server cannot be asked for its keys now. Try again in a moment." {
		t.Errorf("%v, want 503", err)
	}
}

func wantHits(t *testing.T, s *keyServer, want int64) {
	t.Helper()
	if got := s.hits.Load(); got != want {
		t.Errorf("the server was asked %d times, want %d", got, want)
	}
}

func TestRemoteAsksOnceAndRemembers(t *testing.T) {
	s := newKeyServer(t, public("a", ours()), public("b", next()))
	r, c := newRemote(s)
	wantHits(t, s, 0)
	for range 10 {
		wantKey(t, r, "a", ours().Public())
		wantKey(t, r, "b", next().Public())
	}
	c.pass(59 * time.Second)
	wantKey(t, r, "a", ours().Public())
	wantHits(t, s, 1)
	c.pass(time.Second)
	wantKey(t, r, "a", ours().Public())
	wantKey(t, r, "a", ours().Public())
	wantHits(t, s, 2)
}

func TestRemoteSeesARotation(t *testing.T) {
	s := newKeyServer(t, public("a", ours()))
	r, c := newRemote(s)
	wantKey(t, r, "a", ours().Public())
	s.publish(public("a", ours()), public("b", next()))
	wantUnknown(t, r, "b") // asked within the pause
	wantHits(t, s, 1)
	c.pass(time.Second)
	wantKey(t, r, "b", next().Public())
	wantKey(t, r, "a", ours().Public())
	wantHits(t, s, 2)
}

func TestRemoteForgetsAWithdrawnKey(t *testing.T) {
	s := newKeyServer(t, public("a", ours()), public("key-1", next()))
	r, c := newRemote(s)
	v := &token.Verifier{Issuer: issuer, Audience: []string{"notifications"}, Key: r.Key, Now: c.now}
	raw := sign(goodHeader, goodClaims, rs256(next()))
	if _, err := v.Verify(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	s.publish(public("a", ours()))
	c.pass(59 * time.Second)
	if _, err := v.Verify(t.Context(), raw); err != nil {
		t.Errorf("before the refresh: %v", err)
	}
	c.pass(time.Second)
	claims, err := v.Verify(t.Context(), raw)
	wantRefusal(t, claims, err, unknown)

	s.publish() // withdraws the last
	c.pass(time.Minute)
	wantUnknown(t, r, "a")
}

func TestRemoteUnderAFloodOfInventedKeys(t *testing.T) {
	s := newKeyServer(t, public("a", ours()))
	r, c := newRemote(s)
	wantKey(t, r, "a", ours().Public())
	for round := range int64(3) {
		c.pass(time.Second)
		var ready, done sync.WaitGroup
		gate := make(chan struct{})
		for n := range 200 {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-gate
				wantUnknown(t, r, fmt.Sprintf("invented-%d", n))
				wantKey(t, r, "a", ours().Public())
			})
		}
		ready.Wait()
		close(gate)
		done.Wait()
		wantHits(t, s, 2+round)
	}
	c.pass(time.Second - 1)
	wantUnknown(t, r, "invented")
	wantHits(t, s, 4)
}

func TestRemoteKeepsItsKeysWhileTheServerIsDown(t *testing.T) {
	for name, fall := range map[string]func(*keyServer){
		"error":        func(s *keyServer) { s.answer(http.StatusInternalServerError, keySet(public("a", foreign()))) },
		"not found":    func(s *keyServer) { s.answer(http.StatusNotFound, keySet(public("a", foreign()))) },
		"a page":       func(s *keyServer) { s.answer(http.StatusOK, "<html>Log in to the hotel's network") },
		"other JSON":   func(s *keyServer) { s.answer(http.StatusOK, `{"error":"maintenance"}`) },
		"half a reply": func(s *keyServer) { s.answer(http.StatusOK, keySet(public("b", foreign()))[:100]) },
		"gone":         func(s *keyServer) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newKeyServer(t, public("a", ours()))
			r, c := newRemote(s)
			wantKey(t, r, "a", ours().Public())
			fall(s)
			for range 3 {
				c.pass(time.Hour)
				wantKey(t, r, "a", ours().Public())
				wantKey(t, r, "a", ours().Public())
				for range 2 { // nobody can tell now whether there is such a key
					_, err := r.Key(t.Context(), "b")
					wantUnreachable(t, err)
				}
			}
		})
	}
}

func TestRemoteThatWasNeverReached(t *testing.T) {
	s := newKeyServer(t)
	s.answer(http.StatusBadGateway, "")
	r, c := newRemote(s)
	v := &token.Verifier{Issuer: issuer, Audience: []string{"notifications"}, Key: r.Key, Now: c.now}
	for range 3 {
		claims, err := v.Verify(t.Context(), good(nil))
		wantUnreachable(t, err)
		if claims.ID != "" {
			t.Error("claims were returned")
		}
	}
	wantHits(t, s, 1)
	s.publish(public("key-1", ours()))
	c.pass(time.Second)
	if _, err := v.Verify(t.Context(), good(nil)); err != nil {
		t.Errorf("after the server came: %v", err)
	}
	wantHits(t, s, 2)
}

func TestRemoteUsesOnlyPublicSigningKeys(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := []jose.JSONWebKey{
		{KeyID: "private", Key: ours(), Algorithm: "RS256", Use: "sig"},
		{KeyID: "encrypts", Key: ours().Public(), Algorithm: "RS256", Use: "enc"},
		{KeyID: "encrypts, by its algorithm", Key: ours().Public(), Algorithm: "RSA-OAEP"},
		{KeyID: "RS512", Key: ours().Public(), Algorithm: "RS512", Use: "sig"},
		{KeyID: "shared", Key: []byte("a secret that both sides know"), Algorithm: "HS256", Use: "sig"},
		{KeyID: "curve", Key: curve.Public(), Algorithm: "ES256", Use: "sig"},
	}
	body := keySet(append(keys, jose.JSONWebKey{KeyID: "plain", Key: ours().Public()}, public("good", next()))...)
	odd := `{"kty":"AKP","kid":"odd","alg":"ML-DSA-44","pub":"AA"},{"kty":"RSA","kid":"half","n":"AQAB"},7,`
	s := newKeyServer(t)
	s.answer(http.StatusOK, strings.Replace(body, `[`, `[`+odd, 1))
	r, _ := newRemote(s)
	wantKey(t, r, "good", next().Public())
	wantKey(t, r, "plain", ours().Public())
	for _, k := range keys {
		wantUnknown(t, r, k.KeyID)
	}
	for _, kid := range []string{"odd", "half", ""} {
		wantUnknown(t, r, kid)
	}
}

func TestRemoteReadsOnlySoMuch(t *testing.T) {
	padded := func(n int) string {
		return `{"pad":"` + strings.Repeat("a", n) + `",` + strings.TrimPrefix(keySet(public("a", ours())), "{")
	}
	s := newKeyServer(t)
	s.answer(http.StatusOK, padded(1<<20-1000))
	r, c := newRemote(s)
	wantKey(t, r, "a", ours().Public())
	s.answer(http.StatusOK, strings.Replace(padded(1<<20), `"kid":"a"`, `"kid":"b"`, 1))
	c.pass(time.Minute)
	_, err := r.Key(t.Context(), "b")
	wantUnreachable(t, err)
	wantKey(t, r, "a", ours().Public())
}

// transport answers in place of the network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Whoever comes while the server is being asked waits for its answer: at the start of a process under load, and when the first
// token of a new key comes a hundred times at once.
func TestRemoteMakesAllWaitForTheAnswerUnderWay(t *testing.T) {
	set := keySet(public("a", ours()))
	synctest.Test(t, func(t *testing.T) {
		release, hits := make(chan struct{}), 0
		r := &token.Remote{URL: "http://auth.example.org/token_keys", Now: time.Now, Client: &http.Client{
			Transport: transport(func(r *http.Request) (*http.Response, error) {
				hits++
				select {
				case <-release:
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
				w := httptest.NewRecorder()
				_, _ = w.WriteString(set)
				return w.Result(), nil
			}),
		}}
		var done sync.WaitGroup
		ask := func(ctx context.Context) {
			done.Go(func() {
				if _, err := r.Key(ctx, "a"); err != nil {
					t.Error(err)
				}
			})
		}
		impatient, leave := context.WithCancel(t.Context())
		ask(impatient)
		synctest.Wait() // the first asks the server
		for range 100 {
			ask(t.Context())
		}
		synctest.Wait() // the others wait
		leave()
		time.Sleep(4 * time.Second) // of the bubble's own time
		for range 100 {
			ask(t.Context())
		}
		synctest.Wait()
		close(release)
		done.Wait()
		if hits != 1 {
			t.Errorf("the server was asked %d times", hits)
		}
	})
}

func TestRemoteGivesUpOnAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &token.Remote{URL: "http://auth.example.org/token_keys", Now: time.Now, Client: &http.Client{
			Transport: transport(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}),
		}}
		begin := time.Now()
		_, err := r.Key(t.Context(), "a")
		wantUnreachable(t, err)
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("gave up after %s", took)
		}
	})
}
