package house_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
)

// docRunners are the files of the tests that type what pages tell people to type. Such a test is called TestDocs, and names its pages in
// itself or in a list docPages; what else the file names is not typed.
var (
	docRunners = []string{"e2e/docs_test.go", "cmd/auth/docs_test.go", "cmd/notify/docs_test.go"}
	docTypes   = regexp.MustCompile(`(?ms)^var docPages = [^}]*}|^func TestDocs\(.*?^}$`)
	docPage    = regexp.MustCompile(`["/]([a-z0-9-]+\.md)"`)
)

// typedPages are those that a runner types.
func typedPages(source string) (pages []string) {
	for _, part := range docTypes.FindAllString(source, -1) {
		for _, m := range docPage.FindAllStringSubmatch(part, -1) {
			pages = append(pages, m[1])
		}
	}
	return pages
}

func TestTypedPages(t *testing.T) {
	source := "var docPages = []string{\"apps.md\", \"logs.md\"}\n\nfunc TestDocs(t *testing.T) {\n\tread(\"../../docs/auth.md\")\n}\n\nfunc TestTable(t *testing.T) {\n\tread(\"../../docs/operators.md\")\n}\n"
	if got, want := typedPages(source), []string{"apps.md", "logs.md", "auth.md"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDocsAreTyped holds the pages against those tests: every block that tells people to type something is typed by a test, or says
// in a comment before it why not.
func TestDocsAreTyped(t *testing.T) {
	var typed []string
	for _, name := range docRunners {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages := typedPages(string(source))
		if len(pages) == 0 {
			t.Errorf("%s names no page that it types.", name)
		}
		typed = append(typed, pages...)
	}
	for name, text := range docPages(t) {
		for _, f := range blockFaults(text, slices.Contains(typed, name)) {
			t.Errorf("docs/%s: %s", name, f)
		}
	}
}

func docPages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no page in docs: %v", err)
	}
	pages := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[path.Base(name)] = string(text)
	}
	return pages
}

var (
	docFence = regexp.MustCompile("(?ms)^(?: *<!-- ([^\n]*) -->\n)? *```([a-z]*)\n(.*?)^ *```$")
	docKinds = []string{"sh", "console", "text", "yaml", "json", "sql"} // the first two are typed
	docTyped = regexp.MustCompile(`(?m)^ *(\$ )?(proa|make|curl|kubectl|ssh|psql|go) `)
)

// blockFaults says in a sentence each what is wrong with the blocks of a page that a test types, or not.
func blockFaults(page string, typed bool) (faults []string) {
	for _, b := range docFence.FindAllStringSubmatch(page, -1) {
		note, kind, body := b[1], b[2], b[3]
		first, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
		why, excused := strings.CutPrefix(note, "not run: ")
		switch commands := kind == "sh" || kind == "console"; {
		case !slices.Contains(docKinds, kind):
			faults = append(faults, fmt.Sprintf("the block that begins with %q must be one of %s.", first, strings.Join(docKinds, ", ")))
		case !commands && docTyped.MatchString(body):
			faults = append(faults, fmt.Sprintf("the block that begins with %q holds commands: make it sh, or console.", first))
		case commands && !typed && !excused:
			faults = append(faults, fmt.Sprintf("no test types the block that begins with %q: add the page to one of %s, or say before the block `<!-- not run: why -->`.", first, strings.Join(docRunners, ", ")))
		case excused && len(why) < 8:
			faults = append(faults, fmt.Sprintf("say why the block that begins with %q is not run.", first))
		}
	}
	return faults
}

func TestBlockRulesCanFail(t *testing.T) {
	const block = "```sh\nproa push\n```\n"
	for _, c := range []struct {
		page  string
		typed bool
		want  string
	}{
		{block, true, ""},
		{block, false, "no test types"},
		{"<!-- not run: it stays open -->\n" + block, false, ""},
		{"<!-- not run:  -->\n" + block, true, "say why"},
		{"```\nproa push\n```\n", true, "must be one of"},
		{"```text\n$ proa push\n```\n", true, "holds commands"},
		{"- item\n\n  ```text\n  proa push\n  ```\n", true, "holds commands"},
		{"```text\nPushing\n```\n", false, ""},
	} {
		if got := strings.Join(blockFaults(c.page, c.typed), " "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q, typed %t: got %q, want %q", c.page, c.typed, got, c.want)
		}
	}
}

var knownKeys = regexp.MustCompile(`Known are ([^.]+)\.`)

// TestManifestReference holds docs/manifest.md against the parser, which names the keys it knows when it meets one that it does not.
func TestManifestReference(t *testing.T) {
	page := docPages(t)["manifest.md"]
	for _, manifest := range []string{
		"unheard: 1", "sidecars: [{unheard: 1}]", "processes: [{unheard: 1}]", "routes: [{unheard: 1}]", "services: [{unheard: 1}]", "docker: {unheard: 1}", "metadata: {unheard: 1}",
	} {
		_, err := platform.ParseManifest([]byte("applications: [{name: shop, " + manifest + "}]"))
		known := knownKeys.FindStringSubmatch(fmt.Sprint(err))
		if known == nil {
			t.Fatalf("%s: the parser does not say what it knows: %v", manifest, err)
		}
		for key := range strings.SplitSeq(known[1], ", ") {
			if !strings.Contains(page, "`"+key+"`") {
				t.Errorf("docs/manifest.md does not tell of %s, which can be in %s.", key, manifest)
			}
		}
	}
}

// TestEveryProgramIsDocumented finds programs with settings of which no page has the table that their own test holds.
func TestEveryProgramIsDocumented(t *testing.T) {
	mains, err := filepath.Glob("cmd/*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("found no program in cmd: %v", err)
	}
	var all strings.Builder
	for _, text := range docPages(t) {
		all.WriteString(text)
	}
	for _, name := range mains {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), `"`+house+`/kit/env"`) {
			continue
		}
		program := path.Base(path.Dir(name))
		if !strings.Contains(all.String(), "<!-- configuration: "+program+" -->\n") || !hasTest(path.Dir(name), "TestConfigurationReference") {
			t.Errorf("No page in docs has the settings of %s, held by a TestConfigurationReference in %s.", program, path.Dir(name))
		}
	}
}

var docLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestDocsLinks follows the links between pages, to the headings too.
func TestDocsLinks(t *testing.T) {
	pages := docPages(t)
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "samples/README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages["../"+name] = string(text)
	}
	for name, text := range pages {
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			file, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			target := path.Join("docs", path.Dir(name), file)
			if file == "" {
				target = path.Join("docs", name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("docs/%s leads to %s, which is not there.", name, m[1])
			} else if heading != "" && !hasHeading(t, target, heading) {
				t.Errorf("docs/%s leads to the heading %s, which is not there.", name, m[1])
			}
		}
	}
}

var docMarks = regexp.MustCompile("[^a-z0-9 _-]")

// hasHeading tells whether a page has a heading that is written so in links: in small letters, without marks, and - for a blank.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if heading, found := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " "); found && strings.HasPrefix(line, "#") {
			if strings.ReplaceAll(docMarks.ReplaceAllString(strings.ToLower(heading), ""), " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}
