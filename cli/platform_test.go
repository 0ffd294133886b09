package cli

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// routes is the API of the world: one space with the app shop, once a manifest has made it.
func (w *world) routes() map[string]http.HandlerFunc {
	named := func(guid, name string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if n := r.URL.Query().Get("names"); n != "" && n != name {
				w.list(rw)
				return
			}
			w.list(rw, map[string]any{"guid": guid, "name": name})
		}
	}
	fixed := func(status int, body any) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) { w.say(rw, status, body) }
	}
	app := map[string]any{"guid": "a-1", "name": "shop", "state": "STARTED", "lifecycle": map[string]any{"type": "buildpack", "data": map[string]any{}}}
	process := map[string]any{"guid": "p-1", "type": "web", "instances": 2, "memory_in_mb": 256, "relationships": map[string]any{"app": v3.One("a-1")}}
	return map[string]http.HandlerFunc{
		"GET /{$}": func(rw http.ResponseWriter, _ *http.Request) {
			link := map[string]string{"href": w.URL}
			w.say(rw, http.StatusOK, map[string]any{"links": map[string]any{"login": link, "uaa": link, "log_cache": link, "logging": nil, "app_ssh": w.ssh.link(),
				"cloud_controller_v3": map[string]any{"href": w.URL + "/v3", "meta": map[string]string{"version": v3.Version}}}})
		},
		"GET /login": fixed(http.StatusOK, map[string]any{"prompts": map[string]any{
			"username": []string{"text", "User name"}, "password": []string{"password", "Password"}, "passcode": []string{"password", "Code"}}}),
		"POST /oauth/token":     w.token,
		"POST /oauth/revoke":    func(http.ResponseWriter, *http.Request) { w.refresh = "" },
		"GET /v3/organizations": named("o-1", "research"),
		"GET /v3/spaces":        named("s-1", "dev"),
		"POST /v3/organizations": func(rw http.ResponseWriter, _ *http.Request) {
			w.refuse(rw, 422, "CF-UnprocessableEntity", "Organization 'research' already exists.")
		},
		"POST /v3/spaces": func(rw http.ResponseWriter, _ *http.Request) {
			w.refuse(rw, 422, "CF-UnprocessableEntity", "Name must be unique per organization")
		},
		"GET /v3/apps": func(rw http.ResponseWriter, r *http.Request) {
			if w.manifest == "" || r.URL.Query().Get("space_guids") != "s-1" || !strings.Contains("shop", r.URL.Query().Get("names")) {
				w.list(rw)
				return
			}
			w.list(rw, app)
		},
		"POST /v3/spaces/s-1/manifest_diff": fixed(http.StatusCreated, map[string]any{"diff": []any{
			map[string]any{"op": "replace", "path": "/applications/0/memory", "was": "1G", "value": "256M"},
			map[string]any{"op": "add", "path": "/applications/0/default-route", "value": true}}}),
		"POST /v3/spaces/s-1/actions/apply_manifest": func(rw http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Header.Get("Content-Type") != "application/x-yaml" {
				w.refuse(rw, http.StatusBadRequest, "CF-MessageParseError", "Send YAML.")
				return
			}
			w.manifest = string(body)
			rw.Header().Set("Location", w.URL+"/v3/jobs/j-1")
			rw.WriteHeader(http.StatusAccepted)
		},
		"GET /v3/jobs/j-1":                fixed(http.StatusOK, map[string]any{"guid": "j-1", "state": "COMPLETE", "warnings": []any{map[string]string{"detail": "mind the gap"}}}),
		"POST /v3/packages":               fixed(http.StatusCreated, map[string]any{"guid": "k-1", "state": "AWAITING_UPLOAD"}),
		"POST /v3/packages/{guid}/upload": w.takeUpload,
		"GET /v3/packages/{guid}": func(rw http.ResponseWriter, _ *http.Request) {
			w.say(rw, http.StatusOK, map[string]any{"guid": "k-1", "state": map[bool]string{true: "READY", false: "AWAITING_UPLOAD"}[w.uploaded != nil]})
		},
		"POST /v3/builds": func(rw http.ResponseWriter, _ *http.Request) {
			if w.stages {
				w.refuse(rw, 422, "CF-UnprocessableEntity", "Only one build can be STAGING at a time per application.")
				return
			}
			w.say(rw, http.StatusCreated, map[string]any{"guid": "b-1", "state": "STAGING"})
		},
		"GET /v3/builds/{guid}": func(rw http.ResponseWriter, _ *http.Request) {
			if w.endless {
				w.say(rw, http.StatusOK, map[string]any{"guid": "b-1", "state": "STAGING"})
				return
			}
			if w.fails != "" {
				w.say(rw, http.StatusOK, map[string]any{"guid": "b-1", "state": "FAILED", "error": w.fails})
				return
			}
			w.say(rw, http.StatusOK, map[string]any{"guid": "b-1", "state": "STAGED", "droplet": map[string]string{"guid": "d-1"}})
		},
		"PATCH /v3/apps/a-1/relationships/current_droplet": fixed(http.StatusOK, map[string]any{"data": map[string]string{"guid": "d-1"}}),
		"POST /v3/apps/a-1/actions/{what}":                 fixed(http.StatusOK, app),
		"GET /v3/apps/a-1/routes": func(rw http.ResponseWriter, _ *http.Request) {
			w.list(rw, map[string]any{"guid": "r-1", "url": "shop.example.com", "protocol": "http", "destinations": []any{map[string]any{"app": map[string]any{"guid": "a-1"}}}})
		},
		"GET /v3/deployments": func(rw http.ResponseWriter, _ *http.Request) { w.list(rw) },
		"GET /v3/apps/a-1/droplets/current": func(rw http.ResponseWriter, _ *http.Request) {
			w.refuse(rw, 404, "CF-ResourceNotFound", "Droplet not found")
		},
		"GET /v3/apps/a-1/processes":     func(rw http.ResponseWriter, _ *http.Request) { w.list(rw, process) },
		"GET /v3/processes/p-1/sidecars": func(rw http.ResponseWriter, _ *http.Request) { w.list(rw, map[string]any{"name": "config server"}) },
		"GET /v3/processes/p-1/stats": func(rw http.ResponseWriter, _ *http.Request) {
			state := w.states[0]
			if len(w.states) > 1 {
				w.states = w.states[1:]
			}
			w.say(rw, http.StatusOK, map[string]any{"resources": []any{map[string]any{"type": "web", "index": 0, "state": state}, map[string]any{"type": "web", "index": 1, "state": state}}})
		},
		"GET /api/v1/read/a-1": w.readLogs,
	}
}

func (w *world) takeUpload(rw http.ResponseWriter, r *http.Request) {
	file, _, err := r.FormFile("bits")
	if err != nil || r.ContentLength <= 0 || r.FormValue("resources") != "[]" {
		w.refuse(rw, 422, "CF-UnprocessableEntity", "Send resources and bits, with the length of all.")
		return
	}
	data, err := io.ReadAll(file)
	if err != nil {
		w.t.Error(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		w.refuse(rw, 422, "CF-UnprocessableEntity", "Not a zip.")
		return
	}
	w.uploaded = map[string]*zip.File{}
	for _, f := range archive.File {
		w.uploaded[f.Name] = f
	}
	w.say(rw, http.StatusOK, map[string]any{"guid": "k-1", "state": "PROCESSING_UPLOAD"})
}

// readLogs has one line of staging and one of the app, once something was uploaded, and honours the start time.
func (w *world) readLogs(rw http.ResponseWriter, r *http.Request) {
	if w.broken {
		w.refuse(rw, http.StatusNotFound, "CF-ResourceNotFound", "No logs.")
		return
	}
	var lines []any
	if w.uploaded != nil && r.URL.Query().Get("start_time") < "0" && r.URL.Query().Get("descending") == "" || r.URL.Query().Get("limit") == "1000" && r.URL.Query().Get("descending") == "true" {
		for i, source := range []string{"STG", "APP/PROC/WEB"} {
			lines = append(lines, map[string]any{"timestamp": []string{"2000000000", "1000000000"}[i], "instance_id": "0", "source_id": "a-1", "tags": map[string]string{"source_type": source},
				"log": map[string]any{"payload": []byte("said by " + source), "type": "OUT"}})
		}
	}
	w.say(rw, http.StatusOK, map[string]any{"envelopes": map[string]any{"batch": append([]any{}, lines...)}})
}
