package api

import (
	"net/http"

	"github.com/proa-dev/proa/platform"
)

func (s *Server) listRoutes(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	return s.nothing(w, r)
}
