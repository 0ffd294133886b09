package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// position is a buildpack with its place in the order of detection.
type position struct {
	platform.Buildpack
	at int
}

func (s *Server) positions() []position {
	all := make([]position, len(s.Offer.Buildpacks))
	for i, b := range s.Offer.Buildpacks {
		all[i] = position{b, i + 1}
	}
	return all
}

func (s *Server) buildpack(p position) v3.Buildpack {
	return v3.Buildpack{Resource: resource(p.GUID(), s.Offer.Since, s.Offer.Since), Name: p.Name, Stack: p.Stack, State: "READY", Filename: p.Name + "@" + p.Version,
		Lifecycle: "cnb", Position: p.at, Enabled: true, Locked: true, Metadata: metadata(platform.Metadata{}), Links: v3.Links{"self": s.link("/v3/buildpacks/", p.GUID())}}
}

func (s *Server) listBuildpacks(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	l, err := readList(r, "position", "name", "stack")
	if err != nil {
		return err
	}
	page := static(l, s.positions(), func(p position, parameter string) string {
		return map[string]string{"names": p.Name, "guids": p.GUID(), "stacks": p.Stack, "lifecycle": "cnb"}[parameter]
	})
	return reply(s, w, r, l, page, s.buildpack)
}

func (s *Server) getBuildpack(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	p, err := named(s.positions(), r.PathValue("guid"), "Buildpack", func(p position) string { return p.GUID() })
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.buildpack(p))
}
