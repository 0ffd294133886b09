package api

import (
	"io"
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// readManifest reads YAML, whatever type it claims to be; JSON is YAML. What is wrong with it is told at once, not by a job.
func readManifest(r *http.Request) (platform.Manifest, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return platform.Manifest{}, err
	}
	m, err := platform.ParseManifest(body)
	if fault.Is(err, fault.KindInvalid) {
		return m, fault.Unprocessable("%s", fault.From(err).Detail).Because(err)
	}
	return m, err
}

func (s *Server) applyManifest(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	m, err := readManifest(r)
	if err != nil {
		return err
	}
	j, err := s.Store.ApplyManifest(r.Context(), who, r.PathValue("guid"), m, s.settings())
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

func (s *Server) diffManifest(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	m, err := readManifest(r)
	if err != nil {
		return err
	}
	found, err := s.Store.DiffManifest(r.Context(), who, r.PathValue("guid"), m)
	if err != nil {
		return err
	}
	shown := v3.ManifestDiff{Diff: []v3.Difference{}}
	for _, d := range found {
		shown.Diff = append(shown.Diff, v3.Difference{Op: d.Op, Path: d.Path,
			Was: v3.Optional[any]{Set: d.Op != platform.DifferenceAdd, Value: &d.Was}, Value: v3.Optional[any]{Set: d.Op != platform.DifferenceRemove, Value: &d.Value}})
	}
	return web.JSON(w, http.StatusCreated, shown)
}

func (s *Server) getManifest(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	m, err := s.Store.AppManifest(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-yaml")
	_, err = w.Write(m.Render()) //nolint:gosec // no browser shows YAML as a page, and none may guess what it is: see kit/web
	return err
}
