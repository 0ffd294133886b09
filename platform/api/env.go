package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// getEnv shows what an app would find in its environment if it were started now. There are no variables that all apps get.
func (s *Server) getEnv(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	shot, err := s.Store.AppEnvironment(r.Context(), who, r.PathValue("guid"), s.settings())
	if err != nil {
		return err
	}
	system, err := shot.System()
	if err != nil {
		return err
	}
	env := v3.AppEnv{Staging: map[string]string{}, Running: map[string]string{}, Variables: shot.App.Env, System: map[string]any{}, Application: map[string]any{"VCAP_APPLICATION": shot.About()}}
	if env.Variables == nil {
		env.Variables = map[string]string{}
	}
	for name, value := range system {
		env.System[name] = value
		if json.Valid([]byte(value)) { // an object is shown as one
			env.System[name] = json.RawMessage(value)
		}
	}
	return web.JSON(w, http.StatusOK, env)
}

func (s *Server) variables(a platform.App) v3.Variables {
	shown := v3.Variables{Var: map[string]*string{}, Links: v3.Links{"self": s.link("/v3/apps/", a.GUID, "/environment_variables"), "app": s.link("/v3/apps/", a.GUID)}}
	for name, value := range a.Env {
		shown.Var[name] = &value
	}
	return shown
}

func (s *Server) getVariables(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	a, err := s.Store.AppWithEnv(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.variables(a))
}

func (s *Server) setVariables(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in struct {
		Var map[string]any `json:"var"` // of any kind, so that a refusal can name the variable
	}
	if err := read(r, &in); err != nil {
		return err
	}
	changes, err := texts(in.Var)
	if err != nil {
		return err
	}
	a, err := s.Store.UpdateApp(r.Context(), who, r.PathValue("guid"), func(a *platform.App) error {
		if in.Var == nil {
			return fault.Unprocessable("Var must be an object: variables by name, null for those to take away.")
		}
		return a.SetEnv(changes)
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.variables(a))
}

// texts refuses what is neither text nor null.
func texts(values map[string]any) (map[string]*string, error) {
	all := map[string]*string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name].(type) {
		case nil:
			all[name] = nil
		case string:
			all[name] = &value
		default:
			return nil, fault.Unprocessable("Non-string value in environment variable for key '%s', value '%v'", name, value)
		}
	}
	return all, nil
}
