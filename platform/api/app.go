package api

import (
	"context"
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) appOf(a platform.App) v3.App {
	self := "/v3/apps/" + a.GUID
	action := func(name string) *v3.Link {
		return &v3.Link{Href: s.at(self + "/actions/" + name), Method: http.MethodPost}
	}
	return v3.App{Resource: resource(a.GUID, a.CreatedAt, a.UpdatedAt), Name: a.Name, State: string(a.State), Lifecycle: lifecycle(a.Lifecycle), Metadata: metadata(a.Metadata),
		Relationships: map[string]v3.ToOne{"space": v3.One(a.SpaceGUID), "current_droplet": v3.One(a.Droplet)},
		Links: v3.Links{"self": s.link(self), "space": s.link("/v3/spaces/", a.SpaceGUID), "environment_variables": s.link(self, "/environment_variables"),
			"processes": s.link(self, "/processes"), "packages": s.link(self, "/packages"), "current_droplet": s.link(self, "/droplets/current"), "droplets": s.link(self, "/droplets"),
			"tasks": s.link(self, "/tasks"), "revisions": s.link(self, "/revisions"), "deployed_revisions": s.link(self, "/revisions/deployed"), "features": s.link(self, "/features"),
			"start": action("start"), "stop": action("stop")}}
}

func lifecycle(l platform.Lifecycle) v3.Lifecycle {
	shown := v3.Lifecycle{Type: string(l.Type), Data: &v3.LifecycleData{}}
	if l.Type != platform.LifecycleDocker {
		shown.Data.Stack = l.Stack
		shown.Data.Buildpacks = append([]string{}, l.Buildpacks...)
	}
	return shown
}

// lifecycleChange reads what a request says of a lifecycle, if anything.
func lifecycleChange(in *v3.LifecycleChange) (platform.LifecycleChange, error) {
	if in == nil {
		return platform.LifecycleChange{}, nil
	}
	if len(in.Data.Credentials) > 0 {
		return platform.LifecycleChange{}, fault.Unprocessable("Credentials for buildpack images cannot be kept yet. Use buildpacks of the builder, or public images.")
	}
	return platform.LifecycleChange{Type: (*platform.LifecycleType)(in.Type), Buildpacks: in.Data.Buildpacks.Or([]string{}), Stack: in.Data.Stack}, nil
}

func (s *Server) listApps(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name", "state")
	if err != nil {
		return err
	}
	page, err := s.Store.Apps(r.Context(), who, l)
	if err != nil {
		return err
	}
	list := pageOf(s, r, l, page, s.appOf)
	if list.Included, err = s.besideApps(r, who, page.Records); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, list)
}

// besideApps reads the spaces and organizations of apps, if they are asked for.
func (s *Server) besideApps(r *http.Request, who platform.Who, apps []platform.App) (*v3.Included, error) {
	with, err := include(r, "space", "space.organization", "org")
	if err != nil || len(with) == 0 {
		return nil, err
	}
	var beside v3.Included
	spaces, err := s.Store.Spaces(r.Context(), who, platform.Only(distinct(apps, func(a platform.App) string { return a.SpaceGUID })))
	if err != nil {
		return nil, err
	}
	beside.Spaces = refer(spaces, s.space)
	if with["space.organization"] || with["org"] {
		orgs, err := s.Store.Orgs(r.Context(), who, platform.Only(distinct(apps, func(a platform.App) string { return a.OrgGUID })))
		if err != nil {
			return nil, err
		}
		beside.Organizations = refer(orgs, s.org)
	}
	return &beside, nil
}

func (s *Server) getApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	a, err := s.Store.App(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := struct {
		v3.App
		Included *v3.Included `json:"included,omitempty"`
	}{App: s.appOf(a)}
	if shown.Included, err = s.besideApps(r, who, []platform.App{a}); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) createApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.AppCreate
	if err := read(r, &in); err != nil {
		return err
	}
	a := platform.NewApp(in.Relationships.Space.GUID(), in.Name)
	if a.SpaceGUID == "" {
		return fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships")
	}
	change, err := lifecycleChange(in.Lifecycle)
	if err != nil {
		return err
	}
	if err := a.ChangeLifecycle(change, s.settings().Stacks); err != nil {
		return err
	}
	if err := a.SetEnv(in.Env); err != nil {
		return err
	}
	a.Metadata.Apply(noted(in.Metadata))
	if a, err = s.Store.CreateApp(r.Context(), who, a); err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.appOf(a))
}

func (s *Server) updateApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.AppChange
	if err := read(r, &in); err != nil {
		return err
	}
	change, err := lifecycleChange(in.Lifecycle)
	if err != nil {
		return err
	}
	a, err := s.Store.UpdateApp(r.Context(), who, r.PathValue("guid"), func(a *platform.App) error {
		if in.Name != nil {
			a.Name = *in.Name
		}
		a.Metadata.Apply(noted(in.Metadata))
		if in.Lifecycle == nil {
			return nil
		}
		return a.ChangeLifecycle(change, s.settings().Stacks)
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.appOf(a))
}

func (s *Server) deleteApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteApp(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

// Starting, stopping and restarting take no body, and any that comes is not looked at.

func (s *Server) startApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.switched(w, r, who, s.Store.StartApp)
}

func (s *Server) restartApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.switched(w, r, who, s.Store.RestartApp)
}

func (s *Server) stopApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return s.switched(w, r, who, func(ctx context.Context, who platform.Who, guid string, _ store.Settings) (platform.App, error) {
		return s.Store.StopApp(ctx, who, guid)
	})
}

func (s *Server) switched(w http.ResponseWriter, r *http.Request, who platform.Who, change func(context.Context, platform.Who, string, store.Settings) (platform.App, error)) error {
	a, err := change(r.Context(), who, r.PathValue("guid"), s.settings())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.appOf(a))
}

func appFeatures(a platform.App) []v3.Feature {
	return []v3.Feature{
		{Name: platform.FeatureSSH, Description: "Enable SSHing into the app.", Enabled: a.SSH},
		{Name: platform.FeatureRevisions, Description: "Enable versioning of an application", Enabled: true},
		{Name: platform.FeatureBindingFiles, Description: "Give instances the credentials of services as files, in the layout of servicebinding.io.", Enabled: a.BindingFiles},
		{Name: platform.FeatureNotices, Description: "Tell the developers of the space by mail when the app has crashed three times in a row, or an operation on a service fails.", Enabled: a.Notices},
	}
}

func (s *Server) listAppFeatures(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	a, err := s.Store.App(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	all := appFeatures(a)
	return web.JSON(w, http.StatusOK, v3.List[v3.Feature]{Resources: all, Pagination: s.pagination(r, platform.List{Page: 1, PerPage: platform.DefaultPerPage}, len(all), nil)})
}

func (s *Server) getAppFeature(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	a, err := s.Store.App(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.feature(w, r, a)
}

func (s *Server) feature(w http.ResponseWriter, r *http.Request, a platform.App) error {
	f, err := named(appFeatures(a), r.PathValue("name"), "Feature", func(f v3.Feature) string { return f.Name })
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, f)
}

func (s *Server) setAppFeature(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.FeatureChange
	if err := read(r, &in); err != nil {
		return err
	}
	a, err := s.Store.UpdateApp(r.Context(), who, r.PathValue("guid"), func(a *platform.App) error {
		if in.Enabled == nil {
			return fault.Unprocessable("Enabled must be a boolean")
		}
		if r.PathValue("name") == platform.FeatureNotices && *in.Enabled && s.Offer.Notify == nil {
			return platform.ErrNoNotices
		}
		return a.SetFeature(r.PathValue("name"), *in.Enabled)
	})
	if err != nil {
		return err
	}
	return s.feature(w, r, a)
}

func (s *Server) getSSHEnabled(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	a, err := s.Store.App(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	sp, err := s.Store.Space(r.Context(), who, a.SpaceGUID)
	if err != nil {
		return err
	}
	shown := v3.SSHEnabled{Enabled: true}
	switch {
	case s.Offer.SSH.Address == "":
		shown = v3.SSHEnabled{Reason: "Disabled globally"}
	case !sp.AllowSSH:
		shown = v3.SSHEnabled{Reason: "Disabled for space " + sp.Name}
	case !a.SSH:
		shown = v3.SSHEnabled{Reason: "Disabled for app"}
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) getAppPermissions(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	secrets, err := s.Store.SeesSecrets(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, v3.AppPermissions{Basic: true, Sensitive: secrets})
}

// listing of an app's own: the app must be there, and then narrows the list.
func listOfApp[T, U any](s *Server, w http.ResponseWriter, r *http.Request, who platform.Who, list func(context.Context, platform.Who, platform.List) (platform.Page[T], error), shape func(T) U) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	if err := s.ofApp(r, who, &l); err != nil {
		return err
	}
	page, err := list(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, shape)
}

// listNothingOfApp lists what apps do not have yet: tasks.
func (s *Server) listNothingOfApp(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if _, err := s.Store.App(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	return s.nothing(w, r)
}
