package api

import (
	"strings"
	"time"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// at is the absolute address of a path of ours.
func (s *Server) at(path string) string { return strings.TrimSuffix(s.URL.String(), "/") + path }

func (s *Server) link(parts ...string) *v3.Link { return &v3.Link{Href: s.at(strings.Join(parts, ""))} }

func resource(guid string, created, updated time.Time) v3.Resource {
	return v3.Resource{GUID: guid, CreatedAt: v3.Time(created), UpdatedAt: v3.Time(updated)}
}

func metadata(m platform.Metadata) v3.Metadata {
	shown := v3.Metadata{Labels: m.Labels, Annotations: m.Annotations}
	if shown.Labels == nil {
		shown.Labels = map[string]string{}
	}
	if shown.Annotations == nil {
		shown.Annotations = map[string]string{}
	}
	return shown
}

func noted(c v3.MetadataChange) platform.MetadataChange {
	return platform.MetadataChange{Labels: c.Labels, Annotations: c.Annotations}
}

func (s *Server) org(o platform.Org) v3.Organization {
	self := "/v3/organizations/" + o.GUID
	return v3.Organization{Resource: resource(o.GUID, o.CreatedAt, o.UpdatedAt), Name: o.Name, Suspended: o.Suspended, Metadata: metadata(o.Metadata),
		Relationships: map[string]v3.ToOne{"quota": v3.One(platform.DefaultQuota.GUID)},
		Links: v3.Links{"self": s.link(self), "domains": s.link(self, "/domains"), "default_domain": s.link(self, "/domains/default"),
			"quota": s.link("/v3/organization_quotas/", platform.DefaultQuota.GUID)}}
}

func (s *Server) space(sp platform.Space) v3.Space {
	self := "/v3/spaces/" + sp.GUID
	return v3.Space{Resource: resource(sp.GUID, sp.CreatedAt, sp.UpdatedAt), Name: sp.Name, Metadata: metadata(sp.Metadata),
		Relationships: map[string]v3.ToOne{"organization": v3.One(sp.OrgGUID), "quota": {}},
		Links: v3.Links{"self": s.link(self), "organization": s.link("/v3/organizations/", sp.OrgGUID), "features": s.link(self, "/features"),
			"apply_manifest": {Href: s.at(self + "/actions/apply_manifest"), Method: "POST"}}}
}

func (s *Server) role(r platform.Role) v3.Role {
	links := v3.Links{"self": s.link("/v3/roles/", r.GUID), "user": s.link("/v3/users/", r.UserGUID)}
	org := r.OrgGUID
	if r.Type.InSpace() {
		org = ""
		links["space"] = s.link("/v3/spaces/", r.SpaceGUID)
	} else {
		links["organization"] = s.link("/v3/organizations/", r.OrgGUID)
	}
	return v3.Role{Resource: resource(r.GUID, r.CreatedAt, r.UpdatedAt), Type: string(r.Type), Links: links,
		Relationships: map[string]v3.ToOne{"user": v3.One(r.UserGUID), "organization": v3.One(org), "space": v3.One(r.SpaceGUID)}}
}

func (s *Server) user(u platform.User) v3.User {
	shown := v3.User{Resource: resource(u.GUID, u.CreatedAt, u.UpdatedAt), PresentationName: u.PresentationName(), Metadata: metadata(platform.Metadata{}),
		Links: v3.Links{"self": s.link("/v3/users/", u.GUID)}}
	if u.Name != "" {
		shown.Username, shown.Origin = &u.Name, &u.Origin
	}
	return shown
}

func (s *Server) domain(d platform.Domain) v3.Domain {
	self := "/v3/domains/" + d.GUID
	return v3.Domain{Resource: resource(d.GUID, d.CreatedAt, d.UpdatedAt), Name: d.Name, Internal: d.Internal, SupportedProtocols: []string{d.Speaks()},
		Metadata: metadata(d.Metadata), Relationships: v3.DomainRelationships{Organization: v3.One(d.OrgGUID), SharedOrganizations: v3.ToMany{Data: []v3.Ref{}}},
		Links: v3.Links{"self": s.link(self), "route_reservations": s.link(self, "/route_reservations")}}
}

func (s *Server) stack(st platform.Stack) v3.Stack {
	return v3.Stack{Resource: resource(st.GUID(), s.Offer.Since, s.Offer.Since), Name: st.Name, Description: st.Description, State: "ACTIVE",
		BuildImage: st.BuildImage, RunImage: st.RunImage, Default: st.Default, Metadata: metadata(platform.Metadata{}), Links: v3.Links{"self": s.link("/v3/stacks/", st.GUID())}}
}

func (s *Server) event(e platform.Event) v3.Event {
	return v3.Event{Resource: resource(e.GUID, e.CreatedAt, e.CreatedAt), Type: e.Type, Actor: v3.Actor(e.Actor), Target: v3.Actor(e.Target), Data: e.Data,
		Space: v3.One(e.SpaceGUID).Data, Organization: v3.One(e.OrgGUID).Data, Links: v3.Links{"self": s.link("/v3/audit_events/", e.GUID)}}
}

func (s *Server) flag(f platform.Flag) v3.FeatureFlag {
	shown := v3.FeatureFlag{Name: f.Name, Enabled: f.Enabled, UpdatedAt: v3.Time(f.UpdatedAt), Links: v3.Links{"self": s.link("/v3/feature_flags/", f.Name)}}
	if f.Message != "" {
		shown.Message = &f.Message
	}
	return shown
}

func (s *Server) job(j platform.Job) v3.Job {
	shown := v3.Job{Resource: resource(j.GUID, j.CreatedAt, j.UpdatedAt), Operation: j.Operation, State: string(j.State),
		Errors: []v3.Error{}, Warnings: []v3.Warning{}, Links: v3.Links{"self": s.link("/v3/jobs/", j.GUID)}}
	for _, e := range j.Errors {
		shown.Errors = append(shown.Errors, v3.Error(e))
	}
	for _, text := range j.Warnings {
		shown.Warnings = append(shown.Warnings, v3.Warning{Detail: text})
	}
	return shown
}
