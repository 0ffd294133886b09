package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSamples runs the tests that each sample app brings along: they are modules of their own, as the apps of others are, so
// `go test ./...` does not reach them.
func TestSamples(t *testing.T) {
	modules, err := filepath.Glob("../samples/*/go.mod")
	if err != nil || len(modules) == 0 {
		t.Fatalf("found no samples: %v", err)
	}
	for _, module := range modules {
		dir := filepath.Dir(module)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			for _, args := range [][]string{{"vet", "./..."}, {"test", "-count=1", "./..."}} {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("go %s: %v\n%s", args[0], err, out)
				}
			}
		})
	}
}
