package api

import (
	"net/http"
	"slices"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) process(p platform.Process) v3.Process {
	self, app := "/v3/processes/"+p.GUID, "/v3/apps/"+p.AppGUID
	version := p.Version
	if version == "" {
		version = p.GUID
	}
	return v3.Process{Resource: resource(p.GUID, p.CreatedAt, p.UpdatedAt), Type: p.Type, Command: p.Command, Instances: p.Instances, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB,
		LogRate: p.LogRateBytes, HealthCheck: check(p.HealthCheck), Readiness: check(p.Readiness), Version: version, Metadata: metadata(p.Metadata),
		Relationships: map[string]v3.ToOne{"app": v3.One(p.AppGUID), "revision": {}},
		Links:         v3.Links{"self": s.link(self), "scale": {Href: s.at(self + "/actions/scale"), Method: http.MethodPost}, "app": s.link(app), "stats": s.link(self, "/stats")}}
}

// hidden is a process without its command, which may hold secrets.
func (s *Server) hidden(p platform.Process) v3.Process {
	shown, text := s.process(p), v3.Hidden
	shown.Command = &text
	return shown
}

func check(h platform.HealthCheck) v3.HealthCheck {
	seconds := func(n int) *int {
		if n == 0 {
			return nil
		}
		return &n
	}
	return v3.HealthCheck{Type: string(h.Type), Data: v3.HealthCheckData{Endpoint: h.Endpoint, Timeout: seconds(h.Timeout), InvocationTimeout: seconds(h.InvocationTimeout), Interval: seconds(h.Interval)}}
}

func (s *Server) listProcesses(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	return s.processes(w, r, who, l)
}

func (s *Server) listAppProcesses(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	if err := s.ofApp(r, who, &l); err != nil {
		return err
	}
	return s.processes(w, r, who, l)
}

func (s *Server) processes(w http.ResponseWriter, r *http.Request, who platform.Who, l platform.List) error {
	page, err := s.Store.Processes(r.Context(), who, l)
	if err != nil {
		return err
	}
	list := pageOf(s, r, l, page, s.hidden)
	if err := s.embed(r, list.Resources); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, list)
}

// embed adds the instances in short, if they are asked for: one statement for all processes.
func (s *Server) embed(r *http.Request, processes []v3.Process) error {
	switch asked := r.URL.Query().Get("embed"); asked {
	case "":
		return nil
	case "process_instances":
	default:
		return badQuery("Invalid embedded resource: '%s'. Valid embedded resources are: 'process_instances'", asked)
	}
	guids := make([]string, len(processes))
	for i, p := range processes {
		guids[i] = p.GUID
	}
	seen, err := s.Store.Instances(r.Context(), guids)
	if err != nil {
		return err
	}
	for i := range processes {
		p := &processes[i]
		p.Seen = []v3.ProcessInstance{}
		for _, one := range seen[p.GUID] {
			p.Seen = append(p.Seen, v3.ProcessInstance{Index: one.Index, State: string(one.State), Since: one.Since.Unix()})
		}
	}
	return nil
}

// oneProcess finds a process by its own guid, or by its app and type.
func (s *Server) oneProcess(r *http.Request, who platform.Who) (platform.Process, error) {
	if kind := r.PathValue("type"); kind != "" {
		return s.Store.ProcessOf(r.Context(), who, r.PathValue("guid"), kind)
	}
	return s.Store.Process(r.Context(), who, r.PathValue("guid"))
}

func (s *Server) getProcess(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	p, err := s.oneProcess(r, who)
	if err != nil {
		return err
	}
	shown, err := s.open(r, who, p)
	if err != nil {
		return err
	}
	one := []v3.Process{shown}
	if err := s.embed(r, one); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, one[0])
}

// open is a process with its command, its own or else its droplet's, for those who may see it.
func (s *Server) open(r *http.Request, who platform.Who, p platform.Process) (v3.Process, error) {
	secrets, err := s.Store.SeesSecrets(r.Context(), who, p.AppGUID)
	if err != nil || !secrets {
		return s.hidden(p), err
	}
	if p.Command == nil {
		d, found, err := s.dropletOf(r, who, p.AppGUID)
		if err != nil {
			return v3.Process{}, err
		}
		i := slices.IndexFunc(d.Processes, func(of platform.DropletProcess) bool { return of.Type == p.Type })
		if found && i >= 0 {
			p.Command = new(d.Processes[i].Line())
		}
	}
	return s.process(p), nil
}

func (s *Server) updateProcess(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ProcessChange
	if err := read(r, &in); err != nil {
		return err
	}
	p, err := s.oneProcess(r, who)
	if err != nil {
		return err
	}
	change := platform.ProcessChange{Command: in.Command.Or(""), HealthCheck: checkChange(in.HealthCheck), Readiness: checkChange(in.Readiness)}
	p, err = s.Store.UpdateProcess(r.Context(), who, p.GUID, func(p *platform.Process) error {
		p.Metadata.Apply(noted(in.Metadata))
		if err := p.Metadata.Check(); err != nil {
			return err
		}
		return p.Update(change)
	})
	if err != nil {
		return err
	}
	shown, err := s.open(r, who, p)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

func checkChange(in *v3.HealthCheckChange) platform.HealthCheckChange {
	if in == nil {
		return platform.HealthCheckChange{}
	}
	return platform.HealthCheckChange{Type: (*platform.CheckType)(in.Type), Endpoint: in.Data.Endpoint.Or(""), Timeout: in.Data.Timeout.Or(0),
		InvocationTimeout: in.Data.InvocationTimeout.Or(0), Interval: in.Data.Interval.Or(0)}
}

func (s *Server) scaleProcess(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ProcessScale
	if err := read(r, &in); err != nil {
		return err
	}
	p, err := s.oneProcess(r, who)
	if err != nil {
		return err
	}
	p, err = s.Store.ScaleProcess(r.Context(), who, p.GUID, platform.ProcessScale{Instances: in.Instances, MemoryMB: in.MemoryMB, DiskMB: in.DiskMB, LogRateBytes: in.LogRate})
	if err != nil {
		return err
	}
	shown, err := s.open(r, who, p)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, shown)
}
