package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) listFlags(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	flags, err := s.Store.Flags(r.Context())
	if err != nil {
		return err
	}
	return reply(s, w, r, l, static(l, flags, func(f platform.Flag, _ string) string { return f.Name }), s.flag)
}

func (s *Server) getFlag(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	f, err := s.Store.Flag(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.flag(f))
}

func (s *Server) setFlag(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.FeatureFlagChange
	if err := read(r, &in); err != nil {
		return err
	}
	if in.Enabled == nil {
		return fault.Unprocessable("Enabled must be a boolean")
	}
	f, err := s.Store.SetFlag(r.Context(), who, r.PathValue("name"), func(f *platform.Flag) {
		f.Enabled = *in.Enabled
		if in.Message != nil {
			f.Message = *in.Message
		}
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.flag(f))
}
