package api

import (
	"context"
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// deployment shows the web process as the new one: it keeps its guid from release to release.
func (s *Server) deployment(d platform.Deployment) v3.Deployment {
	self := "/v3/deployments/" + d.GUID
	shown := v3.Deployment{Resource: resource(d.GUID, d.CreatedAt, d.UpdatedAt), Strategy: string(d.Strategy), Options: optionsOf(d),
		Status: v3.DeploymentStatus{Value: string(d.Value), Reason: string(d.Reason),
			Details: v3.DeploymentDetails{LastStatusChange: v3.Time(d.ChangedAt), LastHealthy: v3.Time(d.HealthyAt), Error: d.Error}},
		Droplet: v3.One(d.Droplet).Data, Previous: v3.One(d.PreviousDroplet).Data, NewProcesses: []v3.DeploymentProcess{{GUID: d.AppGUID, Type: platform.WebProcess}},
		Metadata: metadata(d.Metadata), Relationships: map[string]v3.ToOne{"app": v3.One(d.AppGUID)},
		Links: v3.Links{"self": s.link(self), "app": s.link("/v3/apps/", d.AppGUID)}}
	if d.RevisionVersion > 0 {
		shown.Revision = &v3.DeploymentRevision{GUID: d.RevisionGUID, Version: d.RevisionVersion}
	}
	if d.Strategy == platform.Canary {
		shown.Status.Canary = &v3.CanaryStatus{}
		shown.Status.Canary.Steps.Current, shown.Status.Canary.Steps.Total = min(d.Step, d.TotalSteps()), d.TotalSteps()
	}
	if d.Value == platform.DeploymentActive {
		shown.Links["cancel"] = &v3.Link{Href: s.at(self + "/actions/cancel"), Method: http.MethodPost}
	}
	if d.Reason == platform.Paused {
		shown.Links["continue"] = &v3.Link{Href: s.at(self + "/actions/continue"), Method: http.MethodPost}
	}
	return shown
}

func optionsOf(d platform.Deployment) v3.DeploymentOptions {
	o := v3.DeploymentOptions{MaxInFlight: d.MaxInFlight, WebInstances: d.Scale.Instances, MemoryMB: d.Scale.MemoryMB, DiskMB: d.Scale.DiskMB, LogRate: d.Scale.LogRateBytes}
	if len(d.Steps) > 0 {
		o.Canary = &v3.CanaryOptions{}
		for _, weight := range d.Steps {
			o.Canary.Steps = append(o.Canary.Steps, v3.CanaryStep{Weight: weight})
		}
	}
	return o
}

func (s *Server) listDeployments(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := s.Store.Deployments(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.deployment)
}

func (s *Server) getDeployment(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	d, err := s.Store.Deployment(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.deployment(d))
}

func (s *Server) createDeployment(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.DeploymentCreate
	if err := read(r, &in); err != nil {
		return err
	}
	d := platform.Deployment{AppGUID: in.Relationships.App.GUID(), Strategy: platform.Strategy(in.Strategy)}
	if d.AppGUID == "" {
		return fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships")
	}
	switch {
	case in.Droplet != nil && in.Revision != nil:
		return platform.ErrTwoSources
	case in.Droplet != nil && in.Droplet.GUID == "", in.Revision != nil && in.Revision.GUID == "":
		return fault.Unprocessable("A droplet or a revision is named by its guid.")
	case in.Droplet != nil:
		d.Droplet = in.Droplet.GUID
	case in.Revision != nil:
		d.RevisionGUID = in.Revision.GUID
	}
	if o := in.Options; o != nil {
		d.MaxInFlight = o.MaxInFlight
		d.Scale = platform.ProcessScale{Instances: o.WebInstances, MemoryMB: o.MemoryMB, DiskMB: o.DiskMB, LogRateBytes: o.LogRate}
		if o.Canary != nil {
			for _, step := range o.Canary.Steps {
				d.Steps = append(d.Steps, step.Weight)
			}
		}
	}
	d.Metadata.Apply(noted(in.Metadata))
	d, err := s.Store.CreateDeployment(r.Context(), who, d, s.settings())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.deployment(d))
}

func (s *Server) updateDeployment(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.DeploymentChange
	if err := read(r, &in); err != nil {
		return err
	}
	d, err := s.Store.UpdateDeployment(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.deployment(d))
}

func (s *Server) continueDeployment(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.steered(w, r, who, s.Store.ContinueDeployment)
}

func (s *Server) cancelDeployment(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.steered(w, r, who, s.Store.CancelDeployment)
}

// steered is for what takes no body.
func (s *Server) steered(w http.ResponseWriter, r *http.Request, who platform.Who, steer func(context.Context, platform.Who, string) (platform.Deployment, error)) error {
	d, err := steer(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.deployment(d))
}
