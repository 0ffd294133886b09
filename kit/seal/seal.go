// Package seal owns secrets at rest: it encrypts small values with Tink before they go into the
// database, and opens them again.
//
// A keyset is Tink's own JSON in clear, so it belongs in a Secret of the platform that runs the
// process and nowhere else. It holds one primary key, which seals, and any number of older keys,
// which only open. To change keys: Rotate, give the result to every process, seal again what is
// stored, Prune. A process that still has the old keyset cannot open what the new primary sealed,
// so let nothing be sealed while only some processes have the new one.
package seal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// The errors say nothing of Tink's: what was given to it is secret.
var (
	errKeyset  = errors.New("seal: not a Tink keyset in JSON with keys that encrypt")
	errContext = errors.New("seal: the context is empty")
	errOpen    = errors.New("seal: cannot open: another key, another context, or altered")
)

// Box seals and opens. It is safe for use by many goroutines.
type Box struct {
	aead tink.AEAD
}

// New makes a box from a keyset in JSON.
func New(keysetJSON []byte) (*Box, error) {
	h, err := read(keysetJSON)
	if err != nil {
		return nil, err
	}
	a, err := aead.New(h)
	if err != nil {
		return nil, errKeyset
	}
	return &Box{aead: a}, nil
}

// Seal encrypts plain and ties it to context, the place where it is kept, such as
// "auth/signing_key/<kid>": a sealed value that was moved elsewhere does not open. The context
// itself is not secret and not part of the result.
func (b *Box) Seal(plain, context []byte) ([]byte, error) {
	if len(context) == 0 {
		return nil, errContext
	}
	sealed, err := b.aead.Encrypt(plain, context)
	if err != nil {
		return nil, errors.New("seal: cannot encrypt")
	}
	return sealed, nil
}

// Open is the reverse of Seal with the same context.
func (b *Box) Open(sealed, context []byte) ([]byte, error) {
	if len(context) == 0 {
		return nil, errContext
	}
	plain, err := b.aead.Decrypt(sealed, context)
	if err != nil {
		return nil, errOpen
	}
	return plain, nil
}

// Generate makes a new keyset with one AES256-GCM key.
func Generate() ([]byte, error) {
	h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("seal: generate key: %w", err)
	}
	return write(h)
}

// Rotate adds a new primary key. The older keys still open.
func Rotate(keysetJSON []byte) ([]byte, error) {
	h, err := read(keysetJSON)
	if err != nil {
		return nil, err
	}
	m := keyset.NewManagerFromHandle(h)
	id, err := m.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("seal: generate key: %w", err)
	}
	if err := m.SetPrimary(id); err != nil {
		return nil, fmt.Errorf("seal: promote key: %w", err)
	}
	return result(m)
}

// Prune keeps only the primary key. What older keys sealed is lost.
func Prune(keysetJSON []byte) ([]byte, error) {
	h, err := read(keysetJSON)
	if err != nil {
		return nil, err
	}
	m := keyset.NewManagerFromHandle(h)
	for i := range h.Len() {
		e, err := h.Entry(i)
		if err != nil {
			return nil, fmt.Errorf("seal: read key: %w", err)
		}
		if e.IsPrimary() {
			continue
		}
		if err := m.Delete(e.KeyID()); err != nil {
			return nil, fmt.Errorf("seal: delete key: %w", err)
		}
	}
	return result(m)
}

func read(keysetJSON []byte) (*keyset.Handle, error) {
	h, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(keysetJSON)))
	if err != nil {
		return nil, errKeyset
	}
	return h, nil
}

func result(m *keyset.Manager) ([]byte, error) {
	h, err := m.Handle()
	if err != nil {
		return nil, fmt.Errorf("seal: make keyset: %w", err)
	}
	return write(h)
}

func write(h *keyset.Handle) ([]byte, error) {
	var out bytes.Buffer
	if err := insecurecleartextkeyset.Write(h, keyset.NewJSONWriter(&out)); err != nil {
		return nil, fmt.Errorf("seal: write keyset: %w", err)
	}
	return out.Bytes(), nil
}
