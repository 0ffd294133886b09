package api_test

import (
	"archive/zip"
	"bytes"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	"github.com/proa-dev/proa/platform/bits"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// packer puts images into a registry that lives as long as the test; bits is tested with the real one.
func packer(t *testing.T) *bits.Packer {
	t.Helper()
	server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	base, err := name.ParseReference(host + "/proa/stack:run")
	must(t, err)
	image, err := random.Image(100, 1)
	must(t, err)
	must(t, remote.Write(base, image, remote.WithTransport(server.Client().Transport)))
	return &bits.Packer{Registry: &bits.Registry{Prefix: host + "/proa", Transport: server.Client().Transport}, Base: base.Name(), Limits: bits.Limits{Upload: 1 << 20}, Dir: t.TempDir()}
}

func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var text bytes.Buffer
	z := zip.NewWriter(&text)
	for path, content := range files {
		f, err := z.Create(path)
		must(t, err)
		_, err = io.WriteString(f, content)
		must(t, err)
	}
	must(t, z.Close())
	return text.String()
}

// upload sends a form as the command-line client does: pairs of a field and its content.
func (w *world) upload(guid, token string, fields ...string) reply {
	w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		field := form.CreateFormField
		if fields[i] == "bits" {
			field = func(name string) (io.Writer, error) { return form.CreateFormFile(name, "package.zip") }
		}
		part, err := field(fields[i])
		must(w.t, err)
		_, err = io.WriteString(part, fields[i+1])
		must(w.t, err)
	}
	must(w.t, form.Close())
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/v3/packages/"+guid+"/upload", &body)
	must(w.t, err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Authorization", "bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return reply{resp.StatusCode, resp.Header, strings.TrimSpace(string(text))}
}

func (w *world) newPackage(app v3.App, token string) v3.Package {
	w.t.Helper()
	return do[v3.Package](w, 201, http.MethodPost, "/v3/packages", token, object{"type": "bits", "relationships": object{"app": to(app.GUID)}})
}

func TestUpload(t *testing.T) {
	into := packer(t)
	w := newWorld(t, func(s *api.Server) { s.Bits = into })
	_, space, dev := w.place()
	app := w.app(space, "blue")
	if got := w.call(http.MethodPost, "/v3/resource_matches", dev, object{"resources": []object{{"path": "a", "mode": "644", "checksum": object{"value": "x"}, "size_in_bytes": 1}}}); got.body != `{"resources":[]}` {
		t.Errorf("matches: %s", got.body)
	}
	p := w.newPackage(app, dev)
	if p.State != "AWAITING_UPLOAD" || p.Data.Checksum.Value != nil || p.Links["upload"].Href != w.url+"/v3/packages/"+p.GUID+"/upload" {
		t.Errorf("got %+v", p)
	}
	good := archive(t, map[string]string{"main.go": "package main", "a/b": "c"})
	w.unprocessable(w.upload(p.GUID, dev, "resources", `[{"path":"x"}]`, "bits", good), "No file of an earlier upload is kept, so resources must be empty: send all files as bits.")
	w.unprocessable(w.upload(p.GUID, dev, "resources", `[]`), "Upload must include bits: the app's files in a zip archive.")
	w.unprocessable(w.upload(p.GUID, dev, "resources", `{`), "Resources must be a JSON array.")
	w.unprocessable(w.upload(p.GUID, dev, "bits", good, "bits", good), "An upload holds one archive, and this one holds two files named bits.")
	w.unprocessable(w.call(http.MethodPost, "/v3/packages/"+p.GUID+"/upload", dev, "no form"), "An upload must be a form of the type multipart/form-data with a file named bits.")
	if got := do[v3.Package](w, 200, http.MethodGet, "/v3/packages/"+p.GUID, dev, nil); got.State != "AWAITING_UPLOAD" {
		t.Errorf("a form that is wrong takes the upload away: %+v", got)
	}
	if got := w.upload(p.GUID, dev, "resources", "[]", "bits", good); got.status != 200 || !strings.Contains(got.body, `"state":"READY"`) {
		t.Fatalf("the upload: %d %s", got.status, got.body)
	}
	w.unprocessable(w.upload(p.GUID, dev, "bits", good), "Bits may be uploaded only once. Create a new package to upload different bits.")
	stored, err := w.store.Package(t.Context(), platform.Who{Scopes: []string{platform.ScopeAdmin}}, p.GUID)
	must(t, err)
	ref, err := name.NewDigest(stored.Image)
	must(t, err)
	if _, err := remote.Head(ref, remote.WithTransport(into.Registry.Transport)); err != nil || stored.Size == 0 || !strings.Contains(stored.Image, "/packages/"+app.GUID+"@sha256:") {
		t.Errorf("stored %+v: %v", stored, err)
	}
	if p = do[v3.Package](w, 200, http.MethodGet, "/v3/packages/"+p.GUID, dev, nil); "sha256:"+*p.Data.Checksum.Value != ref.DigestStr() {
		t.Errorf("got %+v", p)
	}

	bad := w.newPackage(app, dev)
	const broken = "The upload is not a zip archive, or a part of it is missing. Push again."
	w.unprocessable(w.upload(bad.GUID, dev, "bits", "no zip"), broken)
	if bad = do[v3.Package](w, 200, http.MethodGet, "/v3/packages/"+bad.GUID, dev, nil); bad.State != "FAILED" || *bad.Data.Error != broken {
		t.Errorf("after an archive that is none: %+v", bad)
	}
	large := w.newPackage(app, dev)
	w.unprocessable(w.upload(large.GUID, dev, "bits", strings.Repeat("x", 3<<20)), "The upload is larger than 1M. Leave out what the app does not need, with a .cfignore file.")
	if left, err := os.ReadDir(into.Dir); err != nil || len(left) != 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
}

func TestPackages(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.app(space, "blue")
	p := w.newPackage(app, dev)
	w.unprocessable(w.call(http.MethodPost, "/v3/packages", dev, object{"type": "tar", "relationships": object{"app": to(app.GUID)}}), "Type must be one of 'bits, docker'")
	w.unprocessable(w.call(http.MethodPost, "/v3/packages", dev, object{"type": "docker", "data": object{"image": "nginx"}, "relationships": object{"app": to(app.GUID)}}), "Cannot create Docker package for a buildpack app.")
	w.unprocessable(w.call(http.MethodPost, "/v3/packages", dev, object{"type": "bits", "relationships": object{"app": to("none")}}), "Invalid app. Ensure that the app exists and you have access to it.")

	image := do[v3.App](w, 201, http.MethodPost, "/v3/apps", dev, object{"name": "image", "relationships": object{"space": to(space.GUID)}, "lifecycle": object{"type": "docker", "data": object{}}})
	got := w.call(http.MethodPost, "/v3/packages", dev, object{"type": "docker", "data": object{"image": "nginx:1", "username": "u", "password": "hunter2"}, "relationships": object{"app": to(image.GUID)}})
	if got.status != 201 || !strings.Contains(got.body, `"data":{"image":"nginx:1","username":"u","password":"***"}`) || !strings.Contains(got.body, `"state":"READY"`) {
		t.Errorf("a docker package: %d %s", got.status, got.body)
	}
	for query, want := range map[string]int{"?app_guids=" + app.GUID + "&order_by=-created_at&per_page=1&page=1": 1, "?states=READY": 1, "?types=bits,docker": 2, "?guids=" + p.GUID + "&app_guids=" + image.GUID: 0} {
		if list := do[v3.List[v3.Package]](w, 200, http.MethodGet, "/v3/packages"+query, dev, nil); len(list.Resources) != want {
			t.Errorf("%s: %+v", query, list.Resources)
		}
	}
	if list := do[v3.List[v3.Package]](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/packages", dev, nil); len(list.Resources) != 1 {
		t.Errorf("of the app: %+v", list)
	}
	if p = do[v3.Package](w, 200, http.MethodPatch, "/v3/packages/"+p.GUID, dev, object{"metadata": object{"labels": object{"a": "b"}}}); p.Metadata.Labels["a"] != "b" {
		t.Errorf("noted: %+v", p)
	}
	w.deleted("/v3/packages/"+p.GUID, dev)
	w.refused(w.call(http.MethodGet, "/v3/packages/"+p.GUID, dev, nil), 404, 10010, "CF-ResourceNotFound", "Package not found")
}

func TestBuildsAndDroplets(t *testing.T) {
	w := newWorld(t)
	org, space, dev := w.place()
	w.give("auditor", platform.SpaceAuditor, org, space)
	app := w.app(space, "blue")
	p := w.newPackage(app, dev)
	w.refused(w.call(http.MethodPost, "/v3/builds", dev, object{"package": object{"guid": p.GUID}}), 400, 10004, "CF-BadRequest", "Bad request: Cannot stage package whose state is not ready.")
	w.unprocessable(w.call(http.MethodPost, "/v3/builds", dev, object{"package": object{"guid": "none"}}), "Invalid package. Ensure that the package exists and you have access to it.")
	_, err := w.pool.Exec(t.Context(), `update packages set state = 'READY', image = 'r/p@sha256:1' where guid = $1`, p.GUID)
	must(t, err)
	w.unprocessable(w.call(http.MethodPost, "/v3/builds", dev, object{"package": object{"guid": p.GUID}, "lifecycle": object{"type": "docker", "data": object{}}}), "Lifecycle type docker does not fit a package of type bits.")
	b := do[v3.Build](w, 201, http.MethodPost, "/v3/builds", dev, object{"package": object{"guid": p.GUID}, "staging_memory_in_mb": 2048, "lifecycle": object{"type": "buildpack", "data": object{"buildpacks": []string{"proa/java"}}}})
	if b.State != "STAGING" || b.StagingMemory != 2048 || b.CreatedBy.Name != "dev" || b.Package.GUID != p.GUID || b.Droplet != nil || b.Lifecycle.Data.Buildpacks[0] != "proa/java" {
		t.Errorf("got %+v", b)
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/builds", dev, object{"package": object{"guid": p.GUID}}), "Only one build can be STAGING at a time per application.")
	w.unprocessable(w.call(http.MethodDelete, "/v3/packages/"+p.GUID, dev, nil), "The package is being staged. Wait until its build has ended, then delete it.")
	if tasks, err := w.store.Stagings(t.Context(), "default"); err != nil || len(tasks) != 1 || tasks[0].Package.Image != "r/p@sha256:1" {
		t.Errorf("to be staged: %+v %v", tasks, err)
	}
	must(t, w.store.FinishBuild(t.Context(), b.GUID, nil, "NoAppDetectedError - None fits."))
	if b = do[v3.Build](w, 200, http.MethodGet, "/v3/builds/"+b.GUID, dev, nil); b.State != "FAILED" || *b.Error != "NoAppDetectedError - None fits." {
		t.Errorf("failed: %+v", b)
	}
	b = do[v3.Build](w, 201, http.MethodPost, "/v3/builds", dev, object{"package": object{"guid": p.GUID}, "lifecycle": object{"type": "buildpack", "data": object{"buildpacks": []string{"proa/java"}}}})
	must(t, w.store.FinishBuild(t.Context(), b.GUID, &platform.Droplet{Image: "r/d@sha256:abc", Stack: "proa", Processes: []platform.DropletProcess{{Type: "web", Command: "secret"}}}, ""))
	b = do[v3.Build](w, 200, http.MethodPatch, "/v3/builds/"+b.GUID, dev, object{"metadata": object{"labels": object{"a": "b"}}})
	if b.State != "STAGED" || b.Droplet == nil || b.Metadata.Labels["a"] != "b" {
		t.Fatalf("staged: %+v", b)
	}
	if list := do[v3.List[v3.Build]](w, 200, http.MethodGet, "/v3/builds?states=STAGED&package_guids="+p.GUID, dev, nil); len(list.Resources) != 1 || list.Resources[0].GUID != b.GUID {
		t.Errorf("listed: %+v", list)
	}

	self := "/v3/droplets/" + b.Droplet.GUID
	for who, want := range map[string]map[string]string{dev: {"web": "secret"}, w.token("auditor"): {"redacted_message": v3.Hidden}} {
		d := do[v3.Droplet](w, 200, http.MethodGet, self, who, nil)
		if len(d.ProcessTypes) != 1 || d.ProcessTypes["web"] != want["web"] || d.State != "STAGED" || *d.Checksum.Value != "abc" || d.Lifecycle.Data.Buildpacks[0] != "proa/java" {
			t.Errorf("got %+v", d)
		}
	}
	for path, want := range map[string]int{"/v3/packages/" + p.GUID + "/droplets?states=STAGED&per_page=1&page=1": 1, "/v3/droplets?app_guids=" + app.GUID: 1, "/v3/droplets?states=EXPIRED": 0,
		"/v3/apps/" + app.GUID + "/droplets": 1, "/v3/apps/" + app.GUID + "/droplets?current=true": 0} {
		list := do[v3.List[v3.Droplet]](w, 200, http.MethodGet, path, dev, nil)
		if len(list.Resources) != want || want == 1 && list.Resources[0].ProcessTypes["web"] != "" {
			t.Errorf("%s: %+v", path, list.Resources)
		}
	}
	if d := do[v3.Droplet](w, 200, http.MethodPatch, self, dev, object{"metadata": object{"annotations": object{"a": "b"}}}); d.Metadata.Annotations["a"] != "b" {
		t.Errorf("noted: %+v", d)
	}
	w.deleted(self, dev)
	w.refused(w.call(http.MethodGet, self, dev, nil), 404, 10010, "CF-ResourceNotFound", "Droplet not found")
}
