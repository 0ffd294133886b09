package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// passwords are those of service keys that sessions were shown. Nobody else may be.
var passwords struct {
	sync.Mutex

	all []string
}

// secret INSTANCE KEY NAME reads a key of a database, and gives its parts to the session: NAME_URI, NAME_SERVER (without the database)
// and NAME_DATABASE.
func secret(ts *testscript.TestScript, args []string) error {
	if err := ts.Exec("proa", "service-key", args[0], args[1]); err != nil {
		return err
	}
	text := ts.ReadFile("stdout")
	var shown struct {
		Credentials struct{ Database, Password, URI string }
	}
	if err := json.Unmarshal([]byte(text[max(strings.Index(text, "{"), 0):]), &shown); err != nil {
		return fmt.Errorf("read the key: %w", err)
	}
	key := shown.Credentials
	server, _, whole := strings.Cut(key.URI, "/"+key.Database)
	if key.Password == "" || !whole {
		return fmt.Errorf("key %s of %s is not that of a database", args[1], args[0])
	}
	passwords.Lock()
	defer passwords.Unlock()
	passwords.all = append(passwords.all, key.Password)
	for name, value := range map[string]string{"_URI": key.URI, "_SERVER": server, "_DATABASE": key.Database} {
		ts.Setenv(args[2]+name, value)
	}
	return nil
}

// hidden fails when a password of a key stands in what was printed last.
func hidden(ts *testscript.TestScript, _ []string) error {
	return withoutPasswords("what was printed", ts.ReadFile("stdout")+ts.ReadFile("stderr"))
}

func withoutPasswords(what, text string) error {
	passwords.Lock()
	defer passwords.Unlock()
	if len(passwords.all) == 0 {
		return fmt.Errorf("no key was read, so there is nothing to look for in %s", what)
	}
	for _, p := range passwords.all {
		if at := strings.Index(text, p); at >= 0 {
			return fmt.Errorf("a password stands in %s, after %q", what, text[max(at-80, 0):at])
		}
	}
	return nil
}

// searchLogs looks for the passwords in everything that the parts of this Proa have logged.
func searchLogs(t *testing.T) {
	t.Helper()
	if len(passwords.all) == 0 {
		t.Log("No session that ran has read a key, so the logs were not searched for any.")
		return
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("PROA_LOG_DIR"), "*.log*"))
	if err != nil || os.Getenv("PROA_LOG_DIR") == "" || len(files) == 0 {
		t.Errorf("there are no logs to look for passwords in: PROA_LOG_DIR is %q. Run make up again, then . .run/env", os.Getenv("PROA_LOG_DIR"))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = withoutPasswords(filepath.Base(file), string(text))
		}
		if err != nil {
			t.Error(err)
		}
	}
}
