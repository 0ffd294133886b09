package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
)

func (s *Server) listEvents(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := s.Store.Events(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.event)
}

func (s *Server) getEvent(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	e, err := s.Store.Event(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.event(e))
}
