package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

func (s *Server) listDeployments(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	return s.nothing(w, r)
}

func (s *Server) createDeployment(http.ResponseWriter, *http.Request, platform.Who) error {
	return fault.Unprocessable("Rolling deployments are not there yet; push or restart without --strategy.")
}
