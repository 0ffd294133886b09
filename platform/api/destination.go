package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func destination(d platform.Destination) v3.Destination {
	shown := v3.Destination{Resource: resource(d.GUID, d.CreatedAt, d.UpdatedAt), App: v3.DestinationApp{GUID: d.AppGUID, Process: &v3.DestinationProcess{Type: d.ProcessType}},
		Port: d.At(), Protocol: d.Protocol, State: v3.DestinationMapped}
	if d.Weight != 0 {
		shown.Weight = &d.Weight
	}
	if d.Pending {
		shown.State = v3.DestinationPending
	}
	return shown
}

func destinations(all []platform.Destination) []v3.Destination {
	shown := make([]v3.Destination, 0, len(all))
	for _, d := range all {
		shown = append(shown, destination(d))
	}
	return shown
}

func (s *Server) replyDestinations(w http.ResponseWriter, r platform.Route) error {
	self := "/v3/routes/" + r.GUID
	return web.JSON(w, http.StatusOK, v3.Destinations{Destinations: destinations(r.Destinations), Links: v3.Links{"self": s.link(self, "/destinations"), "route": s.link(self)}})
}

// listDestinations has no pages: a route has few.
func (s *Server) listDestinations(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	one, err := s.Store.Route(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	one.Destinations = slices.DeleteFunc(one.Destinations, func(d platform.Destination) bool {
		return q.Has("guids") && !slices.Contains(strings.Split(q.Get("guids"), ","), d.GUID) || q.Has("app_guids") && !slices.Contains(strings.Split(q.Get("app_guids"), ","), d.AppGUID)
	})
	return s.replyDestinations(w, one)
}

// readDestinations reads what a client asks for. Null is the default, and that of the protocol depends on the route.
func readDestinations(r *http.Request) ([]platform.Destination, error) {
	var in v3.DestinationsChange
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if in.Destinations == nil { // a request that forgot them must not unmap everything
		return nil, fault.Unprocessable("Destinations must be said: where the route leads, or [] for nowhere.")
	}
	all := []platform.Destination{}
	for _, d := range in.Destinations {
		one := platform.Destination{AppGUID: d.App.GUID, ProcessType: platform.WebProcess}
		if d.App.Process != nil {
			one.ProcessType = d.App.Process.Type
		}
		if d.Protocol != nil {
			one.Protocol = *d.Protocol
		}
		if d.Port != nil && *d.Port == 0 || d.Weight != nil && *d.Weight == 0 {
			return nil, fault.Unprocessable("The port and the weight of a destination cannot be 0. Leave them out for the default.")
		}
		if d.Port != nil {
			one.Port = *d.Port
		}
		if d.Weight != nil {
			one.Weight = *d.Weight
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *Server) addDestinations(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	wanted, err := readDestinations(r)
	if err != nil {
		return err
	}
	one, err := s.Store.AddDestinations(r.Context(), who, r.PathValue("guid"), wanted)
	if err != nil {
		return err
	}
	return s.replyDestinations(w, one)
}

func (s *Server) replaceDestinations(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	wanted, err := readDestinations(r)
	if err != nil {
		return err
	}
	one, err := s.Store.ReplaceDestinations(r.Context(), who, r.PathValue("guid"), wanted)
	if err != nil {
		return err
	}
	return s.replyDestinations(w, one)
}

func (s *Server) updateDestination(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.DestinationChange
	if err := read(r, &in); err != nil {
		return err
	}
	protocol := ""
	if in.Protocol != nil {
		protocol = *in.Protocol
	}
	d, err := s.Store.SetProtocol(r.Context(), who, r.PathValue("guid"), r.PathValue("destination"), protocol)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, destination(d))
}

func (s *Server) removeDestination(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if _, err := s.Store.RemoveDestination(r.Context(), who, r.PathValue("guid"), r.PathValue("destination")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
