package kube

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
)

// crashNode answers for a container that is being replaced: each of its two logs is there, or is not.
type crashNode struct{ current, before string }

func (n crashNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := n.current
	switch {
	case !strings.HasSuffix(r.URL.Path, "/log"):
		w.Header().Set("Content-Type", "application/json")
		answer = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"r-0","uid":"u"}}`
	case r.URL.Query().Get("previous") == "true":
		answer = n.before
	}
	if answer == "" {
		http.Error(w, "previous terminated container not found", http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, answer)
}

func TestTailOfAContainerThatIsReplaced(t *testing.T) {
	exit := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const noLog = "unable to retrieve container logs for containerd://1\n"
	said := exit.Add(-time.Second).Format(time.RFC3339Nano) + " last words\n"
	later := exit.Add(time.Hour).Format(time.RFC3339Nano) + " of the next run\n"
	for _, c := range []struct {
		name            string
		current, before string
		run             string
		want            string
		fails           bool
	}{
		{"it is there", said, "", "1", "last words", false},
		{"it has gone to the one before", noLog, said, "1", "last words", false},
		{"it was started again", later, said, "1", "last words", false},
		{"it has not come there yet", said, noLog, "2", "last words", false},
		{"the next run goes on", later, said, "2", "last words", false},
		{"it said nothing", later, "", "2", "", false},
		{"neither is there", noLog, noLog, "1", "", true},
		{"neither is there, of the one before", noLog, "", "1", "", true},
	} {
		r := platform.Release{GUID: "r", AppGUID: "a", ProcessType: "web", Namespace: "space"}
		i := platform.Instance{Pod: "r-0", PodUID: "u", Run: c.run, LastExit: &platform.Exit{ID: "1", Time: exit}}
		lines, err := connect(t, crashNode{c.current, c.before}).Tail(t.Context(), r, i)
		var got []string
		for _, l := range lines {
			got = append(got, l.Text)
		}
		if strings.Join(got, ",") != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %s %v", c.name, fmt.Sprint(got), err)
		}
	}
}
