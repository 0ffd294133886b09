package e2e_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudfoundry/go-cfclient/v3/client"
	"github.com/cloudfoundry/go-cfclient/v3/config"
	"github.com/cloudfoundry/go-cfclient/v3/operation"
	"github.com/cloudfoundry/go-cfclient/v3/resource"
)

// TestCfclient drives a running Proa with a public client of Cloud Foundry, as it is: from the address of the API to instances that run.
// What it asks for in its own way, and how it reads the answers, is what other people's programs expect of us.
func TestCfclient(t *testing.T) {
	if os.Getenv("PROA_TEST_E2E") == "" {
		t.Skip("needs a whole Proa: make up, then . .run/env, then PROA_TEST_E2E=1 go test ./e2e")
	}
	w := newCfWorld(t)
	w.tenancy()
	w.installation()
	app := w.app()
	droplet := w.stage(app)
	w.configure(app)
	w.run(app, droplet)
	w.routes(app)
	w.manifest(app)
	w.trail(app)
	w.push()
	w.remove(app)
}

// cfWorld is an organization with one space, made and removed by the client.
type cfWorld struct {
	*testing.T
	ctx   context.Context
	cf    *client.Client
	org   *resource.Organization
	space *resource.Space
}

var cfPolling = &client.PollingOptions{FailedState: "FAILED", Timeout: 5 * time.Minute, CheckInterval: 200 * time.Millisecond}

func newCfWorld(t *testing.T) *cfWorld {
	w := &cfWorld{T: t, ctx: t.Context()}
	settings, err := config.New(os.Getenv("PROA_API_URL"), config.UserPassword(os.Getenv("PROA_ADMIN_USERNAME"), os.Getenv("PROA_ADMIN_PASSWORD")))
	w.must("find the authorization server", err)
	w.cf, err = client.New(settings)
	w.must("log in", err)
	w.org, err = w.cf.Organizations.Create(w.ctx, resource.NewOrganizationCreate("cfclient-"+strings.ToLower(rand.Text()[:8])))
	w.must("create an organization", err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		job, err := w.cf.Organizations.Delete(ctx, w.org.GUID)
		if err == nil {
			err = w.cf.Jobs.PollComplete(ctx, job, cfPolling)
		}
		w.must("delete the organization", err)
	})
	w.space, err = w.cf.Spaces.Create(w.ctx, resource.NewSpaceCreate("dev", w.org.GUID))
	w.must("create a space", err)
	return w
}

func (w *cfWorld) must(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

func cfWant[T comparable](t *cfWorld, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (w *cfWorld) tenancy() {
	orgs := client.NewOrganizationListOptions()
	orgs.Names = client.Filter{Values: []string{w.org.Name}}
	org, err := w.cf.Organizations.Single(w.ctx, orgs)
	w.must("find the organization by its name", err)
	cfWant(w, "organization", org.GUID, w.org.GUID)
	spaces := client.NewSpaceListOptions()
	spaces.OrganizationGUIDs = client.Filter{Values: []string{org.GUID}}
	found, included, err := w.cf.Spaces.ListIncludeOrganizationsAll(w.ctx, spaces)
	w.must("list spaces with their organizations", err)
	if len(found) != 1 || len(included) != 1 || found[0].GUID != w.space.GUID || included[0].GUID != org.GUID {
		w.Errorf("spaces: got %v with %v", found, included)
	}

	users := client.NewUserListOptions()
	users.UserNames = client.Filter{Values: []string{os.Getenv("PROA_ADMIN_USERNAME")}}
	me, err := w.cf.Users.Single(w.ctx, users)
	w.must("find the user", err)
	member, err := w.cf.Roles.CreateOrganizationRole(w.ctx, org.GUID, me.GUID, resource.OrganizationRoleUser)
	w.must("create a role in the organization", err)
	developer, err := w.cf.Roles.CreateSpaceRoleWithUsername(w.ctx, w.space.GUID, os.Getenv("PROA_ADMIN_USERNAME"), resource.SpaceRoleDeveloper, "uaa")
	w.must("create a role in the space by name", err)
	roles := client.NewRoleListOptions()
	roles.SpaceGUIDs = client.Filter{Values: []string{w.space.GUID}}
	held, people, err := w.cf.Roles.ListIncludeUsersAll(w.ctx, roles)
	w.must("list roles with their users", err)
	if len(held) != 1 || held[0].GUID != developer.GUID || len(people) != 1 || people[0].GUID != me.GUID {
		w.Errorf("roles: got %v of %v", held, people)
	}
	for _, role := range []string{developer.GUID, member.GUID} {
		w.finish("delete a role")(w.cf.Roles.Delete(w.ctx, role))
	}
}

// finish waits for a job.
func (w *cfWorld) finish(what string) func(job string, err error) {
	return func(job string, err error) {
		w.Helper()
		w.must(what, err)
		w.must(what, w.cf.Jobs.PollComplete(w.ctx, job, cfPolling))
	}
}

func (w *cfWorld) installation() {
	root, err := w.cf.Root.Get(w.ctx)
	w.must("read the root", err)
	cfWant(w, "authorization server", root.Links.Uaa.Href, os.Getenv("PROA_AUTH_URL"))
	flags, err := w.cf.FeatureFlags.ListAll(w.ctx, nil)
	w.must("list feature flags", err)
	flag, err := w.cf.FeatureFlags.Get(w.ctx, resource.FeatureFlagUserOrgCreation)
	w.must("read a feature flag", err)
	if !slices.ContainsFunc(flags, func(f *resource.FeatureFlag) bool { return f.Name == flag.Name }) {
		w.Errorf("feature flags: %s is missing", flag.Name)
	}
	_, err = w.cf.FeatureFlags.Update(w.ctx, resource.FeatureFlagUserOrgCreation, resource.NewFeatureFlagUpdate().WithEnabled(flag.Enabled))
	w.must("write a feature flag", err)
	domain, err := w.cf.Organizations.GetDefaultDomain(w.ctx, w.org.GUID)
	w.must("read the default domain", err)
	domains, err := w.cf.Domains.ListForOrganizationAll(w.ctx, w.org.GUID, nil)
	w.must("list the organization's domains", err)
	if !slices.ContainsFunc(domains, func(d *resource.Domain) bool { return d.GUID == domain.GUID }) {
		w.Errorf("domains: %s is missing", domain.Name)
	}
	stacks, err := w.cf.Stacks.ListAll(w.ctx, nil)
	w.must("list stacks", err)
	buildpacks, err := w.cf.Buildpacks.ListAll(w.ctx, nil)
	w.must("list buildpacks", err)
	if len(stacks) == 0 || !slices.ContainsFunc(buildpacks, func(b *resource.Buildpack) bool { return b.Name == "proa/procfile" }) {
		w.Errorf("%d stacks, buildpacks %v", len(stacks), buildpacks)
	}
}

func (w *cfWorld) app() *resource.App {
	app, err := w.cf.Applications.Create(w.ctx, resource.NewAppCreate("shop", w.space.GUID))
	w.must("create an app", err)
	cfWant(w, "state", app.State, "STOPPED")
	blue, gone := "blue", "gone"
	_, err = w.cf.Applications.SetEnvironmentVariables(w.ctx, app.GUID, map[string]*string{"COLOR": &blue, "OLD": &gone})
	w.must("set variables", err)
	_, err = w.cf.Applications.SetEnvironmentVariables(w.ctx, app.GUID, map[string]*string{"OLD": nil})
	w.must("unset a variable", err)
	variables, err := w.cf.Applications.GetEnvironmentVariables(w.ctx, app.GUID)
	w.must("read variables", err)
	if len(variables) != 1 || variables["COLOR"] == nil || *variables["COLOR"] != blue {
		w.Errorf("variables: got %v", variables)
	}
	env, err := w.cf.Applications.GetEnvironment(w.ctx, app.GUID)
	w.must("read the environment", err)
	cfWant(w, "variable in the environment", env.EnvVars["COLOR"], blue)
	_, space, org, err := w.cf.Applications.GetIncludeSpaceAndOrganization(w.ctx, app.GUID)
	w.must("read an app with its place", err)
	cfWant(w, "space beside the app", space.GUID, w.space.GUID)
	cfWant(w, "organization beside the app", org.GUID, w.org.GUID)
	ssh, err := w.cf.AppFeatures.UpdateSSH(w.ctx, app.GUID, false)
	w.must("switch a feature off", err)
	cfWant(w, "feature", ssh.Enabled, false)
	return app
}

// stage makes a droplet, and gives its guid.
func (w *cfWorld) stage(app *resource.App) string {
	pkg, err := w.cf.Packages.Create(w.ctx, resource.NewPackageCreate(app.GUID))
	w.must("create a package", err)
	_, err = w.cf.Packages.Upload(w.ctx, pkg.GUID, cfZip(w, "web: exec sleep 100000\nworker: exec sleep 100000\n"))
	w.must("upload a package", err)
	w.must("wait for the package", w.cf.Packages.PollReady(w.ctx, pkg.GUID, cfPolling))
	build, err := w.cf.Builds.Create(w.ctx, resource.NewBuildCreate(pkg.GUID))
	w.must("create a build", err)
	w.must("wait for the build", w.cf.Builds.PollStaged(w.ctx, build.GUID, cfPolling))
	build, err = w.cf.Builds.SingleForApp(w.ctx, app.GUID, nil)
	w.must("find the build", err)
	droplets, err := w.cf.Droplets.ListForPackageAll(w.ctx, pkg.GUID, nil)
	w.must("list droplets of the package", err)
	if len(droplets) != 1 || build.Droplet == nil || droplets[0].GUID != build.Droplet.GUID {
		w.Fatalf("droplets %v of the build %v", droplets, build)
	}
	droplet, err := w.cf.Droplets.Get(w.ctx, droplets[0].GUID) // a list hides commands
	w.must("read a droplet", err)
	cfWant(w, "process type of the droplet", droplet.ProcessTypes["worker"], "exec sleep 100000")
	return droplet.GUID
}

func cfZip(w *cfWorld, procfile string) *bytes.Reader {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	file, err := z.Create("Procfile")
	w.must("pack", err)
	_, err = file.Write([]byte(procfile))
	w.must("pack", err)
	w.must("pack", z.Close())
	return bytes.NewReader(packed.Bytes())
}

func (w *cfWorld) configure(app *resource.App) {
	web, err := w.cf.Processes.SingleForApp(w.ctx, app.GUID, nil)
	w.must("find the process", err)
	web, err = w.cf.Processes.Update(w.ctx, web.GUID, resource.NewProcessUpdate().WithHealthCheckType("process"))
	w.must("update the process", err)
	cfWant(w, "health check", web.HealthCheck.Type, "process")
	_, err = w.cf.Processes.Scale(w.ctx, web.GUID, resource.NewProcessScale().WithInstances(2).WithMemoryInMB(64).WithDiskInMB(128))
	w.must("scale", err)

	sidecar, err := w.cf.Sidecars.Create(w.ctx, app.GUID, resource.NewSidecarCreate("helper", "exec sleep 100000", []string{"web"}).WithMemoryInMB(16))
	w.must("create a sidecar", err)
	_, err = w.cf.Sidecars.Update(w.ctx, sidecar.GUID, resource.NewSidecarUpdate().WithCommand("exec sleep 200000"))
	w.must("update a sidecar", err)
	beside, err := w.cf.Sidecars.ListForProcessAll(w.ctx, web.GUID, nil)
	w.must("list sidecars of a process", err)
	if len(beside) != 1 || beside[0].Command != "exec sleep 200000" || beside[0].MemoryInMB != 16 {
		w.Errorf("sidecars: got %v", beside)
	}
}

func (w *cfWorld) run(app *resource.App, droplet string) {
	_, err := w.cf.Droplets.SetCurrentAssociationForApp(w.ctx, app.GUID, droplet)
	w.must("set the droplet", err)
	current, err := w.cf.Droplets.GetCurrentForApp(w.ctx, app.GUID)
	w.must("read the droplet", err)
	cfWant(w, "current droplet", current.GUID, droplet)
	processes, err := w.cf.Processes.ListForAppAll(w.ctx, app.GUID, nil)
	w.must("list processes", err)
	cfWant(w, "processes", len(processes), 2)
	started, err := w.cf.Applications.Start(w.ctx, app.GUID)
	w.must("start", err)
	cfWant(w, "state", started.State, "STARTED")
	w.running(app.GUID, 2)
	_, err = w.cf.Applications.Restart(w.ctx, app.GUID)
	w.must("restart", err)
	w.running(app.GUID, 2)
	stopped, err := w.cf.Applications.Stop(w.ctx, app.GUID)
	w.must("stop", err)
	cfWant(w, "state", stopped.State, "STOPPED")
}

// running waits until every instance of the web process runs.
func (w *cfWorld) running(app string, instances int) {
	w.Helper()
	var states []string
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		stats, err := w.cf.Processes.GetStatsForApp(w.ctx, app, "web")
		w.must("read stats", err)
		states = states[:0]
		for _, s := range stats.Stats {
			states = append(states, s.State)
		}
		if len(states) == instances && !slices.ContainsFunc(states, func(s string) bool { return s != "RUNNING" }) {
			return
		}
	}
	w.Fatalf("instances: got %v, want %d that run", states, instances)
}

// manifest takes the app's own manifest, changes it, sees the difference and applies it.
func (w *cfWorld) routes(app *resource.App) {
	domain, err := w.cf.Organizations.GetDefaultDomain(w.ctx, w.org.GUID)
	w.must("read the default domain", err)
	in := resource.NewRouteCreate(domain.GUID, w.space.GUID)
	in.Host, in.Path = new("cf-"+strings.ToLower(rand.Text()[:8])), new("/client")
	route, err := w.cf.Routes.Create(w.ctx, in)
	w.must("create a route", err)
	cfWant(w, "address", route.URL, *in.Host+"."+domain.Name+*in.Path)
	taken := client.NewRouteReservationListOptions()
	taken.Hosts, taken.Paths = *in.Host, *in.Path
	reserved, err := w.cf.Routes.IsRouteReserved(w.ctx, domain.GUID, taken)
	w.must("check the route", err)
	cfWant(w, "reserved", reserved, true)
	web := resource.NewRouteDestinationInsertOrReplace(app.GUID)
	_, err = w.cf.Routes.InsertDestinations(w.ctx, route.GUID, []*resource.RouteDestinationInsertOrReplace{web})
	w.must("map the route", err)
	replaced, err := w.cf.Routes.ReplaceDestinations(w.ctx, route.GUID, []*resource.RouteDestinationInsertOrReplace{web.WithProcessType("web").WithPort(9090).WithProtocol("http1")})
	w.must("replace the destinations", err)
	cfWant(w, "port", *replaced.Destinations[0].Port, 9090)
	cfWant(w, "process", replaced.Destinations[0].App.Process.Type, "web")
	found, _, err := w.cf.Routes.ListIncludeDomainsAll(w.ctx, nil)
	w.must("list routes with domains", err)
	if !slices.ContainsFunc(found, func(r *resource.Route) bool { return r.GUID == route.GUID }) {
		w.Errorf("routes: %s is missing", route.URL)
	}
	its, err := w.cf.Routes.ListForAppAll(w.ctx, app.GUID, nil)
	w.must("list routes of an app", err)
	cfWant(w, "routes of the app", len(its), 1)
	w.must("unmap the route", w.cf.Routes.RemoveDestination(w.ctx, route.GUID, *replaced.Destinations[0].GUID))
	w.finish("delete orphaned routes")(w.cf.Routes.DeleteUnmappedRoutesForSpace(w.ctx, w.space.GUID))
	_, err = w.cf.Routes.Get(w.ctx, route.GUID)
	if !resource.IsResourceNotFoundError(err) {
		w.Errorf("a deleted route: got %v, want that it is not found", err)
	}
}

func (w *cfWorld) manifest(app *resource.App) {
	text, err := w.cf.Manifests.Generate(w.ctx, app.GUID)
	w.must("generate a manifest", err)
	same, err := w.cf.Manifests.ManifestDiff(w.ctx, w.space.GUID, text)
	w.must("compare the manifest", err)
	cfWant(w, "differences to itself", len(same.Diff), 0)
	changed := strings.Replace(text, "blue", "green", 1)
	diff, err := w.cf.Manifests.ManifestDiff(w.ctx, w.space.GUID, changed)
	w.must("compare the changed manifest", err)
	if len(diff.Diff) != 1 || !strings.HasSuffix(diff.Diff[0].Path, "/env/COLOR") {
		w.Errorf("differences: got %v\n%s", diff.Diff, text)
	}
	w.finish("apply the manifest")(w.cf.Manifests.ApplyManifest(w.ctx, w.space.GUID, changed))
	variables, err := w.cf.Applications.GetEnvironmentVariables(w.ctx, app.GUID)
	w.must("read variables", err)
	cfWant(w, "variable after the manifest", *variables["COLOR"], "green")
}

func (w *cfWorld) trail(app *resource.App) {
	events := client.NewAuditEventListOptions()
	events.TargetGUIDs = client.ExclusionFilter{Filter: client.Filter{Values: []string{app.GUID}}}
	events.PerPage = 2 // several pages
	found, err := w.cf.AuditEvents.ListAll(w.ctx, events)
	w.must("list audit events", err)
	for _, kind := range []string{"audit.app.create", "audit.app.update", "audit.app.package.create", "audit.app.build.create", "audit.app.droplet.mapped", "audit.app.start", "audit.app.stop", "audit.app.process.scale"} {
		if !slices.ContainsFunc(found, func(e *resource.AuditEvent) bool { return e.Type == kind }) {
			w.Errorf("audit events: %s is missing", kind)
		}
	}
}

// push is the client's own way from a manifest to an app that runs.
func (w *cfWorld) push() {
	manifest := operation.NewAppManifest("pushed")
	manifest.Memory, manifest.HealthCheckType, manifest.HealthCheckHTTPEndpoint, manifest.NoRoute = "64M", operation.Process, "", true
	app, err := operation.NewAppPushOperation(w.cf, w.org.Name, w.space.Name).Push(w.ctx, manifest, cfZip(w, "web: exec sleep 100000\n"))
	w.must("push", err)
	w.running(app.GUID, 1)
}

func (w *cfWorld) remove(app *resource.App) {
	w.finish("delete the app")(w.cf.Applications.Delete(w.ctx, app.GUID))
	_, err := w.cf.Applications.Get(w.ctx, app.GUID)
	if !resource.IsResourceNotFoundError(err) {
		w.Errorf("a deleted app: got %v, want that it is not found", err)
	}
}
