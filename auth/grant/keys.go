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
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

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
	Now   func() time.Time

	mu     sync.RWMutex
	known  []signingKey // the newest first, future ones too
	loaded time.Time
}

type signingKey struct {
	id     string
	from   time.Time
	public crypto.PublicKey
	signer jose.Signer
}

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
	return k.Load(ctx)
}

// Load reads the keys anew. Those known already are not opened again.
func (k *Keys) Load(ctx context.Context) error {
	rows, err := k.Store.Keys(ctx, k.Now())
	if err != nil {
		return err
	}
	k.mu.RLock()
	have := map[string]signingKey{}
	for _, key := range k.known {
		have[key.id] = key
	}
	k.mu.RUnlock()
	var known []signingKey
	for _, row := range rows {
		key, ok := have[row.ID]
		if !ok {
			if key, err = k.open(row); err != nil {
				return fmt.Errorf("open signing key %s: %w (is this the keyset that sealed it?)", row.ID, err)
			}
		}
		known = append(known, key)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known, k.loaded = known, k.Now()
	return nil
}

func (k *Keys) open(row auth.SigningKey) (signingKey, error) {
	der, err := k.Box.Open(row.Sealed, sealContext(row.ID))
	if err != nil {
		return signingKey{}, err
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return signingKey{}, err
	}
	rsaKey, ok := private.(*rsa.PrivateKey)
	if !ok {
		return signingKey{}, errors.New("not an RSA key")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: rsaKey, KeyID: row.ID}},
		(&jose.SignerOptions{}).WithType("JWT"))
	return signingKey{id: row.ID, from: row.SignsFrom, public: rsaKey.Public(), signer: signer}, err
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
			_ = k.Load(ctx) // the database may be away; the keys we have stay good, and readiness tells
		}
	}}
}

// Key finds a public key; one not seen yet may be new, so the database is asked, at most once a second.
func (k *Keys) Key(ctx context.Context, kid string) (crypto.PublicKey, error) {
	public, fresh := k.find(kid)
	if public == nil && !fresh {
		if err := k.Load(ctx); err != nil {
			return nil, err
		}
		public, _ = k.find(kid)
	}
	if public == nil {
		return nil, token.ErrUnknownKey
	}
	return public, nil
}

func (k *Keys) find(kid string) (public crypto.PublicKey, fresh bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, key := range k.known {
		if key.id == kid {
			return key.public, true
		}
	}
	return nil, k.Now().Sub(k.loaded) < time.Second
}

// Sign makes a JWT of the claims with the newest key whose time has come.
func (k *Keys) Sign(claims any) (string, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	now := k.Now()
	for _, key := range k.known {
		if !key.from.After(now) {
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
		if !key.from.After(k.Now()) {
			return key.id
		}
	}
	return ""
}
