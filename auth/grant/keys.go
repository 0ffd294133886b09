package grant

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/sync/singleflight"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/token"
)

const (
	keyBits = 2048
	// Each process looks for new keys this often. A new key signs only Lead after it was published, so every process and every
	// verifier that asks once a minute has it by then.
	keyReload = 5 * time.Second
	// Lead is how long a new key is published before it signs.
	Lead = 2 * time.Minute
)

// Keys signs tokens and finds the public keys of those that others signed, on the same database.
type Keys struct {
	Store *store.Store
	Box   *seal.Box
	Log   *slog.Logger
	Now   func() time.Time

	mu     sync.RWMutex
	known  []signingKey // the newest first, future ones too
	missed time.Time    // when a key that was not known last made us look

	looking singleflight.Group
}

type signingKey struct {
	id     string
	from   time.Time
	public crypto.PublicKey
	signer jose.Signer
}

func (k signingKey) signs(now time.Time) bool { return k.signer != nil && !k.from.After(now) }

func sealContext(kid string) []byte { return []byte("auth/signing_key/" + kid) }

// NewKey makes a key pair that signs from a time on.
func (k *Keys) NewKey(from time.Time) (auth.SigningKey, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return auth.SigningKey{}, fmt.Errorf("generate key: %w", err)
	}
	print, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256)
	if err != nil {
		return auth.SigningKey{}, fmt.Errorf("name key: %w", err)
	}
	kid := base64.RawURLEncoding.EncodeToString(print[:12])
	public, err1 := x509.MarshalPKIXPublicKey(private.Public())
	der, err2 := x509.MarshalPKCS8PrivateKey(private)
	if err := errors.Join(err1, err2); err != nil {
		return auth.SigningKey{}, fmt.Errorf("encode key: %w", err)
	}
	sealed, err := k.Box.Seal(der, sealContext(kid))
	return auth.SigningKey{ID: kid, Public: public, Sealed: sealed, SignsFrom: from}, err
}

// Start makes the first key if there is none, and loads what there is.
func (k *Keys) Start(ctx context.Context) error {
	keys, err := k.Store.Keys(ctx, k.Now())
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		first, err := k.NewKey(k.Now())
		if err != nil {
			return err
		}
		if err := k.Store.FirstKey(ctx, auth.Who{Name: "first start"}, first); err != nil {
			return err
		}
	}
	err = k.Load(ctx)
	if k.Signing() != "" && err != nil {
		k.Log.Error("a signing key cannot be used", "error", err)
		return nil
	}
	return err
}

// Load reads the keys anew. Those known already are not opened again. One that our keyset does not open still verifies: its public
// half is not sealed. The error tells of those.
func (k *Keys) Load(ctx context.Context) error {
	rows, err := k.Store.Keys(ctx, k.Now())
	if err != nil {
		return err
	}
	k.mu.RLock()
	have := map[string]signingKey{}
	for _, key := range k.known {
		if key.signer != nil {
			have[key.id] = key
		}
	}
	k.mu.RUnlock()
	var known []signingKey
	var problems []error
	for _, row := range rows {
		key, ok := have[row.ID]
		if !ok {
			if key, err = k.open(row); err != nil {
				problems = append(problems, fmt.Errorf("open signing key %s: %w (is this the keyset that sealed it?)", row.ID, err))
			}
		}
		if key.public != nil {
			known = append(known, key)
		}
	}
	k.mu.Lock()
	k.known = known
	k.mu.Unlock()
	return errors.Join(problems...)
}

func (k *Keys) open(row auth.SigningKey) (signingKey, error) {
	key := signingKey{id: row.ID, from: row.SignsFrom}
	public, err := x509.ParsePKIXPublicKey(row.Public)
	if err != nil {
		return key, err
	}
	key.public = public
	der, err := k.Box.Open(row.Sealed, sealContext(row.ID))
	if err != nil {
		return key, err
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return key, err
	}
	key.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: private, KeyID: row.ID}}, (&jose.SignerOptions{}).WithType("JWT"))
	return key, err
}

// Part loads the keys again and again.
func (k *Keys) Part() run.Part {
	return run.Part{Name: "keys", Run: func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(keyReload):
			}
			if err := k.Load(ctx); err != nil && ctx.Err() == nil { // the keys we have stay good
				k.Log.Error("signing keys cannot be loaded", "error", err)
			}
		}
	}}
}

// Key finds a public key. One not seen yet may be new, so the database is asked, but not more than once a second.
func (k *Keys) Key(ctx context.Context, kid string) (crypto.PublicKey, error) {
	if public := k.find(kid); public != nil {
		return public, nil
	}
	// Many requests may bring a new key's first tokens at once: they wait for one look.
	_, err, _ := k.looking.Do("", func() (any, error) {
		if !k.mayLook() {
			return nil, nil
		}
		return nil, k.Load(context.WithoutCancel(ctx))
	})
	if err != nil {
		return nil, err
	}
	if public := k.find(kid); public != nil {
		return public, nil
	}
	return nil, token.ErrUnknownKey
}

func (k *Keys) find(kid string) crypto.PublicKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, key := range k.known {
		if key.id == kid {
			return key.public
		}
	}
	return nil
}

// mayLook takes the one look of this second for a key that is not known.
func (k *Keys) mayLook() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	if now.Sub(k.missed) < time.Second {
		return false
	}
	k.missed = now
	return true
}

// Sign makes a JWT of the claims with the newest key whose time has come.
func (k *Keys) Sign(claims any) (string, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, key := range k.known {
		if key.signs(k.Now()) {
			return jwt.Signed(key.signer).Claims(claims).Serialize()
		}
	}
	return "", errors.New("no signing key is in force")
}

// Published is the key set as every verifier may see it, read from the database so that no process answers with an old one.
func (k *Keys) Published(ctx context.Context) (jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	rows, err := k.Store.Keys(ctx, k.Now())
	if err != nil {
		return set, err
	}
	for _, row := range rows {
		public, err := x509.ParsePKIXPublicKey(row.Public)
		if err != nil {
			return set, fmt.Errorf("read public key %s: %w", row.ID, err)
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: row.ID, Algorithm: string(jose.RS256), Use: "sig"})
	}
	return set, nil
}

// Signing is the id of the key that signs now, or "".
func (k *Keys) Signing() string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, key := range k.known {
		if key.signs(k.Now()) {
			return key.id
		}
	}
	return ""
}
