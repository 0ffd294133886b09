package platform

import (
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/kit/fault"
)

func told(err error) []string {
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f.Kind != fault.KindUnprocessable {
		return []string{"not unprocessable: " + f.Detail}
	}
	if f.Details != nil {
		return f.Details
	}
	return []string{f.Detail}
}

func TestNewProcess(t *testing.T) {
	web, worker := NewProcess("app", "web"), NewProcess("app", "worker")
	if web.Instances != 1 || web.HealthCheck.Type != CheckPort || web.MemoryMB != 1024 || web.DiskMB != 1024 || web.LogRateBytes != Unlimited {
		t.Errorf("web begins as %+v", web)
	}
	if worker.Instances != 0 || worker.HealthCheck.Type != CheckProcess {
		t.Errorf("worker begins as %+v", worker)
	}
}

func TestScale(t *testing.T) {
	for name, test := range map[string]struct {
		scale ProcessScale
		want  []string
	}{
		"nothing":            {ProcessScale{}, nil},
		"to none":            {ProcessScale{Instances: new(0)}, nil},
		"below none":         {ProcessScale{Instances: new(-1)}, []string{"Instances must be greater than or equal to 0"}},
		"too many":           {ProcessScale{Instances: new(10001)}, []string{"Instances must be less than or equal to 10000"}},
		"no memory, no disk": {ProcessScale{MemoryMB: new(0), DiskMB: new(0)}, []string{"Memory in mb must be greater than 0", "Disk in mb must be greater than 0"}},
		"no log limit":       {ProcessScale{LogRateBytes: new(int64(-1))}, nil},
		"odd log limit":      {ProcessScale{LogRateBytes: new(int64(-2))}, []string{"Log rate limit in bytes per second must be greater than or equal to -1"}},
	} {
		p := NewProcess("app", "web")
		if got := told(p.Scale(test.scale)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	p := NewProcess("app", "web")
	if err := p.Scale(ProcessScale{Instances: new(3), MemoryMB: new(-5)}); err == nil || p.Instances != 1 {
		t.Errorf("a refused scale changed the process: %+v", p)
	}
	if err := p.Scale(ProcessScale{Instances: new(3), MemoryMB: new(64)}); err != nil || p.Instances != 3 || p.MemoryMB != 64 || p.DiskMB != 1024 {
		t.Errorf("scaled to %+v: %v", p, err)
	}
}

func TestUpdateProcess(t *testing.T) {
	for name, test := range map[string]struct {
		change ProcessChange
		want   []string
	}{
		"odd type":              {ProcessChange{HealthCheck: HealthCheckChange{Type: new(CheckType("ping"))}}, []string{`Health check type must be "port", "process", or "http"`}},
		"endpoint of a port":    {ProcessChange{HealthCheck: HealthCheckChange{Endpoint: new("/up")}}, []string{`Health check type must be "http" to set a health check HTTP endpoint`}},
		"endpoint with a space": {ProcessChange{Readiness: HealthCheckChange{Type: new(CheckHTTP), Endpoint: new("/a b")}}, []string{"Readiness health check endpoint must be a valid URI path"}},
		"too slow":              {ProcessChange{HealthCheck: HealthCheckChange{Timeout: new(601), Interval: new(-1)}}, []string{"Health check timeout must be less than or equal to 600", "Health check interval must be greater than or equal to 0"}},
		"long command":          {ProcessChange{Command: new(strings.Repeat("x", 4097))}, []string{"Command is too long (maximum is 4096 characters)"}},
		"blank command":         {ProcessChange{Command: new(" ")}, []string{"Command can't be blank"}},
	} {
		p := NewProcess("app", "web")
		if got := told(p.Update(test.change)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	p := NewProcess("app", "web")
	if err := p.Update(ProcessChange{Command: new("run"), HealthCheck: HealthCheckChange{Type: new(CheckHTTP), Timeout: new(90)}}); err != nil {
		t.Fatal(err)
	}
	if *p.Command != "run" || p.HealthCheck != (HealthCheck{Type: CheckHTTP, Endpoint: "/", Timeout: 90}) {
		t.Errorf("updated to %+v", p)
	}
	if err := p.Update(ProcessChange{Command: new(""), HealthCheck: HealthCheckChange{Type: new(CheckPort)}}); err != nil || p.Command != nil || p.HealthCheck.Endpoint != "" {
		t.Errorf("reset to %+v: %v", p, err)
	}
}

func TestCheckProcessType(t *testing.T) {
	for _, kind := range []string{"web", "worker-2", "release.task", "A_b"} {
		if err := CheckProcessType(kind); err != nil {
			t.Error(err)
		}
	}
	for _, kind := range []string{"", "a b", "a/b", "ü", strings.Repeat("a", 64)} {
		if err := CheckProcessType(kind); err == nil {
			t.Errorf("the type %q passes", kind)
		}
	}
}
