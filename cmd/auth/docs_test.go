package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// What docs/auth.md tells people to type is typed here, in one shell, against the real program.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/auth.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 7 {
		t.Fatalf("only %d blocks found", len(blocks))
	}
	script := "set -euo pipefail\n"
	for _, b := range blocks {
		script += b[1]
	}
	f := newFleet(t)
	f.start(host(f.first))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "PROA_AUTH_URL="+f.first, "PROA_ADMIN_USERNAME=admin", "PROA_ADMIN_PASSWORD="+adminPassword, "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "my-notifier") || !strings.Contains(string(out), "\nann\n") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The table of settings in docs/operators.md is the one that the program prints. UPDATE=1 writes it anew.
func TestConfigurationReference(t *testing.T) {
	const path, begin, end = "../../docs/operators.md", "<!-- configuration: auth -->\n", "<!-- end -->"
	page, err := os.ReadFile(path)
	must(t, err)
	f := newFleet(t)
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the place for the table is gone")
	}
	want := []byte(before + begin + f.run("help", "--markdown") + end + after)
	if os.Getenv("UPDATE") != "" {
		must(t, os.WriteFile(path, want, 0o600))
	}
	if !bytes.Equal(page, want) {
		t.Error("docs/operators.md is out of date. Run: UPDATE=1 go test ./cmd/auth -run TestConfigurationReference")
	}
}
