package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
)

// accepted answers a change that a client can follow. A Location stands only on such replies: clients poll what it names.
func (s *Server) accepted(w http.ResponseWriter, j platform.Job) error {
	w.Header().Set("Location", s.at("/v3/jobs/"+j.GUID))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (s *Server) getJob(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.Job(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.job(j))
}
