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
)

// TestCoverage holds docs/coverage.md against the tree: each row is whole and in its place, and each test that it names is there.
func TestCoverage(t *testing.T) {
	page, err := os.ReadFile("docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, faults := readCoverage(string(page), hasTest)
	if len(rows) < 100 {
		t.Errorf("docs/coverage.md has only %d rows: the specifications ask for more.", len(rows))
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// TestSessionsCover finds sessions that no row names: what was worth a session was asked for, or is named among what is shown beside it.
func TestSessionsCover(t *testing.T) {
	page, err := os.ReadFile("docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := filepath.Glob("e2e/testdata/*.txtar")
	if err != nil || len(sessions) == 0 {
		t.Fatalf("found no session in e2e/testdata: %v", err)
	}
	for _, s := range sessions {
		if !strings.Contains(string(page), "`"+path.Base(s)+"`") {
			t.Errorf("%s is in no row of docs/coverage.md: name it beside what it shows.", s)
		}
	}
}

var (
	coverageSection = regexp.MustCompile(`^### (\d\.\d+) \S`)
	coverageRow     = regexp.MustCompile(`^\| (\d\.\d+)\.(\d+) \| (.+?) \| (.*?) ?\| (.+) \|$`)
	coverageProof   = regexp.MustCompile("^`(?:([a-z0-9/-]+) (Test[A-Za-z0-9_]+)|([a-z-]+\\.txtar))`$")
)

// readCoverage gives the numbers of the rows, and says in a sentence each what is wrong with the page.
func readCoverage(page string, has func(room, test string) bool) (rows, faults []string) {
	section, last := "", 0
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if m := coverageSection.FindStringSubmatch(line); m != nil {
			section, last = m[1], 0
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| # |") {
			continue
		}
		m := coverageRow.FindStringSubmatch(line)
		if m == nil {
			faults = append(faults, fmt.Sprintf("docs/coverage.md: this is no row of a number, what is asked, an answer and what shows it: %s", line))
			continue
		}
		row, asked, answer := m[1]+"."+m[2], m[3], m[4]
		if last++; m[1] != section || m[2] != fmt.Sprint(last) {
			faults = append(faults, fmt.Sprintf("docs/coverage.md: row %s should be %s.%d.", row, section, last))
		}
		if strings.Contains(strings.ToLower(asked), "not shown") && strings.TrimSpace(answer) == "" {
			faults = append(faults, fmt.Sprintf("docs/coverage.md: row %s does not say what was chosen.", row))
		}
		faults = append(faults, proofFaults(row, m[5], has)...)
		rows = append(rows, row)
	}
	return rows, faults
}

func proofFaults(row, shown string, has func(room, test string) bool) (faults []string) {
	if reason, found := strings.CutPrefix(shown, "not proven: "); found && len(reason) > 10 {
		return nil
	}
	for proof := range strings.SplitSeq(shown, ", ") {
		m := coverageProof.FindStringSubmatch(proof)
		switch {
		case m == nil:
			faults = append(faults, fmt.Sprintf("docs/coverage.md: row %s is shown by %q, which is neither a test nor a session, nor `not proven: ` with a reason.", row, proof))
		case !has(m[1], m[2]+m[3]):
			faults = append(faults, fmt.Sprintf("docs/coverage.md: row %s names %s, which is not there.", row, proof))
		}
	}
	return faults
}

// hasTest looks for a test function in a room, or, without one, for a session.
func hasTest(room, test string) bool {
	if room == "" {
		_, err := os.Stat(path.Join("e2e/testdata", test))
		return err == nil
	}
	files, err := filepath.Glob(room + "/*_test.go")
	return err == nil && slices.ContainsFunc(files, func(name string) bool {
		source, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(source), "\nfunc "+test+"(t *testing.T)")
	})
}

func TestCoverageCanFail(t *testing.T) {
	has := func(room, test string) bool { return room+" "+test == "auth TestLogin" || test == "crash.txtar" }
	for page, want := range map[string]string{
		"### 1.1 One\n| 1.1.1 | a | | `auth TestLogin`, `crash.txtar` |\n| 1.1.2 | b | c | not proven: nobody can try it |\n": "",
		"### 1.1 One\n| 1.1.1 | a | | `auth TestLogout` |\n":                                                                  "which is not there",
		"### 1.1 One\n| 1.1.1 | a | | `gone.txtar` |\n":                                                                       "which is not there",
		"### 1.1 One\n| 1.1.1 | a | | by eye |\n":                                                                             "neither a test nor a session",
		"### 1.1 One\n| 1.1.1 | a | | not proven: no |\n":                                                                     "neither a test nor a session",
		"### 1.1 One\n| 1.1.2 | a | | `crash.txtar` |\n":                                                                      "should be 1.1.1",
		"### 1.1 One\n| 1.2.1 | a | | `crash.txtar` |\n":                                                                      "should be 1.1.1",
		"### 1.1 One\n| 1.1.1 | *Not shown:* a | | `crash.txtar` |\n":                                                         "does not say what was chosen",
		"### 1.1 One\n| 1.1.1 | a | `crash.txtar` |\n":                                                                        "no row",
		"### 1.1 One\n| 1.1.1 | *Not shown:* a | b, c | `crash.txtar` |\n":                                                    "",
	} {
		_, faults := readCoverage(page, has)
		if got := strings.Join(faults, " "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", page, got, want)
		}
	}
}
