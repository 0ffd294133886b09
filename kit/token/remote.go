package token

import (
	"context"
	"crypto"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/proa-dev/proa/kit/fault"
)

// Remote is the set of keys that an authorization server publishes. It asks again every Refresh, and at once, though not more
// often than once in Pause, when a token names a key it has not seen. So a rotation needs no restart, and a flood of
// invented key ids costs the authorization server one request per Pause.
type Remote struct {
	URL     string // of the key set, for example https://auth.example.org/token_keys
	Client  *http.Client
	Refresh time.Duration // 1 minute when zero; the server publishes a key longer than this before it signs with it
	Pause   time.Duration // 1 second when zero
	Now     func() time.Time

	mu     sync.Mutex
	keys   map[string]crypto.PublicKey
	asked  time.Time // when it last asked at all
	missed time.Time // when it last asked because of a key it had not seen
	failed error     // of the last time it asked
	group  singleflight.Group
}

// Key is a Verifier's Key.
func (r *Remote) Key(ctx context.Context, kid string) (crypto.PublicKey, error) {
	r.mu.Lock()
	key, age := r.keys[kid], r.Now().Sub(r.asked)
	r.mu.Unlock()
	if key != nil && age < or(r.Refresh, time.Minute) {
		return key, nil
	}
	// Many requests wait for one answer; one caller's impatience does not end it for the others. A key that is missing is asked
	// for even if the last answer is fresh: it may be younger than that answer.
	why, last := "refresh", &r.asked
	if key == nil {
		why, last = "missing", &r.missed
	}
	_, err, _ := r.group.Do(why, func() (any, error) { return nil, r.load(context.WithoutCancel(ctx), last) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if key := r.keys[kid]; key != nil {
		return key, nil // also when the server could not be asked: what it said before still holds
	}
	if err != nil {
		return nil, unreachable(err)
	}
	return nil, ErrUnknownKey
}

func unreachable(err error) error {
	return fault.Unavailable("The authorization server cannot be asked for its keys now. Try again in a moment.").Because(err)
}

// load asks the server, or within Pause of the last time for the same cause says how that went.
func (r *Remote) load(ctx context.Context, last *time.Time) error {
	r.mu.Lock()
	now, failed := r.Now(), r.failed
	if now.Sub(*last) < or(r.Pause, time.Second) {
		r.mu.Unlock()
		return failed
	}
	*last, r.asked = now, now
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	set, err := r.fetch(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = fmt.Errorf("load token keys: %w", err)
		return r.failed
	}
	r.keys, r.failed = usable(set), nil
	return nil
}

// keySet is a JWKS whose keys are read one by one: a key of a kind that we do not know must not cost us the others.
type keySet struct {
	Keys []json.RawMessage `json:"keys"`
}

// usable picks the public keys that RS256 signatures may be checked with.
func usable(set keySet) map[string]crypto.PublicKey {
	keys := map[string]crypto.PublicKey{}
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) != nil || !k.Valid() {
			continue
		}
		public, ok := k.Key.(*rsa.PublicKey)
		if ok && (k.Use == "sig" || k.Use == "") && (k.Algorithm == string(jose.RS256) || k.Algorithm == "") {
			keys[k.KeyID] = public
		}
	}
	return keys
}

func (r *Remote) fetch(ctx context.Context) (keySet, error) {
	var set keySet
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return set, err
	}
	resp, err := r.Client.Do(req)
	if err != nil {
		return set, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return set, fmt.Errorf("%s answered %s", r.URL, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&set); err != nil {
		return set, err
	}
	if set.Keys == nil {
		return set, fmt.Errorf("%s answered without a key set", r.URL)
	}
	return set, nil
}

func or(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}
