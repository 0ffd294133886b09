// Package e2e_test tries a whole Proa as its users do: each file in testdata is a session with the command, followed by the files
// it needs. What a session claims about a running app it takes from the cluster, not from what Proa says of itself.
package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestSessions runs sessions beside each other. What they were shown of passwords must be in no log.
func TestSessions(t *testing.T) {
	sessions(t, "testdata")
	t.Cleanup(func() { searchLogs(t) }) // when all of them have ended
}

// TestSessionsAlone runs those that take something away from all others.
func TestSessionsAlone(t *testing.T) { sessions(t, "testdata/alone") }

// sessions runs those of a directory. Each has its own home, organization ($ORG) and name of an app ($APP), and logs in as the
// administrator of the platform at $API. The sample apps are in $SAMPLES: a session copies the one it is about.
func sessions(t *testing.T, dir string) {
	t.Helper()
	if os.Getenv("PROA_TEST_E2E") == "" {
		t.Skip("needs a whole Proa: run make up, then . .run/env, then PROA_TEST_E2E=1 go test ./e2e")
	}
	for _, name := range []string{"PROA_API_URL", "PROA_ADMIN_USERNAME", "PROA_ADMIN_PASSWORD", "KUBECONFIG"} {
		if os.Getenv(name) == "" {
			t.Fatalf("%s is not set: run make up, then . .run/env", name)
		}
	}
	for _, program := range []string{"proa", "kubectl", "curl", "go", "javac", "jar", "zip", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not on the PATH: install it, or take what make up has built into your shell with . .run/env", program)
		}
	}
	build := goSettings(t)
	samples, err := filepath.Abs("../samples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:  dir,
		Cmds: scriptCommands(),
		Setup: func(e *testscript.Env) error {
			id := strings.ToLower(rand.Text()[:8])
			for name, value := range map[string]string{
				"PROA_HOME": filepath.Join(e.WorkDir, ".proa"), "API": os.Getenv("PROA_API_URL"),
				"PROA_USERNAME": os.Getenv("PROA_ADMIN_USERNAME"), "PROA_PASSWORD": os.Getenv("PROA_ADMIN_PASSWORD"),
				"ORG": "e2e-" + id, "APP": "app-" + id, "DOMAIN": os.Getenv("PROA_APPS_DOMAIN"), "GATEWAY": os.Getenv("PROA_GATEWAY_HTTP"),
				"TCP_DOMAIN": os.Getenv("PROA_TCP_DOMAIN"), "GATEWAY_HOST": host(os.Getenv("PROA_GATEWAY_HTTP")),
				"KUBECONFIG": os.Getenv("KUBECONFIG"), "NO_PROXY": os.Getenv("NO_PROXY"),
				"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "SAMPLES": samples,
			} {
				e.Setenv(name, value)
			}
			for name, value := range build {
				e.Setenv(name, value)
			}
			e.Defer(func() {
				if err := deleteOrg(proaWith(e.Vars), e.Getenv("ORG")); err != nil {
					e.T().Log("The organization of this session stays: " + err.Error())
				}
			})
			return nil
		},
	})
}

// goSettings are where Go keeps what it has compiled and downloaded, and where it downloads from: sessions have no home of their own.
func goSettings(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB").Output()
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]string
	if err := json.Unmarshal(out, &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}

func host(address string) string {
	host, _, _ := strings.Cut(address, ":")
	return host
}

// A sessionCommand is what a session can say beside the words of testscript itself.
type sessionCommand func(ts *testscript.TestScript, args []string) error

func sessionCommands() map[string]sessionCommand {
	return map[string]sessionCommand{
		// proa ARGUMENT... runs the command.
		"proa": func(ts *testscript.TestScript, args []string) error { return ts.Exec("proa", args...) },
		// kube ARGUMENT... runs kubectl in the namespace of the session's space.
		"kube": kube,
		// inside TYPE PROGRAM ARGUMENT... runs a program in the container of the first instance of a process.
		"inside": inside,
		// restarted TYPE waits until the first instance of a process is another one than inside was in last, and ready.
		"restarted": restarted,
		// keep NAME makes what was printed last a variable.
		"keep": func(ts *testscript.TestScript, args []string) error {
			ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
			return nil
		},
		// secret INSTANCE KEY NAME reads a key of a database; hidden says that no such key was printed.
		"secret": secret, "hidden": hidden,
		// postgres N takes the database away and brings it back, N times.
		"postgres": postgres,
		// mail ADDRESS PATTERN waits for a mail to an address that matches, and prints it as its reader sees it.
		"mail": awaitMail,
		// mails ADDRESS PATTERN prints how many such mails there are.
		"mails": countMails,
		// below LOWER UPPER compares two numbers.
		"below": below,
	}
}

func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){}
	for name, run := range sessionCommands() {
		all[name] = script(name, run)
	}
	all["await"] = script("await", await)
	return all
}

func script(name string, run sessionCommand) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, not bool, args []string) {
		switch err := run(ts, args); {
		case err != nil && !not:
			ts.Fatalf("%s: %v", name, err)
		case err == nil && not:
			ts.Fatalf("%s succeeded, and should not have", name)
		}
	}
}

const patience = 2 * time.Minute

// await PATTERN COMMAND ARGUMENT... repeats a command until it succeeds and prints what matches.
func await(ts *testscript.TestScript, args []string) error {
	pattern, err := regexp.Compile("(?m)" + args[0])
	if err != nil {
		return err
	}
	run, found := sessionCommands()[args[1]]
	if !found {
		run = func(ts *testscript.TestScript, rest []string) error { return ts.Exec(args[1], rest...) }
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
		err := run(ts, args[2:])
		if err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("%q was not printed within %s", args[0], patience), err)
		}
	}
}

func kube(ts *testscript.TestScript, args []string) error {
	if ts.Getenv("NAMESPACE") == "" {
		if err := findNamespace(ts); err != nil {
			return err
		}
	}
	return ts.Exec("kubectl", append([]string{"--namespace", ts.Getenv("NAMESPACE")}, args...)...)
}

// findNamespace looks for the mark of the space that is targeted: the name of its namespace is nobody else's business.
func findNamespace(ts *testscript.TestScript) error {
	if err := ts.Exec("proa", "target", "--output", "json"); err != nil {
		return err
	}
	var target struct{ Space struct{ GUID string } }
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &target); err != nil {
		return err
	}
	if target.Space.GUID == "" {
		return errors.New("no space is targeted")
	}
	if err := ts.Exec("kubectl", "get", "namespaces", "-l", "proa.dev/space="+target.Space.GUID, "-o", "jsonpath={.items[*].metadata.name}"); err != nil {
		return err
	}
	name := strings.TrimSpace(ts.ReadFile("stdout"))
	if name == "" {
		return errors.New("the space has no namespace")
	}
	ts.Setenv("NAMESPACE", name)
	return nil
}

// living are the pods that are not about to go: name, uid, and whether they are ready.
const living = "go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{.metadata.uid}} " +
	"{{range .status.conditions}}{{if eq .type \"Ready\"}}{{.status}}{{end}}{{end}}\n{{end}}{{end}}"

// firstPod finds the pod of the first instance of a process.
func firstPod(ts *testscript.TestScript, kind string) (name, uid string, ready bool, err error) {
	if err := kube(ts, []string{"get", "pods", "-l", "proa.dev/type=" + kind + ",apps.kubernetes.io/pod-index=0", "-o", living}); err != nil {
		return "", "", false, err
	}
	pods := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	pod := append(strings.Fields(pods[0]), "", "")
	if len(pods) != 1 || pods[0] == "" {
		return "", "", false, fmt.Errorf("there are %q of the first instance of %s, not one pod", pods, kind)
	}
	return pod[0], pod[1], pod[2] == "True", nil
}

func restarted(ts *testscript.TestScript, args []string) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
		_, uid, ready, err := firstPod(ts, args[0])
		if err == nil && ready && uid != ts.Getenv("INSIDE_"+args[0]) {
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("the instance was not started again within %s", patience), err)
		}
	}
}

func inside(ts *testscript.TestScript, args []string) error {
	pod, uid, _, err := firstPod(ts, args[0])
	if err != nil {
		return err
	}
	ts.Setenv("INSIDE_"+args[0], uid)
	return kube(ts, append([]string{"exec", pod, "--"}, args[1:]...))
}

func postgres(ts *testscript.TestScript, args []string) error {
	times, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range times {
		time.Sleep(2 * time.Second) // work goes on in between: that is what is to be interrupted
		for _, action := range []string{"stop", "start"} {
			if out, err := exec.Command("../engines/postgres/run.sh", action, "dev").CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			ts.Logf("PostgreSQL: %s", action)
		}
	}
	return nil
}

func below(_ *testscript.TestScript, args []string) error {
	var n [2]int
	for i := range n {
		if _, err := fmt.Sscan(args[i], &n[i]); err != nil {
			return err
		}
	}
	if n[0] >= n[1] {
		return fmt.Errorf("%d is not below %d", n[0], n[1])
	}
	return nil
}

// proaWith runs the command when the session is over.
func proaWith(env []string) func(args ...string) ([]byte, error) {
	return func(args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "proa", args...)
		cmd.Env = env
		return cmd.Output()
	}
}

// deleteOrg deletes an organization and everything in it. If there is none, a session has done so itself.
func deleteOrg(run func(args ...string) ([]byte, error), name string) error {
	reply, err := run("curl", "--fail", "/v3/organizations?names="+url.QueryEscape(name))
	if err != nil {
		return err
	}
	var orgs struct{ Resources []struct{ GUID string } }
	if err := json.Unmarshal(reply, &orgs); err != nil {
		return err
	}
	for _, org := range orgs.Resources {
		if reply, err := run("curl", "--fail", "-X", "DELETE", "/v3/organizations/"+org.GUID); err != nil {
			return fmt.Errorf("%w: %s", err, reply)
		}
	}
	return nil
}
