package api

import (
	"net/http"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) droplet(d platform.Droplet) v3.Droplet {
	self, app := "/v3/droplets/"+d.GUID, "/v3/apps/"+d.AppGUID
	of := d.Lifecycle
	of.Stack = d.Stack
	shown := v3.Droplet{Resource: resource(d.GUID, d.CreatedAt, d.UpdatedAt), State: string(d.State), Lifecycle: lifecycle(of), ProcessTypes: map[string]string{}, Checksum: checksum(d.Image),
		Buildpacks: []v3.DropletBuildpack{}, Stack: unlessEmpty(d.Stack), Relationships: map[string]v3.ToOne{"app": v3.One(d.AppGUID)}, Metadata: metadata(d.Metadata),
		Links: v3.Links{"self": s.link(self), "app": s.link(app), "package": s.link("/v3/packages/", d.PackageGUID),
			"assign_current_droplet": {Href: s.at(app + "/relationships/current_droplet"), Method: http.MethodPatch}}}
	for _, p := range d.Processes {
		shown.ProcessTypes[p.Type] = p.Line()
	}
	for _, b := range d.Buildpacks {
		shown.Buildpacks = append(shown.Buildpacks, v3.DropletBuildpack{Name: b.ID, BuildpackName: b.ID, Version: b.Version})
	}
	if d.Lifecycle.Type == platform.LifecycleDocker {
		shown.Image = &d.Image
	}
	return shown
}

// checksum is the digest of an image.
func checksum(image string) *v3.Checksum {
	_, digest, _ := strings.Cut(image, "@sha256:")
	return &v3.Checksum{Type: "sha256", Value: unlessEmpty(digest)}
}

// hiddenDroplet is a droplet without its commands, which may hold secrets.
func (s *Server) hiddenDroplet(d platform.Droplet) v3.Droplet {
	shown := s.droplet(d)
	shown.ProcessTypes = map[string]string{"redacted_message": v3.Hidden}
	return shown
}

func (s *Server) listDroplets(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := s.Store.Droplets(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.hiddenDroplet)
}

func (s *Server) listAppDroplets(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	a, err := s.Store.App(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	l.Values["app_guids"] = []string{a.GUID}
	if delete(l.Values, "current"); r.URL.Query().Get("current") == "true" {
		l.Values["guids"] = []string{a.Droplet}
	}
	page, err := s.Store.Droplets(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.hiddenDroplet)
}

func (s *Server) listPackageDroplets(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	p, err := s.Store.Package(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	l.Values["package_guids"] = []string{p.GUID}
	page, err := s.Store.Droplets(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.hiddenDroplet)
}

// oneDroplet writes a droplet, with its commands for those who may see them.
func (s *Server) oneDroplet(w http.ResponseWriter, r *http.Request, who platform.Who, d platform.Droplet) error {
	secrets, err := s.Store.SeesSecrets(r.Context(), who, d.AppGUID)
	if err != nil {
		return err
	}
	if !secrets {
		return web.JSON(w, http.StatusOK, s.hiddenDroplet(d))
	}
	return web.JSON(w, http.StatusOK, s.droplet(d))
}

func (s *Server) getDroplet(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	d, err := s.Store.Droplet(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.oneDroplet(w, r, who, d)
}

func (s *Server) getCurrentDroplet(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	d, err := s.Store.CurrentDroplet(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.oneDroplet(w, r, who, d)
}

// dropletOf finds the current droplet of an app that the sender sees, if it has one.
func (s *Server) dropletOf(r *http.Request, who platform.Who, app string) (platform.Droplet, bool, error) {
	d, err := s.Store.CurrentDroplet(r.Context(), who, app)
	if fault.Is(err, fault.KindNotFound) {
		return d, false, nil
	}
	return d, err == nil, err
}

func (s *Server) current(w http.ResponseWriter, app, droplet string) error {
	self := "/v3/apps/" + app
	return web.JSON(w, http.StatusOK, v3.CurrentDroplet{Data: &v3.Ref{GUID: droplet},
		Links: v3.Links{"self": s.link(self, "/relationships/current_droplet"), "related": s.link(self, "/droplets/current")}})
}

func (s *Server) getCurrentDropletOf(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	d, err := s.Store.CurrentDroplet(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.current(w, d.AppGUID, d.GUID)
}

func (s *Server) assignDroplet(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ToOne
	if err := read(r, &in); err != nil {
		return err
	}
	a, err := s.Store.AssignDroplet(r.Context(), who, r.PathValue("guid"), in.GUID())
	if err != nil {
		return err
	}
	return s.current(w, a.GUID, a.Droplet)
}

func (s *Server) updateDroplet(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.Noted
	if err := read(r, &in); err != nil {
		return err
	}
	d, err := s.Store.UpdateDroplet(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return s.oneDroplet(w, r, who, d)
}

func (s *Server) deleteDroplet(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteDroplet(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}
