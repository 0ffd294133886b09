package controller

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
)

// TestWithoutTCP leaves routes out that a cluster cannot serve, and says why once.
func TestWithoutTCP(t *testing.T) {
	var log bytes.Buffer
	w := &term{Controller: &Controller{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	web, port := platform.WantedRoute{GUID: "a", Protocol: platform.ProtocolHTTP}, platform.WantedRoute{GUID: "b", Protocol: platform.ProtocolTCP}
	why := errors.New("it has no definition")
	if got := w.withoutTCP([]platform.WantedRoute{web}, why); len(got) != 1 || log.Len() > 0 {
		t.Errorf("without any it keeps %v and says %s", got, &log)
	}
	for range 3 {
		if got := w.withoutTCP([]platform.WantedRoute{port, web, port}, why); len(got) != 1 || got[0].GUID != "a" {
			t.Errorf("it keeps %v", got)
		}
	}
	if said := log.String(); strings.Count(said, "routes of tcp are not served") != 1 || !strings.Contains(said, "it has no definition") || !strings.Contains(said, "routes=2") {
		t.Errorf("it says %s", said)
	}
}
