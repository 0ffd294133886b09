package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
)

// TestTCPSettings needs no database: what is wrong with the ports for tcp is said at once.
func TestTCPSettings(t *testing.T) {
	for _, test := range []struct{ domain, ports, says string }{
		{"", "", ""},
		{"tcp.apps.example.org", "20000-20009", ""},
		{"tcp.apps.example.org", "", "need each other"},
		{"", "20000-20009", "need each other"},
		{"Apps.example.org", "20000-20009", "another domain than PROA_APPS_DOMAIN"},
		{"tcp.apps.example.org", "20000-20060", "at most 60"},
		{"tcp.apps.example.org", "all", "PROA_TCP_PORTS"},
	} {
		c := config{URL: &url.URL{Scheme: "https", Host: "api.example.org"}, Auth: &url.URL{Scheme: "https", Host: "auth.example.org"}, Domain: "apps.example.org", TCP: test.domain, Ports: test.ports}
		said := ""
		if err := c.check(); err != nil {
			said = err.Error()
		}
		if test.says == "" && strings.Contains(said, "PROA_TCP") || !strings.Contains(said, test.says) {
			t.Errorf("%q and %q: %s", test.domain, test.ports, said)
		}
	}
	c := config{Ports: "20000-20009"}
	if ports, err := c.ports(); err != nil || ports != (platform.Ports{First: 20000, Last: 20009}) {
		t.Errorf("read as %v: %v", ports, err)
	}
}
