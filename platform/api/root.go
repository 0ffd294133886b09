package api

import (
	"net/http"
	"strings"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// root is the first thing that a client asks. What is not there is null: a client must not look for it.
func (s *Server) root(w http.ResponseWriter, _ *http.Request, _ platform.Who) error {
	auth := &v3.Link{Href: strings.TrimSuffix(s.Auth.String(), "/")}
	links := v3.Links{
		"self": s.link(""), "cloud_controller_v2": nil, "cloud_controller_v3": {Href: s.at("/v3"), Meta: map[string]any{"version": v3.Version}},
		"login": auth, "uaa": auth, "log_cache": s.link(""), "logging": nil, "log_stream": s.link(""), "app_ssh": nil, "network_policy_v0": nil, "network_policy_v1": nil,
		"routing": nil, "credhub": nil,
	}
	if s.Offer.SSH.Address != "" {
		links["app_ssh"] = &v3.Link{Href: s.Offer.SSH.Address, Meta: map[string]any{"host_key_fingerprint": s.Offer.SSH.Fingerprint, "oauth_client": "ssh-proxy"}}
	}
	if s.Offer.Reach != nil {
		links["apps"] = &v3.Link{Href: strings.TrimSuffix(s.Offer.Reach.String(), "/")}
	}
	if s.Offer.Notify != nil {
		links["notifications"] = &v3.Link{Href: strings.TrimSuffix(s.Offer.Notify.String(), "/")}
	}
	return web.JSON(w, http.StatusOK, v3.Root{Links: links})
}

func (s *Server) rootV3(w http.ResponseWriter, _ *http.Request, _ platform.Who) error {
	links := v3.Links{"self": s.link("/v3")}
	for _, noun := range []string{"organizations", "spaces", "roles", "users", "domains", "stacks", "buildpacks", "feature_flags", "audit_events", "organization_quotas",
		"isolation_segments", "apps", "packages", "builds", "droplets", "processes", "routes",
		"service_brokers", "service_offerings", "service_plans", "service_instances", "service_credential_bindings"} {
		links[noun] = s.link("/v3/", noun)
	}
	return web.JSON(w, http.StatusOK, v3.Root{Links: links})
}

func (s *Server) info(w http.ResponseWriter, _ *http.Request, _ platform.Who) error {
	return web.JSON(w, http.StatusOK, v3.Info{Name: "proa", Description: "Proa application platform", CLIVersion: map[string]any{"minimum": "", "recommended": ""},
		Custom: map[string]any{}, OSBAPI: "2.17", Links: v3.Links{"self": s.link("/v3/info"), "support": s.link("")}})
}
