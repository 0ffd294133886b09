package api

import (
	"context"
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) revision(r platform.Revision) v3.Revision {
	self := "/v3/revisions/" + r.GUID
	shown := v3.Revision{Resource: resource(r.GUID, r.CreatedAt, r.UpdatedAt), Version: r.Version, Description: r.Description, Deployable: r.Deployable, Droplet: v3.Ref{GUID: r.Droplet},
		Processes: map[string]v3.RevisionProcess{}, Sidecars: []v3.RevisionSidecar{}, Metadata: metadata(r.Metadata), Relationships: map[string]v3.ToOne{"app": v3.One(r.AppGUID)},
		Links: v3.Links{"self": s.link(self), "app": s.link("/v3/apps/", r.AppGUID), "environment_variables": s.link(self, "/environment_variables")}}
	for kind, command := range r.Setup.Commands {
		shown.Processes[kind] = v3.RevisionProcess{Command: command}
	}
	for _, c := range r.Setup.Sidecars {
		shown.Sidecars = append(shown.Sidecars, v3.RevisionSidecar{Name: c.Name, Command: c.Command, ProcessTypes: c.ProcessTypes, MemoryMB: c.MemoryMB})
	}
	return shown
}

// hiddenRevision is one without the commands of its processes, which may hold secrets.
func (s *Server) hiddenRevision(r platform.Revision) v3.Revision {
	shown, text := s.revision(r), v3.Hidden
	for kind, p := range shown.Processes {
		if p.Command != nil {
			shown.Processes[kind] = v3.RevisionProcess{Command: &text}
		}
	}
	return shown
}

func (s *Server) listRevisions(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.replyRevisions(w, r, who, s.Store.RevisionsOf)
}

func (s *Server) listDeployedRevisions(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.replyRevisions(w, r, who, s.Store.DeployedRevisions)
}

func (s *Server) replyRevisions(w http.ResponseWriter, r *http.Request, who platform.Who, list func(context.Context, platform.Who, string, platform.List) (platform.Page[platform.Revision], error)) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := list(r.Context(), who, r.PathValue("guid"), l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.hiddenRevision)
}

func (s *Server) getRevision(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	found, err := s.Store.Revision(r.Context(), who, platform.Read, r.PathValue("guid"))
	if err != nil {
		return err
	}
	secrets, err := s.Store.SeesSecrets(r.Context(), who, found.AppGUID)
	switch {
	case err != nil:
		return err
	case !secrets:
		return web.JSON(w, http.StatusOK, s.hiddenRevision(found))
	}
	return web.JSON(w, http.StatusOK, s.revision(found))
}

func (s *Server) updateRevision(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.RevisionChange
	if err := read(r, &in); err != nil {
		return err
	}
	found, err := s.Store.UpdateRevision(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.revision(found))
}

func (s *Server) getRevisionVariables(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	found, err := s.Store.Revision(r.Context(), who, platform.ReadSecrets, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := v3.Variables{Var: map[string]*string{}, Links: v3.Links{
		"self": s.link("/v3/revisions/", found.GUID, "/environment_variables"), "revision": s.link("/v3/revisions/", found.GUID), "app": s.link("/v3/apps/", found.AppGUID),
	}}
	for name, value := range found.Setup.Env {
		shown.Var[name] = &value
	}
	return web.JSON(w, http.StatusOK, shown)
}
