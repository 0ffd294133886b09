package platform_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
)

func TestStagingOrder(t *testing.T) {
	got, err := platform.Staging{Buildpacks: []string{"proa/java@0.1.0", "proa/procfile@0.2.0?"}}.Order()
	want := "[[order]]\n[[order.group]]\nid = \"proa/java\"\nversion = \"0.1.0\"\noptional = false\n" +
		"[[order.group]]\nid = \"proa/procfile\"\nversion = \"0.2.0\"\noptional = true\n"
	if err != nil || got != want {
		t.Errorf("the order is %q, %v", got, err)
	}
	if got, err := (platform.Staging{}).Order(); got != "" || err != nil {
		t.Errorf("the order of no buildpacks is %q, %v", got, err)
	}
	for _, bad := range []string{"proa/java", "", "@1", "a@1\"\n[[order]]", "a b@1"} {
		if got, err := (platform.Staging{Buildpacks: []string{bad}}).Order(); err == nil {
			t.Errorf("the order of %q is %q", bad, got)
		}
	}
}

func TestStagingEndExplain(t *testing.T) {
	for _, c := range []struct {
		end        platform.StagingEnd
		code, says string
	}{
		{platform.StagingEnd{Phase: platform.PhaseDetect, Code: 20}, "NoAppDetectedError", "None of the builder's buildpacks fits this app."},
		{platform.StagingEnd{Phase: platform.PhaseDetect, Code: 21}, "BuildpackDetectFailed", "failed while it looked"},
		{platform.StagingEnd{Phase: platform.PhaseBuild, Code: 51}, "BuildpackCompileFailed", "failed while it built"},
		{platform.StagingEnd{Phase: platform.PhaseBuild, Code: 20}, "StagingError", "phase builder with status 20"},
		{platform.StagingEnd{Phase: platform.PhaseExport, Code: 62}, "StagingError", "phase exporter with status 62"},
		{platform.StagingEnd{Phase: platform.PhaseBuild, Code: 137, OutOf: platform.OutOfMemory, MemoryMB: 1024}, "StagingError", "more than its 1G of memory"},
		{platform.StagingEnd{Phase: platform.PhaseBuild, OutOf: platform.OutOfDisk, DiskMB: 512}, "StagingError", "more than its 512M of disk"},
		{platform.StagingEnd{Phase: platform.PhaseBuild, OutOf: platform.OutOfTime, Timeout: 15 * time.Minute}, "StagingTimeExpired", "15m0s"},
	} {
		got := c.end.Explain()
		if got.Code != c.code || !strings.Contains(got.Detail, c.says) || got.String() != c.code+" - "+got.Detail {
			t.Errorf("%+v is explained as %s", c.end, got)
		}
	}
}
