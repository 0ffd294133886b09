package env_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/env"
)

type Listen struct {
	Addr string `env:"T_ADDR" default:":8080" help:"Address to listen on."`
}

type config struct {
	Listen
	Database env.Secret     `env:"T_DATABASE" required:"true" help:"Where records are kept."`
	Pepper   env.Secret     `env:"T_PEPPER" default:"not-so-secret" help:"Added to passwords."`
	Debug    bool           `env:"T_DEBUG" help:"Say more."`
	Workers  int            `env:"T_WORKERS" default:"4" help:"Workers | threads."`
	Rows     int64          `env:"T_ROWS" help:"Rows of a page."`
	Level    slog.Level     `env:"T_LEVEL" default:"info" help:"Least level that is logged."`
	Trusted  []netip.Prefix `env:"T_TRUSTED" default:"127.0.0.0/8" help:"Proxies whose headers count."`
	Limits   struct {
		Grace time.Duration `env:"T_GRACE" default:"10s" help:"Time to end."`
		Body  env.Bytes     `env:"T_BODY" default:"1MiB" help:"Largest body."`
		Names []string      `env:"T_NAMES" help:"Names."`
		URL   *url.URL      `env:"T_URL" help:"Where it is reached."`
	}
}

func from(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestLoadReadsEveryType(t *testing.T) {
	var got config
	err := env.Load(&got, from(map[string]string{
		"T_DATABASE": "postgres://u:p@h/db",
		"T_DEBUG":    "true",
		"T_WORKERS":  " 9 ",
		"T_ROWS":     "5000000000",
		"T_LEVEL":    "warn",
		"T_TRUSTED":  "10.1.2.3/8, 192.0.2.7,::1",
		"T_GRACE":    "1m30s",
		"T_BODY":     "10MB",
		"T_NAMES":    "a, b ,,c",
		"T_URL":      "https://auth.example.com/x",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := config{
		Listen: Listen{Addr: ":8080"}, Database: "postgres://u:p@h/db", Pepper: "not-so-secret",
		Debug: true, Workers: 9, Rows: 5_000_000_000, Level: slog.LevelWarn,
		Trusted: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("::1/128"),
		},
	}
	want.Limits.Grace, want.Limits.Body, want.Limits.Names = 90*time.Second, 10_000_000, []string{"a", "b", "c"}
	want.Limits.URL = &url.URL{Scheme: "https", Host: "auth.example.com", Path: "/x"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLoadReportsEveryProblemOnce(t *testing.T) {
	var c config
	err := env.Load(&c, from(map[string]string{
		"T_DEBUG":       "perhaps",
		"T_WORKERS":     "many",
		"T_LEVEL":       "loud",
		"T_TRUSTED":     "10.0.0.0/99",
		"T_GRACE":       "5",
		"T_BODY":        "10 parsecs",
		"T_URL":         "user:hunter2@host",
		"T_PEPPER":      "hunter2",
		"T_PEPPER_FILE": "/hunter2",
	}))
	want := strings.Join([]string{
		`T_DATABASE is required: set it to a text`,
		`T_PEPPER and T_PEPPER_FILE are both set: set only one of them`,
		`T_DEBUG must be true or false, not "perhaps"`,
		`T_WORKERS must be a whole number, not "many"`,
		`T_LEVEL must be a valid slog.Level, not "loud"`,
		`T_TRUSTED must be a list of networks separated by commas, such as 10.0.0.0/8,::1/128, not "10.0.0.0/99"`,
		`T_GRACE must be a duration such as 30s or 5m, not "5"`,
		`T_BODY must be a size such as 10MB or 64KiB, not "10 parsecs"`,
		`T_URL must be a full URL such as https://auth.example.com`,
	}, "\n")
	if fmt.Sprint(err) != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestLoadFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var c config
	err := env.Load(&c, from(map[string]string{"T_DATABASE_FILE": write("db", " with spaces \r\n")}))
	if err != nil || c.Database.Reveal() != " with spaces " {
		t.Errorf("got %q, %v", c.Database.Reveal(), err)
	}

	err = env.Load(&c, from(map[string]string{
		"T_DATABASE_FILE": filepath.Join(dir, "absent"),
		"T_PEPPER_FILE":   write("empty", "\n"),
		"T_WORKERS_FILE":  write("workers", "hunter2\n"),
	}))
	text := fmt.Sprint(err)
	for _, want := range []string{
		"T_DATABASE_FILE must name a file that can be read",
		"T_PEPPER_FILE must name a file that is not empty",
		"T_WORKERS must be a whole number",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("the content of a file is shown: %s", text)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]env.Bytes{
		"512": 512, "7B": 7, "10MB": 10e6, "64KiB": 65536, "2 gib": 2 << 30, "1TB": 1e12, "0": 0,
	} {
		var c struct {
			Size env.Bytes `env:"SIZE"`
		}
		if err := env.Load(&c, from(map[string]string{"SIZE": text})); err != nil || c.Size != want {
			t.Errorf("%q: got %d, %v, want %d", text, c.Size, err, want)
		}
	}
	for _, text := range []string{"MB", "-1MB", "1.5MB", "1XB", "9999999TB", "1MM"} {
		var c struct {
			Size env.Bytes `env:"SIZE"`
		}
		if err := env.Load(&c, from(map[string]string{"SIZE": text})); err == nil {
			t.Errorf("%q was read as %d", text, c.Size)
		}
	}
}

func TestProgramMistakesPanic(t *testing.T) {
	for name, dst := range map[string]any{
		"not a pointer": struct{}{},
		"unsupported": &struct {
			A float64 `env:"A"`
		}{},
		"twice": &struct {
			A string `env:"A"`
			B string `env:"A"`
		}{},
		"clash with a file": &struct {
			A string `env:"A"`
			B string `env:"A_FILE"`
		}{},
		"unexported": &struct {
			a string `env:"A"`
		}{},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			_ = env.Load(dst, from(nil))
		})
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	s := env.Secret("hunter2")
	holder := struct{ Password env.Secret }{s}
	var out bytes.Buffer
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%d", "%t"} {
		fmt.Fprintf(&out, verb+" "+verb+"\n", s, holder)
	}
	if err := json.NewEncoder(&out).Encode(holder); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "s", s, "holder", holder)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "s", s, "holder", holder)
	if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), fmt.Sprintf("%x", "hunter2")) {
		t.Error(out.String())
	}
	if s.Reveal() != "hunter2" {
		t.Errorf("Reveal gave %q", s.Reveal())
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	env.Help(&out, &config{})
	want := `NAME        DEFAULT      MEANING
T_ADDR      :8080        Address to listen on.
T_DATABASE  required     Where records are kept.
T_PEPPER    [secret]     Added to passwords.
T_DEBUG     -            Say more.
T_WORKERS   4            Workers | threads.
T_ROWS      -            Rows of a page.
T_LEVEL     info         Least level that is logged.
T_TRUSTED   127.0.0.0/8  Proxies whose headers count.
T_GRACE     10s          Time to end.
T_BODY      1MiB         Largest body.
T_NAMES     -            Names.
T_URL       -            Where it is reached.

Any variable NAME can be given as NAME_FILE, the path of a file that holds the value.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	env.Markdown(&out, &config{})
	for _, line := range []string{
		"| Variable | Default | Meaning |\n|---|---|---|\n",
		"| `T_DATABASE` | required | Where records are kept. |\n",
		"| `T_PEPPER` | `[secret]` | Added to passwords. |\n",
		"| `T_DEBUG` |  | Say more. |\n",
		"| `T_WORKERS` | `4` | Workers \\| threads. |\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, out.String())
		}
	}
}
