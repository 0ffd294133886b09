package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// docPages are the pages that tell people what to type, in the order in which a reader comes to them. house_test.go holds docs/
// against this list: what is on no page of it is marked as not run.
var docPages = []string{"quickstart.md", "apps.md", "routes.md", "logs.md", "services.md", "notifications.md"}

// docShell is what a shell of the test has and a reader's does not need: here the gateway may be at another port than 80, and a
// route is asked for sooner than a person could.
const docShell = `set -euo pipefail
curl() {
	case "$*" in
	*".$PROA_APPS_DOMAIN"*) command curl "$@" --connect-to "::$PROA_GATEWAY_HTTP" --fail --retry 30 --retry-delay 1 --retry-all-errors ;;
	*) command curl "$@" ;;
	esac
}
`

// TestDocs types what the pages tell people to type, each page in a shell that begins in a checkout, as one person after the
// other. It needs a Proa on which nobody has done so before.
func TestDocs(t *testing.T) {
	if os.Getenv("PROA_TEST_E2E") == "" {
		t.Skip("needs a whole Proa: run make up, then . .run/env, then PROA_TEST_E2E=1 go test ./e2e")
	}
	checkout := docCheckout(t)
	env := append(os.Environ(), "PROA_HOME="+filepath.Join(t.TempDir(), ".proa"), "NO_COLOR=1")
	proa := proaWith(env)
	if _, err := proa("login", "-a", os.Getenv("PROA_API_URL"), "-u", os.Getenv("PROA_ADMIN_USERNAME"), "-p", os.Getenv("PROA_ADMIN_PASSWORD")); err != nil {
		t.Fatalf("log in: %v", said(err))
	}
	if out, err := proa("curl", "--fail", "/v3/organizations?names=acme"); err != nil || strings.Contains(string(out), `"guid"`) {
		t.Fatalf("There is an organization acme already, of somebody who has tried the pages by hand: delete it, then run this again. (%v)", err)
	}
	t.Cleanup(func() {
		cmd := exec.Command("bash", "-c", docForget)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("Some of what the pages made stays: %v\n%s", err, out)
		}
	})
	for _, page := range docPages {
		text, err := os.ReadFile(filepath.Join("../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		typed := typedIn(string(text))
		if typed == "" {
			t.Fatalf("docs/%s has nothing to type: take it off the list", page)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", docShell+typed)
		cmd.Dir, cmd.Env = checkout, env
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("docs/%s: %v\n%s\n--- was typed:\n%s", page, err, out, typed)
		}
		t.Logf("docs/%s\n%s", page, out)
	}
}

var docBlock = regexp.MustCompile("(?ms)^(?: *<!-- (not run|run): ([^\n]*) -->\n)? *```(sh|console)\n(.*?)^ *```$")

// typedIn gives what a page tells people to type: blocks of sh, and of console the lines that begin with a $. What stands in a
// comment `not run: …` before a block says why the block is not typed, and `run: …` what is typed before it, to wait for something.
func typedIn(page string) string {
	var script strings.Builder
	for _, b := range docBlock.FindAllStringSubmatch(page, -1) {
		switch {
		case b[1] == "not run":
			continue
		case b[1] == "run":
			script.WriteString(b[2] + "\n")
		}
		for line := range strings.Lines(b[4]) {
			command, prompted := strings.CutPrefix(line, "$ ")
			if b[3] == "sh" || prompted {
				script.WriteString(command)
			}
		}
	}
	return script.String()
}

func TestTypedIn(t *testing.T) {
	page := "# A page\n\n```sh\na one \\\n  two\n```\n\n<!-- not run: it asks -->\n```sh\nb\n```\n\n- item\n\n  ```sh\n  c\n  ```\n\n<!-- run: until d; do sleep 1; done -->\n" +
		"```console\n$ e\nwhat it said\n$ f\n```\n\n```text\ng\n```\n"
	if got, want := typedIn(page), "a one \\\n  two\n  c\nuntil d; do sleep 1; done\ne\nf\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// docCheckout is what the pages need of a checkout: the samples, and what make up wrote.
func docCheckout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "samples"), os.DirFS("../samples")); err != nil {
		t.Fatal(err)
	}
	run := os.Getenv("PROA_RUN")
	if run == "" {
		run = "../.run"
	}
	run, err := filepath.Abs(run)
	if err == nil {
		err = os.Symlink(run, filepath.Join(dir, ".run"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// docForget takes away what the pages have made. One that failed may have left somebody else logged in.
const docForget = `set -euo pipefail
proa login -a "$PROA_API_URL" -u "$PROA_ADMIN_USERNAME" -p "$PROA_ADMIN_PASSWORD" >/dev/null
org=$(proa curl --fail "/v3/organizations?names=acme" | jq -r '.resources[0].guid // empty')
[ -z "$org" ] || proa curl --fail -X DELETE "/v3/organizations/$org"
proa delete-client harbour -f || true # the last page may not have been reached
ann=$(curl -fsSG "$PROA_AUTH_URL/Users" -H "Authorization: $(proa oauth-token)" --data-urlencode 'filter=userName eq "ann.harbour"' | jq -r '.resources[0].id // empty')
[ -z "$ann" ] || curl -fsS -X DELETE "$PROA_AUTH_URL/Users/$ann" -H "Authorization: $(proa oauth-token)"
`

// said is what a command wrote to stderr, if it is known.
func said(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
