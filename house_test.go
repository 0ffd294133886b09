// Package house_test keeps the house in order: who may import whom, and that the map in ARCHITECTURE.md, the tree and
// the records in docs/decisions say the same. A rule that matters is a test with its reason.
package house_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const house = "github.com/proa-dev/proa"

// A rule forbids files in some rooms to use some packages. In its lists `*` stands for one step of a path and `...`
// for any number of them; our own packages begin with `./`.
type rule struct {
	in       []string // the rooms it holds in; none means the whole house
	notIn    []string // the rooms it does not hold in
	no       []string // what may not be used there
	but      []string // what may be used after all
	alsoTest bool     // test files are held to it too
	why      string
	breach   use // an invented breach: proof that the row can fail
}

// A use is one package that one file imports, or a call that counts as one (time.Now).
type use struct{ file, what string }

var sqlEngine = []string{"github.com/jackc/...", "github.com/pressly/goose/...", "database/sql/..."}

var rules = []rule{
	{
		in: []string{"kit/..."}, no: []string{"./..."}, but: []string{"./kit/..."}, alsoTest: true,
		why:    "the foundation has no product noun: it never imports a product",
		breach: use{"kit/web/server.go", "./auth"},
	},
	{
		in: []string{"auth/..."}, no: []string{"./..."}, but: []string{"./auth/...", "./kit/...", "./platform/v3"}, alsoTest: true,
		why:    "products meet over HTTP: of another product only its protocol may be imported",
		breach: use{"auth/api/user.go", "./platform/store"},
	},
	{
		in: []string{"notify/..."}, no: []string{"./..."}, but: []string{"./notify/...", "./kit/...", "./platform/v3", "./auth/uaa"}, alsoTest: true,
		why:    "products meet over HTTP: of another product only its protocol may be imported",
		breach: use{"notify/directory/users.go", "./auth/store"},
	},
	{
		in: []string{"platform/..."}, no: []string{"./..."}, but: []string{"./platform/...", "./kit/...", "./auth/uaa", "./notify/v1"}, alsoTest: true,
		why:    "products meet over HTTP: of another product only its protocol may be imported",
		breach: use{"platform/api/app.go", "./notify"},
	},
	{
		in: []string{"brokers/..."}, no: []string{"./..."}, but: []string{"./brokers/...", "./kit/..."}, alsoTest: true,
		why:    "a broker meets the platform over the Open Service Broker API, as anybody's would",
		breach: use{"brokers/postgres/broker.go", "./platform"},
	},
	{
		notIn: []string{"brokers/..."}, no: []string{"code.cloudfoundry.org/brokerapi/..."}, alsoTest: true,
		why:    "the library for brokers serves brokers; the platform speaks to them in words of its own",
		breach: use{"platform/broker/broker.go", "code.cloudfoundry.org/brokerapi/v13/domain"},
	},
	{
		in: []string{"auth/uaa", "platform/v3", "notify/v1"}, no: []string{"./..."}, but: []string{"./kit/fault", "./kit/run", "./kit/env"},
		why:    "a protocol travels into other products and the command line: it brings nothing of its own product along",
		breach: use{"auth/uaa/client.go", "./auth/store"},
	},
	{
		in: []string{"cli/..."}, no: []string{"./..."}, alsoTest: true,
		but:    []string{"./cli/...", "./platform/v3", "./auth/uaa", "./notify/v1", "./kit/fault", "./kit/run", "./kit/env"},
		why:    "the command speaks the public protocols and links no SQL and no Kubernetes",
		breach: use{"cli/push.go", "./platform"},
	},
	{
		in: []string{"auth", "notify", "platform"}, no: []string{"./..."}, but: []string{"./kit/fault"},
		why:    "a domain knows its own rules and how to say no, nothing else of the house",
		breach: use{"auth/user.go", "./kit/pg"},
	},
	{
		in: []string{"auth", "notify", "platform"}, no: []string{"net", "net/http", "os/...", "database/sql/...", "log/..."},
		why:    "a domain does no I/O: rules are values in, values out",
		breach: use{"platform/app.go", "net/http"},
	},
	{
		in: []string{"auth", "notify", "platform"}, no: []string{"time.Now"},
		why:    "a domain is told the time, so that a test can say what time it is",
		breach: use{"auth/lockout.go", "time.Now"},
	},
	{
		notIn: []string{"cmd/...", "bench/...", "e2e/...", "*/api", "notify/api/contract"}, no: []string{"./*/api"},
		why:    "an api is the outermost room: only a main wires it (and bench and e2e drive it)",
		breach: use{"auth/grant/engine.go", "./auth/api"},
	},
	{
		notIn: []string{"kit/pg/...", "kit/queue", "*/store", "brokers/postgres", "bench/...", "e2e/..."}, no: sqlEngine,
		why:    "every SQL statement stands in a store, beside its scan (a test may look at rows itself)",
		breach: use{"cmd/auth/main.go", "github.com/jackc/pgx/v5"},
	},
	{
		in: []string{"*/store"}, no: []string{"net/http"},
		why:    "a store speaks SQL; HTTP is spoken at the door",
		breach: use{"auth/store/client.go", "net/http"},
	},
	{
		notIn: []string{"auth/grant"}, no: []string{"github.com/ory/..."}, alsoTest: true,
		why:    "the OAuth engine has one room, so that it can be read, upgraded or replaced in one place",
		breach: use{"auth/api/token.go", "github.com/ory/fosite"},
	},
	{
		notIn: []string{"kit/seal"}, no: []string{"github.com/tink-crypto/..."}, alsoTest: true,
		why:    "secrets at rest are sealed in one way; the others only know seal and open",
		breach: use{"auth/store/key.go", "github.com/tink-crypto/tink-go/v2/aead"},
	},
	{
		notIn: []string{"cmd/sftp"}, no: []string{"github.com/pkg/sftp/..."}, alsoTest: true,
		why:    "files of tenants are touched by a program in their container, never by a server of ours",
		breach: use{"platform/ssh/session.go", "github.com/pkg/sftp"},
	},
	{
		notIn: []string{"platform/kube"}, no: []string{"k8s.io/...", "sigs.k8s.io/..."}, alsoTest: true,
		why:    "Kubernetes is output: one room writes and observes it",
		breach: use{"platform/controller/loop.go", "k8s.io/api/core/v1"},
	},
	{
		notIn: []string{"kit/queue", "*/store", "*/work", "*/deliver", "bench/...", "e2e/..."}, no: []string{"github.com/riverqueue/..."},
		why:    "jobs are queued in the transaction of their rows (store, through kit/queue) and worked in work and deliver",
		breach: use{"notify/api/send.go", "github.com/riverqueue/river"},
	},
	{
		in: []string{"platform/launch"}, no: []string{"*.*/..."}, but: []string{"time.Now"}, alsoTest: true, // a dot in the first step: not the standard library
		why:    "pid 1 of every app container uses the standard library only",
		breach: use{"platform/launch/main.go", "./kit/run"},
	},
	{
		in: []string{"cmd/launcher"}, no: []string{"*.*/..."}, but: []string{"./platform/launch", "time.Now"}, alsoTest: true,
		why:    "pid 1 of every app container uses the standard library only, and its main adds nothing to it",
		breach: use{"cmd/launcher/main.go", "./kit/env"},
	},
	{
		notIn: []string{"kit/pg/pgtest", "kit/env/envtest", "notify/api/contract", "bench/...", "e2e/..."}, no: []string{"./kit/pg/pgtest", "./kit/env/envtest", "./notify/api/contract", "./notify/deliver/smtptest", "./platform/broker/brokertest", "testing"},
		why:    "what helps tests is not linked into a program",
		breach: use{"auth/store/store.go", "./kit/pg/pgtest"},
	},
	{
		no:       []string{"gorm.io/...", "entgo.io/...", "go.uber.org/fx", "go.uber.org/mock/...", "github.com/golang/mock/...", "github.com/google/wire", "github.com/stretchr/..."},
		alsoTest: true,
		why:      "SQL by hand, struct literals, real neighbours: no ORM, no container, no mocks, no assertion language",
		breach:   use{"auth/api/user_test.go", "github.com/stretchr/testify/require"},
	},
}

func TestImports(t *testing.T) {
	uses := readUses(t, os.DirFS("."))
	if len(uses) == 0 {
		t.Fatal("found no Go file; run this test in the root of the checkout")
	}
	for _, b := range breaches(uses) {
		t.Error(b)
	}
}

// TestImportRulesCanFail breaks each rule once.
func TestImportRulesCanFail(t *testing.T) {
	for _, r := range rules {
		found := breaches([]use{r.breach})
		if !slices.ContainsFunc(found, func(s string) bool {
			return strings.Contains(s, r.breach.file) && strings.Contains(s, r.breach.what) && strings.Contains(s, r.why)
		}) {
			t.Errorf("%s may use %s, against the rule %q: the rule never fails", r.breach.file, r.breach.what, r.why)
		}
	}
	allowed := []use{
		{"auth/store/client.go", "github.com/jackc/pgx/v5"},
		{"brokers/postgres/server.go", "github.com/jackc/pgx/v5"},
		{"brokers/postgres/broker.go", "code.cloudfoundry.org/brokerapi/v13/domain"},
		{"auth/api/user_test.go", "./kit/pg/pgtest"},
		{"cmd/auth/main.go", "./auth/api"},
		{"kit/web/server.go", "./kit/fault"},
		{"platform/launch/main.go", "os/exec"},
		{"platform/launch/main.go", "time.Now"},
		{"cmd/launcher/main.go", "./platform/launch"},
		{"cli/notify.go", "./notify/v1"},
		{"platform/work/tell.go", "./notify/v1"},
	}
	for _, b := range breaches(allowed) {
		t.Errorf("a rule forbids what is meant to be allowed: %s", b)
	}
}

// breaches says, in one sentence each, which uses break which rule.
func breaches(uses []use) []string {
	var found []string
	for _, u := range uses {
		for _, r := range rules {
			if r.forbids(u) {
				found = append(found, fmt.Sprintf("%s uses %s, but %s.", u.file, u.what, r.why))
			}
		}
	}
	return found
}

func (r rule) forbids(u use) bool {
	room := path.Dir(u.file)
	if strings.HasSuffix(u.file, "_test.go") && !r.alsoTest {
		return false
	}
	return (len(r.in) == 0 || matchAny(r.in, room)) && !matchAny(r.notIn, room) &&
		matchAny(r.no, u.what) && !matchAny(r.but, u.what) && u.what != "./"+room
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, name) })
}

func match(pattern, name string) bool {
	if start, deep := strings.CutSuffix(pattern, "/..."); deep {
		steps := strings.Split(name, "/")
		pattern, name = start, strings.Join(steps[:min(len(steps), strings.Count(start, "/")+1)], "/")
	}
	ok, err := path.Match(pattern, name)
	if err != nil {
		panic(fmt.Sprintf("pattern %q: %v", pattern, err))
	}
	return ok
}

// readUses reads what each Go file of this module imports, and whether it asks for the time.
func readUses(t *testing.T, tree fs.FS) []use {
	t.Helper()
	var uses []use
	for _, name := range goFiles(t, tree) {
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			what := strings.Trim(spec.Path.Value, `"`)
			if rest, ours := strings.CutPrefix(what, house+"/"); ours {
				what = "./" + rest
			}
			uses = append(uses, use{name, what})
		}
		if asksTime(file) {
			uses = append(uses, use{name, "time.Now"})
		}
	}
	return uses
}

func asksTime(file *ast.File) bool {
	asks := false
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
				asks = true
			}
		}
		return !asks
	})
	return asks
}

// goFiles lists the Go files of this module: not those of test data, of modules of their own, or of hidden directories.
func goFiles(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			_, statErr := fs.Stat(tree, name+"/go.mod")
			if statErr == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
		}
		if !d.IsDir() && path.Ext(name) == ".go" {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestMap(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range mapDifferences(t, string(page), os.DirFS(".")) {
		t.Error(d)
	}
}

func TestMapCanFail(t *testing.T) {
	page := "# A house\n\n```\nREADME.md\nattic/   old things\n  box/   one of them\nhall/\n```\n"
	root := t.TempDir()
	for _, name := range []string{"README.md", "hall/door.go", "cellar/wine.txt", "hall/stairs/step.go", "bin/built", ".git/HEAD"} {
		if err := os.MkdirAll(path.Join(root, path.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path.Join(root, name), []byte("package hall\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := mapDifferences(t, page, os.DirFS(root))
	want := []string{"attic", "attic/box", "cellar", "hall/stairs"}
	if len(got) != len(want) {
		t.Fatalf("got %d differences, want %d: %q", len(got), len(want), got)
	}
	for i, room := range want {
		if !strings.Contains(got[i], room+" ") {
			t.Errorf("difference %d is %q, want one about %s", i, got[i], room)
		}
	}
}

// mapDifferences compares the map with the tree, both ways. Rooms that need a place on the map are the directories at
// the top and those that hold Go files.
func mapDifferences(t *testing.T, page string, tree fs.FS) []string {
	t.Helper()
	var differences []string
	mapped := readMap(t, page)
	for _, name := range mapped {
		if _, err := fs.Stat(tree, name); err != nil {
			differences = append(differences, fmt.Sprintf("%s is on the map in ARCHITECTURE.md but not in the tree: take it off the map.", name))
		}
	}
	var rooms []string
	top, err := fs.ReadDir(tree, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range top {
		if d.IsDir() && d.Name() != "bin" && !strings.HasPrefix(d.Name(), ".") {
			rooms = append(rooms, d.Name())
		}
	}
	for _, file := range goFiles(t, tree) {
		rooms = append(rooms, path.Dir(file))
	}
	slices.Sort(rooms)
	for _, room := range slices.Compact(rooms) {
		if room != "." && !slices.Contains(mapped, room) {
			differences = append(differences, fmt.Sprintf("%s is in the tree but not on the map in ARCHITECTURE.md: say there what it holds.", room))
		}
	}
	return differences
}

var mapLine = regexp.MustCompile(`^( *)([\w./-]+)( .*)?$`)

// readMap reads the first fenced block: one name a line, two spaces deeper for what is inside, a slash after a room.
func readMap(t *testing.T, page string) []string {
	t.Helper()
	_, rest, _ := strings.Cut(page, "\n```")
	_, rest, _ = strings.Cut(rest, "\n")
	block, _, found := strings.Cut(rest, "\n```")
	if !found {
		t.Fatal("ARCHITECTURE.md has no fenced block with the map")
	}
	var names, above []string
	for line := range strings.Lines(block) {
		m := mapLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			t.Fatalf("ARCHITECTURE.md: cannot read this line of the map: %q", line)
		}
		depth := len(m[1]) / 2
		if depth > len(above) {
			t.Fatalf("ARCHITECTURE.md: this line of the map is indented too deep: %q", line)
		}
		name := path.Join(path.Join(above[:depth]...), m[2])
		above = append(above[:depth], m[2])
		names = append(names, name)
	}
	return names
}

// TestDecisions holds go.mod against docs/decisions: a dependency is admitted with a record of why.
func TestDecisions(t *testing.T) {
	var records strings.Builder
	names, err := fs.Glob(os.DirFS("docs/decisions"), "[0-9]*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("found no record in docs/decisions: %v", err)
	}
	index, err := os.ReadFile("docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		record, err := os.ReadFile(path.Join("docs/decisions", name))
		if err != nil {
			t.Fatal(err)
		}
		records.Write(record)
		if !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/decisions/%s is not in the index: add a line to docs/decisions/README.md.", name)
		}
	}
	for module, indirect := range requirements(t) {
		if !indirect && !strings.Contains(records.String(), "`"+module+"`") {
			t.Errorf("go.mod requires %s, but no record in docs/decisions names it: write down why, and what was passed over.", module)
		}
	}
}

// TestRequirements holds go.mod against the imports, as `go mod tidy -diff` would, but without downloading what only the
// tests of our dependencies need.
func TestRequirements(t *testing.T) {
	requires, used := requirements(t), map[string]bool{}
	for _, u := range readUses(t, os.DirFS(".")) {
		if !match("*.*/...", u.what) || match("./...", u.what) || u.what == "time.Now" {
			continue
		}
		module := u.what
		for module != "." {
			if _, found := requires[module]; found {
				break
			}
			module = path.Dir(module)
		}
		used[module] = true
		if requires[module] {
			t.Errorf("%s imports %s, but go.mod calls %s indirect: run go mod tidy.", u.file, u.what, module)
		}
	}
	for module, indirect := range requires {
		if !indirect && !used[module] {
			t.Errorf("go.mod requires %s, but nothing here imports it: run go mod tidy.", module)
		}
	}
}

// requirements tells of each module in go.mod whether only others need it.
func requirements(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	indirect := map[string]bool{}
	for _, r := range mod.Require {
		indirect[r.Path] = r.Indirect
	}
	return indirect
}
