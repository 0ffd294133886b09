package api

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) sidecar(c platform.Sidecar) v3.Sidecar {
	return v3.Sidecar{Resource: resource(c.GUID, c.CreatedAt, c.UpdatedAt), Name: c.Name, Command: c.Command, ProcessTypes: c.ProcessTypes, MemoryMB: c.MemoryMB,
		Origin: string(c.Origin), Relationships: map[string]v3.ToOne{"app": v3.One(c.AppGUID)}}
}

// readSidecar explains keys that a process has and a sidecar cannot have.
func readSidecar(r *http.Request) (platform.SidecarChange, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return platform.SidecarChange{}, err
	}
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(body, &keys) // if it is none, read says so
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := platform.RefuseSidecarKey(key); err != nil {
			return platform.SidecarChange{}, err
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in v3.SidecarChange
	if err := read(r, &in); err != nil {
		return platform.SidecarChange{}, err
	}
	return platform.SidecarChange{Name: in.Name, Command: in.Command, ProcessTypes: in.ProcessTypes, MemoryMB: in.MemoryMB.Value, NoMemory: in.MemoryMB.Set}, nil
}

func (s *Server) listAppSidecars(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page, err := s.Store.SidecarsOfApp(r.Context(), who, r.PathValue("guid"), l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.sidecar)
}

func (s *Server) listProcessSidecars(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page, err := s.Store.SidecarsOfProcess(r.Context(), who, r.PathValue("guid"), l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.sidecar)
}

func (s *Server) createSidecar(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	in, err := readSidecar(r)
	if err != nil {
		return err
	}
	c := platform.Sidecar{AppGUID: r.PathValue("guid"), Origin: platform.SidecarOfUser}
	if err := c.Update(in); err != nil {
		return err
	}
	if c, err = s.Store.CreateSidecar(r.Context(), who, c); err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.sidecar(c))
}

func (s *Server) getSidecar(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	c, err := s.Store.Sidecar(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.sidecar(c))
}

func (s *Server) updateSidecar(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	in, err := readSidecar(r)
	if err != nil {
		return err
	}
	c, err := s.Store.UpdateSidecar(r.Context(), who, r.PathValue("guid"), in)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.sidecar(c))
}

func (s *Server) deleteSidecar(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if err := s.Store.DeleteSidecar(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
