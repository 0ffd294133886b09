package main

import (
	"testing"

	"github.com/proa-dev/proa/kit/env/envtest"
)

func TestConfigurationReference(t *testing.T) {
	envtest.Reference(t, "../../docs/pgbroker.md", "pgbroker", &config{})
}
