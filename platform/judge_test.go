package platform_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
)

// TestJudge is the table of the protocol: what each answer means for each request. An orphan is written as "fail+".
func TestJudge(t *testing.T) {
	const (
		create, update, remove = platform.InstanceCreate, platform.InstanceUpdate, platform.InstanceDelete
		bind, unbind, catalog  = platform.BindingCreate, platform.BindingDelete, platform.BrokerCreate
		ask, poll, fetch       = platform.StageAsk, platform.StagePoll, platform.StageFetch
	)
	kinds := []platform.OperationKind{catalog, create, update, remove, bind, unbind}
	is := func(status int) platform.Answer { return platform.Answer{Status: status} }
	bad := func(status int) platform.Answer { return platform.Answer{Status: status, Malformed: true} }
	code := func(c string) platform.Answer { return platform.Answer{Status: 422, Code: c} }
	state := func(s platform.OperationState) platform.Answer { return platform.Answer{Status: 200, State: s} }
	for _, row := range []struct {
		what   string
		stage  platform.Stage
		again  bool
		late   bool
		answer platform.Answer
		want   string // for each kind, in the order above
	}{
		{"200", ask, false, false, is(200), "done done done done done done"},
		{"201", ask, false, false, is(201), "fail done fail fail done fail"},
		{"202", ask, false, false, is(202), "fail poll poll poll poll poll"},
		{"204", ask, false, false, is(204), "fail fail+ fail fail fail+ fail"},
		{"malformed 200", ask, false, false, bad(200), "fail fail fail done fail done"},
		{"malformed 201", ask, false, false, bad(201), "fail fail+ fail fail fail+ fail"},
		{"malformed 202", ask, false, false, bad(202), "fail fail+ fail fail fail+ fail"},
		{"302", ask, false, false, is(302), "fail fail fail fail fail fail"},
		{"400", ask, false, false, is(400), "fail fail fail fail fail fail"},
		{"401", ask, false, false, is(401), "fail fail fail fail fail fail"},
		{"404", ask, false, false, is(404), "fail fail fail fail fail fail"},
		{"408", ask, false, false, is(408), "fail fail+ fail fail fail+ fail"},
		{"409", ask, false, false, is(409), "fail fail fail fail fail fail"},
		{"410", ask, false, false, is(410), "fail fail fail done fail done"},
		{"busy", ask, false, false, code("ConcurrencyError"), "fail fail fail fail fail fail"},
		{"async required", ask, false, false, code("AsyncRequired"), "fail fail fail fail fail fail"},
		{"500", ask, false, false, is(500), "fail fail+ fail fail fail+ fail"},
		{"503", ask, false, false, is(503), "fail fail+ fail fail fail+ fail"},
		{"no answer", ask, false, false, is(0), "fail fail+ fail fail fail+ fail"},
		{"never reached", ask, false, false, platform.Answer{Unsent: true}, "fail fail fail fail fail fail"},

		{"200, asked before", ask, true, false, is(200), "done done done done done done"},
		{"400, asked before", ask, true, false, is(400), "fail fail+ fail fail fail+ fail"},
		{"malformed 200, asked before", ask, true, false, bad(200), "fail fail+ fail done fail+ done"},
		{"never reached, asked before", ask, true, false, platform.Answer{Unsent: true}, "fail fail+ fail fail fail+ fail"},
		{"busy, asked before", ask, true, false, code("ConcurrencyError"), "fail ask ask ask ask ask"},
		{"busy for too long", ask, true, true, code("ConcurrencyError"), "fail fail+ fail fail fail+ fail"},

		{"in progress", poll, false, false, state(platform.OperationRunning), "- poll poll poll poll poll"},
		{"succeeded", poll, false, false, state(platform.OperationSucceeded), "- done done done fetch done"},
		{"failed", poll, false, false, state(platform.OperationFailed), "- fail+ fail fail fail+ fail"},
		{"poll: 400", poll, false, false, is(400), "- fail+ fail fail fail+ fail"},
		{"poll: 404", poll, false, false, is(404), "- poll poll poll poll poll"},
		{"poll: 410", poll, false, false, is(410), "- poll poll done poll done"},
		{"poll: 500", poll, false, false, is(500), "- poll poll poll poll poll"},
		{"poll: malformed", poll, false, false, bad(200), "- poll poll poll poll poll"},
		{"poll: no answer", poll, false, false, is(0), "- poll poll poll poll poll"},
		{"in progress for too long", poll, false, true, state(platform.OperationRunning), "- fail+ fail fail fail+ fail"},
		{"poll: 500 for too long", poll, false, true, is(500), "- fail+ fail fail fail+ fail"},
		{"succeeded at the last moment", poll, false, true, state(platform.OperationSucceeded), "- done done done fetch done"},

		{"fetched", fetch, false, false, is(200), "- - - - done -"},
		{"fetch: malformed", fetch, false, false, bad(200), "- - - - fail+ -"},
		{"fetch: 404", fetch, false, false, is(404), "- - - - fail+ -"},
		{"fetch: 500", fetch, false, false, is(500), "- - - - fetch -"},
		{"fetch: 429", fetch, false, false, is(429), "- - - - fetch -"},
		{"fetch: busy", fetch, false, false, code("ConcurrencyError"), "- - - - fetch -"},
		{"fetch: no answer", fetch, false, false, is(0), "- - - - fetch -"},
		{"fetch: 500 for too long", fetch, false, true, is(500), "- - - - fail+ -"},
	} {
		for i, want := range strings.Fields(row.want) {
			if want == "-" {
				continue
			}
			v := platform.Judge(platform.Question{Kind: kinds[i], Stage: row.stage, Again: row.again, Late: row.late, Retrievable: true}, row.answer)
			got := string(v.Next)
			if v.Orphan {
				got += "+"
			}
			if got != want {
				t.Errorf("%s of %s: got %s, want %s", row.what, kinds[i], got, want)
			}
			if v.Next == platform.NextFail && (len(v.Words) < 40 || !strings.HasSuffix(v.Words, ".") || strings.Contains(v.Words, "..")) {
				t.Errorf("%s of %s is no sentence: %q", row.what, kinds[i], v.Words)
			}
		}
	}
}

// TestJudgeChanges says of a change that failed what is known of the instance.
func TestJudgeChanges(t *testing.T) {
	const same, unknown = " The service instance stays as it was.", " The service instance may have been changed. Update it again."
	for _, row := range []struct {
		what  string
		q     platform.Question
		a     platform.Answer
		wants string
	}{
		{"refused", platform.Question{Stage: platform.StageAsk}, platform.Answer{Status: 400}, same},
		{"never reached", platform.Question{Stage: platform.StageAsk}, platform.Answer{Unsent: true}, same},
		{"busy", platform.Question{Stage: platform.StageAsk}, platform.Answer{Status: 422, Code: "ConcurrencyError"}, same},
		{"failed in the end", platform.Question{Stage: platform.StagePoll}, platform.Answer{Status: 200, State: platform.OperationFailed}, same},
		{"no answer", platform.Question{Stage: platform.StageAsk}, platform.Answer{}, unknown},
		{"500", platform.Question{Stage: platform.StageAsk}, platform.Answer{Status: 500}, unknown},
		{"408", platform.Question{Stage: platform.StageAsk}, platform.Answer{Status: 408}, unknown},
		{"malformed 200", platform.Question{Stage: platform.StageAsk}, platform.Answer{Status: 200, Malformed: true}, unknown},
		{"malformed 202", platform.Question{Stage: platform.StageAsk}, platform.Answer{Status: 202, Malformed: true}, unknown},
		{"refused, asked before", platform.Question{Stage: platform.StageAsk, Again: true}, platform.Answer{Status: 400}, unknown},
		{"late", platform.Question{Stage: platform.StagePoll, Late: true}, platform.Answer{Status: 200, State: platform.OperationRunning}, unknown},
		{"poll refused", platform.Question{Stage: platform.StagePoll}, platform.Answer{Status: 400}, unknown},
	} {
		row.q.Kind = platform.InstanceUpdate
		if v := platform.Judge(row.q, row.a); v.Orphan || !strings.HasSuffix(v.Words, row.wants) {
			t.Errorf("%s: %+v", row.what, v)
		}
	}
}

func TestJudgeWhatCannotBeFetched(t *testing.T) {
	v := platform.Judge(platform.Question{Kind: platform.BindingCreate, Stage: platform.StageAsk}, platform.Answer{Status: 202})
	if v.Next != platform.NextFail || !v.Orphan {
		t.Errorf("got %+v", v)
	}
}

func TestJudgeWaits(t *testing.T) {
	running := platform.Answer{Status: 200, State: platform.OperationRunning}
	for polls, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 1000: time.Minute} {
		if v := platform.Judge(platform.Question{Kind: platform.InstanceCreate, Stage: platform.StagePoll, Polls: polls}, running); v.Wait != want {
			t.Errorf("after %d polls: %s, want %s", polls, v.Wait, want)
		}
	}
	for _, stage := range []platform.Stage{platform.StageAsk, platform.StagePoll} {
		said := platform.Answer{Status: map[platform.Stage]int{platform.StageAsk: 202, platform.StagePoll: 503}[stage], RetryAfter: 7 * time.Second}
		if v := platform.Judge(platform.Question{Kind: platform.InstanceCreate, Stage: stage, Polls: 3}, said); v.Wait != 7*time.Second {
			t.Errorf("%s: the broker said 7 s, we wait %s", stage, v.Wait)
		}
	}
}

// TestJudgeWords lets a broker say what it should not.
func TestJudgeWords(t *testing.T) {
	hostile := "no\x00 room\r\n\x1b[31mleft \u202e" + strings.Repeat("x", 5000) + "\xff"
	v := platform.Judge(platform.Question{Kind: platform.InstanceCreate, Stage: platform.StageAsk}, platform.Answer{Status: 500, Description: hostile})
	want := "The service broker failed with status 500: no room [31mleft xxx"
	if !strings.HasPrefix(v.Words, want) || len([]rune(v.Words)) > 450 || !strings.HasSuffix(v.Words, "… Delete the service instance, and create it again.") {
		t.Errorf("got %q", v.Words)
	}
}
