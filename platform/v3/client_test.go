package v3_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// serve gives a client of a server that answers so.
func serve(t *testing.T, answer http.HandlerFunc) *v3.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &v3.Client{URL: server.URL, HTTP: server.Client(), Poll: time.Millisecond}
}

func TestPagesAreFollowed(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		next := fmt.Sprintf(`{"href":"http://%s/v3/apps?page=2"}`, r.Host)
		if r.URL.Query().Get("page") == "2" {
			next = "null"
		}
		fmt.Fprintf(w, `{"pagination":{"next":%s},"resources":[{"guid":"%s-1"},{"guid":"%s-2"}]}`, next, r.URL.RawQuery, r.URL.RawQuery)
	})
	all, err := v3.All[v3.Ref](t.Context(), c, "/v3/apps?page=1")
	want := []v3.Ref{{GUID: "page=1-1"}, {GUID: "page=1-2"}, {GUID: "page=2-1"}, {GUID: "page=2-2"}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("got %v, %v", all, err)
	}
	first, err := v3.First[v3.Ref](t.Context(), c, "/v3/apps?page=1")
	if err != nil || first == nil || first.GUID != "page=1-1" {
		t.Errorf("got %v, %v", first, err)
	}
}

func TestTokenGoesNowhereElse(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other server was asked") }))
	defer other.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "bearer secret" {
			t.Errorf("authorization: %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("Location", other.URL+"/v3/jobs/1")
		fmt.Fprintf(w, `{"pagination":{"next":{"href":"%s/v3/apps"}},"resources":[]}`, other.URL)
	})
	c.Token = func(context.Context) (string, error) { return "secret", nil }
	if _, err := v3.All[v3.Ref](t.Context(), c, "/v3/apps"); err == nil || !strings.Contains(err.Error(), "leads away") {
		t.Errorf("a page elsewhere: %v", err)
	}
	job, err := c.Begin(t.Context(), http.MethodPost, "/v3/apps", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Finish(t.Context(), job); err == nil || !strings.Contains(err.Error(), "leads away") {
		t.Errorf("a job elsewhere: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for body, want := range map[string]struct {
		status  int
		kind    fault.Kind
		detail  string
		details int
	}{
		`{"errors":[{"code":10010,"title":"CF-ResourceNotFound","detail":"App not found"}]}`:                                           {404, fault.KindNotFound, "App not found", 0},
		`{"errors":[{"code":1,"title":"CF-UnprocessableEntity","detail":"one"},{"code":1,"title":"CF-Unprocessable","detail":"two"}]}`: {422, fault.KindUnprocessable, "one\ntwo", 2},
		`<html>`: {500, fault.KindInternal, "status 500", 0},
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(want.status)
			fmt.Fprint(w, body)
		})
		f := fault.From(c.Call(t.Context(), http.MethodGet, "/v3/apps", nil, nil))
		if f.Kind != want.kind || !strings.Contains(f.Detail, want.detail) || len(f.Details) != want.details {
			t.Errorf("%s became %+v", body, f)
		}
	}
}

func TestOnlyWhatCanBeRepeatedIs(t *testing.T) {
	for method, want := range map[string]int{http.MethodGet: 8, http.MethodPatch: 8, http.MethodPost: 1} {
		asked, bodies := 0, 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.ContentLength > 0 {
				bodies++
			}
			w.WriteHeader(http.StatusBadGateway)
		})
		var in any
		if method != http.MethodGet {
			in = map[string]string{"a": "b"}
		}
		err := c.Call(t.Context(), method, "/v3/apps", in, nil)
		if asked != want || !fault.Is(err, fault.KindUnavailable) || in != nil && bodies != want {
			t.Errorf("%s was sent %d times, %d with its body: %v", method, asked, bodies, err)
		}
	}
}

func TestJobsAndWarnings(t *testing.T) {
	looks := 0
	var warned []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Cf-Warnings", "mind+the%2C+gap,second")
		if r.Method == http.MethodDelete {
			w.Header().Set("Location", "http://"+r.Host+"/v3/jobs/1")
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if looks++; looks < 3 {
			fmt.Fprint(w, `{"guid":"1","state":"PROCESSING"}`)
			return
		}
		fmt.Fprint(w, `{"guid":"1","state":"FAILED","errors":[{"code":1,"title":"CF-X","detail":"It broke."}],"warnings":[{"detail":"third"}]}`)
	})
	c.Warn = func(text string) { warned = append(warned, text) }
	job, err := c.Begin(t.Context(), http.MethodDelete, "/v3/apps/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Finish(t.Context(), job)
	if !fault.Is(err, fault.KindUnprocessable) || err.Error() != "It broke." || looks != 3 {
		t.Errorf("after %d looks: %v", looks, err)
	}
	if want := []string{"mind the, gap", "second"}; len(warned) != 9 || !slices.Equal(warned[:2], want) || warned[8] != "third" {
		t.Errorf("warned %q", warned)
	}
	if err := c.Finish(t.Context(), ""); err != nil {
		t.Errorf("no job: %v", err)
	}
}

func TestFollowLeavesWhenItIsEnough(t *testing.T) {
	states := []string{"PROCESSING", "PROCESSING", "POLLING", "COMPLETE"}
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"state":%q}`, states[0])
		states = states[1:]
	})
	polls := func(j v3.Job) bool { return j.State == "POLLING" }
	if err := c.Follow(t.Context(), "/v3/jobs/1", polls); err != nil || len(states) != 1 {
		t.Errorf("%v, with %q to come", err, states)
	}
}
