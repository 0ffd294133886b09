package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// TestJournal writes the log of a build with three processes, of which two die in the middle. Every line is there once.
func TestJournal(t *testing.T) {
	pool := pgtest.New(t, store.Migrations(), store.Table)
	s := store.New(pool, nil)
	ctx := t.Context()
	_, err := pool.Exec(ctx, `with o as (insert into orgs (guid, name) values ('o', 'o') returning guid), s as (insert into spaces (guid, org_guid, name, cluster_id) select 's', guid, 's', 'default' from o returning guid)
		insert into apps (guid, space_guid, name) select 'a', guid, 'a' from s`)
	if err != nil {
		t.Fatal(err)
	}
	var created time.Time
	if err := pool.QueryRow(ctx, `select now()`).Scan(&created); err != nil {
		t.Fatal(err)
	}
	printed := func(n int) string { return fmt.Sprintf("line %d", n) }
	for _, diesAt := range []int{130, 250, 300} {
		state, err := s.StagingLog(ctx, "a", created)
		if err != nil {
			t.Fatal(err)
		}
		try := max(len(state.Lines)-1, 0)
		j := newJournal(s, "a", try, state, time.Now())
		if len(state.Lines) == 0 {
			j.say(ctx, "begins")
		} else {
			j.heard = 1
		}
		for n := range diesAt { // what waits for the next flush dies with the process
			j.line(ctx, []string{"detector", "builder"}[n/200], printed(n))
		}
		if diesAt == 300 {
			if err := j.flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines, err := s.Log(ctx, platform.Who{Scopes: []string{platform.ScopeAdmin}}, "a", store.LogWindow{To: 1 << 62, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, l := range lines {
		if got = append(got, l.Text); i > 0 && !l.At.After(lines[i-1].At) || l.Source != platform.SourceStaging || l.Instance != "0" {
			t.Errorf("line %d is %+v", i, l)
		}
	}
	want := []string{"begins", "-----> detector"}
	for n := range 300 {
		if n == 200 {
			want = append(want, "-----> builder")
		}
		want = append(want, printed(n))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}
