package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func planVisibility(v platform.PlanVisibility) v3.PlanVisibility {
	shown := v3.PlanVisibility{Type: string(v.Type)}
	for _, o := range v.Orgs {
		shown.Organizations = append(shown.Organizations, v3.Named{GUID: o.GUID, Name: o.Name})
	}
	if v.Space.GUID != "" {
		shown.Space = &v3.Named{GUID: v.Space.GUID, Name: v.Space.Name}
	}
	return shown
}

func (s *Server) getPlanVisibility(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	v, err := s.Store.PlanVisibility(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, planVisibility(v))
}

// setPlanVisibility replaces the organizations that can have a plan.
func (s *Server) setPlanVisibility(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.changeVisibility(w, r, who, false)
}

// addPlanVisibility adds to them.
func (s *Server) addPlanVisibility(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.changeVisibility(w, r, who, true)
}

func (s *Server) changeVisibility(w http.ResponseWriter, r *http.Request, who platform.Who, add bool) error {
	var in struct {
		Type          string   `json:"type"`
		Organizations []v3.Ref `json:"organizations"`
	}
	if err := read(r, &in); err != nil {
		return err
	}
	wanted := platform.PlanVisibility{Type: platform.Visibility(in.Type)}
	for _, o := range in.Organizations {
		wanted.Orgs = append(wanted.Orgs, platform.Org{GUID: o.GUID})
	}
	v, err := s.Store.SetPlanVisibility(r.Context(), who, r.PathValue("guid"), wanted, add)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, planVisibility(v))
}

func (s *Server) deletePlanVisibility(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if err := s.Store.HideServicePlan(r.Context(), who, r.PathValue("guid"), r.PathValue("organization")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
