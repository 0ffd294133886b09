package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"

	"github.com/proa-dev/proa/kit/seal"
)

var (
	plain = []byte("the signing key")
	place = []byte("auth/signing_key/1")
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func opens(b *seal.Box, sealed, context []byte) bool {
	got, err := b.Open(sealed, context)
	return err == nil && bytes.Equal(got, plain)
}

func TestRotateAndPrune(t *testing.T) {
	data, box := must[[]byte](t), must[*seal.Box](t)
	oldSet := data(seal.Generate())
	newSet := data(seal.Rotate(oldSet))
	lastSet := data(seal.Prune(newSet))
	before, both, after := box(seal.New(oldSet)), box(seal.New(newSet)), box(seal.New(lastSet))

	oldSealed := data(before.Seal(plain, place))
	newSealed := data(both.Seal(plain, place))
	for _, c := range []struct {
		name   string
		box    *seal.Box
		sealed []byte
		want   bool
	}{
		{"old keyset, old value", before, oldSealed, true},
		{"old keyset, new value", before, newSealed, false},
		{"rotated keyset, old value", both, oldSealed, true},
		{"rotated keyset, new value", both, newSealed, true},
		{"pruned keyset, old value", after, oldSealed, false},
		{"pruned keyset, new value", after, newSealed, true},
	} {
		if got := opens(c.box, c.sealed, place); got != c.want {
			t.Errorf("%s: opens is %t, want %t", c.name, got, c.want)
		}
	}
}

func TestOpenRefusesOtherContextAndEveryAlteredByte(t *testing.T) {
	data := must[[]byte](t)
	box := must[*seal.Box](t)(seal.New(data(seal.Generate())))
	sealed := data(box.Seal(plain, place))
	if !opens(box, sealed, place) {
		t.Fatal("does not open")
	}
	if bytes.Contains(sealed, plain) {
		t.Error("the plain text is in the sealed value")
	}
	if bytes.Equal(sealed, data(box.Seal(plain, place))) {
		t.Error("the same value was sealed twice alike")
	}
	if opens(box, sealed, []byte("auth/signing_key/2")) {
		t.Error("opens in another place")
	}
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if opens(box, altered, place) {
			t.Errorf("opens with byte %d altered", i)
		}
	}
	for n := range sealed {
		if opens(box, sealed[:n], place) {
			t.Errorf("opens when cut to %d bytes", n)
		}
	}
}

func TestEmptyContextIsRefused(t *testing.T) {
	data := must[[]byte](t)
	box := must[*seal.Box](t)(seal.New(data(seal.Generate())))
	if _, err := box.Seal(plain, nil); err == nil {
		t.Error("sealed without a context")
	}
	if _, err := box.Open(data(box.Seal(plain, place)), []byte{}); err == nil {
		t.Error("opened without a context")
	}
}

func TestBadKeysets(t *testing.T) {
	var macs bytes.Buffer
	h := must[*keyset.Handle](t)(keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate()))
	if err := insecurecleartextkeyset.Write(h, keyset.NewJSONWriter(&macs)); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]string{
		"empty": "", "no keys": `{"primaryKeyId":1,"key":[]}`, "not JSON": "hunter2", "keys that do not encrypt": macs.String(),
	} {
		if _, err := seal.New([]byte(set)); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the keyset: %v", name, err)
		}
	}
	for name, change := range map[string]func([]byte) ([]byte, error){"Rotate": seal.Rotate, "Prune": seal.Prune} {
		if _, err := change([]byte("hunter2")); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
