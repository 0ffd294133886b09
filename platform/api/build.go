package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) build(b platform.Build) v3.Build {
	shown := v3.Build{Resource: resource(b.GUID, b.CreatedAt, b.UpdatedAt), CreatedBy: v3.Creator{GUID: b.CreatedBy.GUID, Name: b.CreatedBy.Name}, State: string(b.State),
		StagingMemory: b.MemoryMB, StagingDisk: b.DiskMB, StagingLog: platform.Unlimited, Error: unlessEmpty(b.Error), Lifecycle: lifecycle(b.Lifecycle),
		Package: v3.Ref{GUID: b.PackageGUID}, Droplet: v3.One(b.DropletGUID).Data, Relationships: map[string]v3.ToOne{"app": v3.One(b.AppGUID)}, Metadata: metadata(b.Metadata),
		Links: v3.Links{"self": s.link("/v3/builds/", b.GUID), "app": s.link("/v3/apps/", b.AppGUID)}}
	if b.DropletGUID != "" {
		shown.Links["droplet"] = s.link("/v3/droplets/", b.DropletGUID)
	}
	return shown
}

func (s *Server) listBuilds(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := s.Store.Builds(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.build)
}

func (s *Server) listAppBuilds(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return listOfApp(s, w, r, who, s.Store.Builds, s.build)
}

func (s *Server) getBuild(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	b, err := s.Store.Build(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.build(b))
}

func (s *Server) createBuild(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.BuildCreate
	if err := read(r, &in); err != nil {
		return err
	}
	if in.Package.GUID == "" {
		return fault.Unprocessable("Package must name the package to stage, by guid.")
	}
	b := platform.Build{PackageGUID: in.Package.GUID, MemoryMB: in.StagingMemory, DiskMB: in.StagingDisk}
	b.Metadata.Apply(noted(in.Metadata))
	if in.Lifecycle != nil {
		change, err := lifecycleChange(in.Lifecycle)
		if err != nil {
			return err
		}
		if b.Lifecycle, err = b.Lifecycle.With(change, s.settings().Stacks); err != nil {
			return err
		}
	}
	b, err := s.Store.CreateBuild(r.Context(), who, b)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.build(b))
}

func (s *Server) updateBuild(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.Noted
	if err := read(r, &in); err != nil {
		return err
	}
	b, err := s.Store.UpdateBuild(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.build(b))
}
