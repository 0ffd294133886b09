package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proa-dev/proa/kit/fault"
)

func TestFromKeepsAWrappedFaultAndHidesAnythingElse(t *testing.T) {
	inner := fault.Conflict("The name %q is taken. Choose another.", "blue")
	if got := fault.From(fmt.Errorf("save app: %w", inner)); got != inner || got.Status() != 409 {
		t.Fatalf("a wrapped fault was not found: %v", got)
	}
	hidden := fault.From(errors.New("password=hunter2"))
	if hidden.Status() != 500 || strings.Contains(hidden.Detail, "hunter2") {
		t.Fatalf("a plain error must be internal and its text must not be public: %+v", hidden)
	}
	if !strings.Contains(hidden.Error(), "hunter2") {
		t.Fatal("the cause must stay readable for the log")
	}
}

func TestCopiesDoNotChangeTheOriginal(t *testing.T) {
	base := fault.Unauthorized("Log in first.")
	coded := base.WithCode("invalid_token").Because(errors.New("expired"))
	if base.Code != "" || base.Cause != nil {
		t.Fatal("WithCode and Because must copy")
	}
	if !fault.Is(coded, fault.KindUnauthorized) || fault.Is(coded, fault.KindForbidden) {
		t.Fatal("Is must compare kinds")
	}
}
