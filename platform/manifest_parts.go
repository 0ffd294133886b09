package platform

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settingsKeys are the keys of a process. Cloud Foundry's client spells the disk differently for an app and for a process.
func (w *manifestWalk) settingsKeys(s *ManifestSettings, disk string) manifestKeys {
	health, ready := &s.Change.HealthCheck, &s.Change.Readiness
	seconds := func(to **int, most int) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) { *to = w.whole(n, path, 1, most) }
	}
	endpoint := func(to **string) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) { *to = w.endpoint(n, path) }
	}
	check := func(to **CheckType) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) { *to = w.checkType(n, path) }
	}
	return manifestKeys{
		"command":                              func(n *yaml.Node, path string) { s.Change.Command = w.command(n, path) },
		"instances":                            func(n *yaml.Node, path string) { s.Scale.Instances = w.whole(n, path, 0, maxInstances) },
		"memory":                               func(n *yaml.Node, path string) { s.Scale.MemoryMB = w.megabytes(n, path) },
		disk:                                   func(n *yaml.Node, path string) { s.Scale.DiskMB = w.megabytes(n, path) },
		"log-rate-limit-per-second":            func(n *yaml.Node, path string) { s.Scale.LogRateBytes = w.logRate(n, path) },
		"timeout":                              seconds(&health.Timeout, maxStartSeconds),
		"health-check-type":                    check(&health.Type),
		"health-check-http-endpoint":           endpoint(&health.Endpoint),
		"health-check-invocation-timeout":      seconds(&health.InvocationTimeout, maxCheckSeconds),
		"health-check-interval":                seconds(&health.Interval, maxCheckSeconds),
		"readiness-health-check-type":          check(&ready.Type),
		"readiness-health-check-http-endpoint": endpoint(&ready.Endpoint),
		"readiness-health-check-invocation-timeout": seconds(&ready.InvocationTimeout, maxCheckSeconds),
		"readiness-health-check-interval":           seconds(&ready.Interval, maxCheckSeconds),
	}
}

// command is empty for null: it goes back to what the droplet says.
func (w *manifestWalk) command(n *yaml.Node, path string) *string {
	if isNull(behind(n)) {
		return new(string)
	}
	s := w.scalar(n, path)
	if s != nil && *s != "" {
		if wrong := commandFault(*s); wrong != "" {
			w.wrong(path, "%s", wrong)
		}
	}
	return s
}

func (w *manifestWalk) logRate(n *yaml.Node, path string) *int64 {
	s := w.scalar(n, path)
	if s == nil {
		return nil
	}
	rate, wrong := logRate(*s)
	if wrong != "" {
		w.wrong(path, "%s", wrong)
		return nil
	}
	return &rate
}

// checkType takes none, as it was once called, for process.
func (w *manifestWalk) checkType(n *yaml.Node, path string) *CheckType {
	s := w.scalar(n, path)
	if s == nil {
		return nil
	}
	kind := CheckType(*s)
	if kind == "none" {
		kind = CheckProcess
	}
	if !kind.known() {
		w.wrong(path, "must be one of http, port, process.")
		return nil
	}
	return &kind
}

func (w *manifestWalk) endpoint(n *yaml.Node, path string) *string {
	s := w.scalar(n, path)
	if s != nil && !validEndpoint(*s) {
		w.wrong(path, "must be the path of a URL such as /health.")
		return nil
	}
	return s
}

func (w *manifestWalk) processes(n *yaml.Node, path string) []ManifestProcess {
	var all []ManifestProcess
	for i, child := range w.list(n, path, maxProcesses) {
		at := fmt.Sprintf("%s[%d]", path, i)
		p := ManifestProcess{}
		keys := w.settingsKeys(&p.ManifestSettings, "disk_quota")
		keys["type"] = func(n *yaml.Node, path string) { setIf(&p.Type, w.processType(n, path)) }
		w.object(child, at, keys)
		if lacks(child, "type") {
			w.wrong(at+".type", "is missing: say which process it is, such as web.")
		}
		if p.Type != "" && slices.ContainsFunc(all, func(o ManifestProcess) bool { return o.Type == p.Type }) {
			w.wrong(at+".type", "must not be '%s' again: each process is named once.", p.Type)
		}
		all = append(all, p)
	}
	return all
}

func (w *manifestWalk) processType(n *yaml.Node, path string) *string {
	s := w.scalar(n, path)
	if s != nil {
		if wrong := processTypeFault(*s); wrong != "" {
			w.wrong(path, "%s", wrong)
			return nil
		}
	}
	return s
}

func (w *manifestWalk) sidecars(n *yaml.Node, path string) []ManifestSidecar {
	var all []ManifestSidecar
	for i, child := range w.list(n, path, maxSidecars) {
		at := fmt.Sprintf("%s[%d]", path, i)
		s := w.sidecar(child, at)
		if s.Name != "" && slices.ContainsFunc(all, func(o ManifestSidecar) bool { return o.Name == s.Name }) {
			w.said(at, ErrSidecarExists(s.Name))
		}
		all = append(all, s)
	}
	return all
}

func (w *manifestWalk) sidecar(n *yaml.Node, path string) ManifestSidecar {
	var s ManifestSidecar
	keys := manifestKeys{
		"name":          func(n *yaml.Node, path string) { setIf(&s.Name, w.text(n, path, maxName)) },
		"process_types": func(n *yaml.Node, path string) { s.ProcessTypes = w.sidecarTypes(n, path) },
		"command":       func(n *yaml.Node, path string) { setIf(&s.Command, w.sidecarCommand(n, path)) },
		"memory":        func(n *yaml.Node, path string) { s.MemoryMB = w.megabytes(n, path) },
	}
	w.objectBut(n, path, keys, func(key string) bool {
		err := RefuseSidecarKey(key)
		w.said(under(path, key), err)
		return err != nil
	})
	if lacks(n, "name") {
		w.wrong(path+".name", "is missing: a sidecar needs a name.")
	}
	if lacks(n, "process-types") {
		w.wrong(path+".process_types", "is missing: list the processes the sidecar runs beside, such as [web].")
	}
	if lacks(n, "command") {
		w.wrong(path+".command", "is missing: say how to start the sidecar.")
	}
	return s
}

func (w *manifestWalk) sidecarCommand(n *yaml.Node, path string) *string {
	s := w.scalar(n, path)
	if s != nil {
		if wrong := commandFault(*s); wrong != "" {
			w.wrong(path, "%s", wrong)
		}
	}
	return s
}

func (w *manifestWalk) sidecarTypes(n *yaml.Node, path string) []string {
	types := w.texts(n, path, maxName)
	if n = behind(n); n.Kind == yaml.SequenceNode && len(types) == len(n.Content) {
		if wrong := sidecarTypesFault(types); wrong != "" {
			w.wrong(path, "%s", wrong)
		}
	}
	return types
}

func (w *manifestWalk) routes(n *yaml.Node, path string) []ManifestRoute {
	var all []ManifestRoute
	for i, child := range w.list(n, path, maxManifestList) {
		at := fmt.Sprintf("%s[%d]", path, i)
		var r ManifestRoute
		w.object(child, at, manifestKeys{
			"route":    func(n *yaml.Node, path string) { setIf(&r.Route, w.route(n, path)) },
			"protocol": func(n *yaml.Node, path string) { setIf(&r.Protocol, w.choice(n, path, "http1", "http2", "tcp")) },
			"options":  func(n *yaml.Node, path string) { r.Options = w.textMap(n, path) },
		})
		if lacks(child, "route") {
			w.wrong(at+".route", "is missing: write the route such as www.example.org/path.")
		}
		all = append(all, r)
	}
	return all
}

// route looks only at the letters; which domain it is of is known elsewhere.
func (w *manifestWalk) route(n *yaml.Node, path string) *string {
	s := w.text(n, path, maxReference)
	if s != nil && (strings.ContainsAny(*s, " \t\"'<>\\^`{|}") || strings.Contains(*s, "://") || strings.HasPrefix(*s, "/")) {
		w.wrong(path, "must be a host with an optional port and path, such as www.example.org/path, without http://.")
		return nil
	}
	return s
}

// services are names, or maps that say more.
func (w *manifestWalk) services(n *yaml.Node, path string) []ManifestService {
	var all []ManifestService
	for i, child := range w.list(n, path, maxManifestList) {
		at := fmt.Sprintf("%s[%d]", path, i)
		var s ManifestService
		if behind(child).Kind == yaml.ScalarNode && !isNull(behind(child)) {
			setIf(&s.Name, w.text(child, at, maxName))
			all = append(all, s)
			continue
		}
		w.object(child, at, manifestKeys{
			"name":         func(n *yaml.Node, path string) { setIf(&s.Name, w.text(n, path, maxName)) },
			"binding_name": func(n *yaml.Node, path string) { setIf(&s.BindingName, w.text(n, path, maxName)) },
			"parameters":   func(n *yaml.Node, path string) { s.Parameters = w.filledMap(n, path) },
		})
		if lacks(child, "name") {
			w.wrong(at+".name", "is missing: say which service instance to bind.")
		}
		all = append(all, s)
	}
	return all
}
