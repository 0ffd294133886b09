package platform

import (
	"strings"
	"testing"
	"time"
)

// TestRestarts climbs the whole ladder: an instance that never is well.
func TestRestarts(t *testing.T) {
	died := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	count := 0
	for n, wait := range []time.Duration{
		0, 0, 0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 16 * time.Minute, 16 * time.Minute,
	} {
		c := Crash{Exit: Exit{Time: died}, Up: 2 * time.Second}.Counted(count)
		next := time.Time{}
		if wait > 0 {
			next = died.Add(wait)
		}
		if c.Count != n+1 || !c.NextTry.Equal(next) {
			t.Errorf("crash %d is number %d, and the next try is %s after it", n+1, c.Count, c.NextTry.Sub(died))
		}
		count = c.Count
		died = died.Add(wait + 3*time.Second)
	}
	if got := RestartWait(1_000_000); got != 16*time.Minute {
		t.Errorf("after a million crashes it waits %s", got)
	}
}

func TestCrashesAreForgotten(t *testing.T) {
	died := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		before int
		up     time.Duration
		moved  bool
		count  int
		wait   time.Duration
	}{
		{before: 0, up: time.Hour, count: 1},
		{before: 7, up: ForgetAfter, count: 1},
		{before: 7, up: ForgetAfter - time.Nanosecond, count: 8, wait: 8 * time.Minute},
		{before: 3, up: 0, count: 4, wait: 30 * time.Second},
		{before: 3, up: 0, moved: true, count: 4}, // the cluster has placed it anew already
	} {
		got := Crash{Exit: Exit{Time: died, Moved: c.moved}, Up: c.up, NextTry: died}.Counted(c.before)
		wait := time.Duration(0)
		if !got.NextTry.IsZero() {
			wait = got.NextTry.Sub(died)
		}
		if got.Count != c.count || wait != c.wait {
			t.Errorf("%+v: number %d, wait %s", c, got.Count, wait)
		}
	}
}

func TestExitRecord(t *testing.T) {
	c := Crash{
		App: "app-guid", Process: "process-guid", Release: "release-guid", Index: 2, PodUID: "pod-uid", Node: "node-1", Count: 3,
		Exit: Exit{Time: time.Unix(1_700_000_000, 123), Description: Ended("web", "config-server", 137, false)},
	}
	line, err := c.Line()
	if err != nil {
		t.Fatal(err)
	}
	if want := `App instance exited with guid app-guid payload: {"instance":"pod-uid","index":2,"cellid":"node-1","reason":"CRASHED",` +
		`"exitdescription":"APP/PROC/WEB/SIDECAR/CONFIG-SERVER: Exited with status 137","crashcount":3,"crashtimestamp":1700000000000000123,"version":"release-guid"}`; line != want {
		t.Errorf("the line is\n%s, not\n%s", line, want)
	}
	for _, key := range []string{"instance", "index", "cell_id", "reason", "exit_description", "crash_count", "crash_timestamp", "version"} {
		if _, found := c.Data()[key]; !found {
			t.Errorf("the event has no %s", key)
		}
	}
}

func TestDescriptions(t *testing.T) {
	for want, got := range map[string]string{
		"APP/PROC/WEB: Exited with status 0":                                                             Ended("web", "", 0, false),
		"APP/PROC/WORKER/SIDECAR/CONFIG SERVER: Exited with status 137 (out of memory)":                  Ended("worker", "config server", 137, true),
		"APP/PROC/WEB: Failed its health check: HTTP probe failed with statuscode: 500":                  Unwell("web", false, time.Minute, "HTTP probe failed with statuscode: 500"),
		"APP/PROC/WEB: Not well within 60 s: connection refused":                                         Unwell("web", true, time.Minute, "connection refused"),
		"APP/PROC/WEB: Its container could not be started: ErrImagePull: not found":                      Uncreated("web", "ErrImagePull: not found"),
		"APP/PROC/WEB: The instance was deleted from its node":                                           Deleted("web"),
		"APP/PROC/WEB: Its node node-2 was lost":                                                         NodeLost("web", "node-2"),
		"APP/PROC/WEB: Evicted: The node was low on resource: ephemeral-storage.":                        Refused("web", "Evicted", "The node was low on resource: ephemeral-storage. "),
		"APP/PROC/WEB: Exited, and was started again before the platform could see how":                  Unseen("web"),
		"APP/PROC/WEB/SIDECAR/A [31M B\uFFFD: Exited with status 1":                                      Ended("web", "a\n\x1b[31m\tb\xff", 1, false),
		"APP/PROC/WEB/SIDECAR/" + strings.Repeat("X", maxDescription-len("APP/PROC/WEB/SIDECAR/")) + "…": Ended("web", strings.Repeat("x", 1000), 1, false),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
