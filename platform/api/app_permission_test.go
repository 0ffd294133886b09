package api_test

// More senders: those who change apps, those who may also only keep them running, and those who see what is secret.
var (
	developers = []string{"admin", "space_developer"}
	supporters = []string{"admin", "space_developer", "space_supporter"}
	secretive  = []string{"admin", "admin_read_only", "space_developer"}
)

func onApp(f fixture) string     { return f.app }
func onPackage(f fixture) string { return "package-" + f.app }
func onBuild(f fixture) string   { return "build-" + f.app }
func onDroplet(f fixture) string { return "droplet-" + f.app }
func onSidecar(f fixture) string { return "sidecar-" + f.app }

func onDeployment(f fixture) string { return "deployment-" + f.app }
func onRevision(f fixture) string   { return "revision-" + f.app }

// inApp is what the app of a fixture has: a web process, a sidecar, two packages, a build, two droplets, the first of which it has, a
// deployment that pauses and a revision.
func inApp(f fixture) []statement {
	return []statement{
		{`insert into apps (guid, space_guid, name, droplet_guid) values ($1, $2, 'app', $3)`, []any{f.app, f.space.GUID, onDroplet(f)}},
		{`insert into processes (guid, app_guid, type, instances, memory_mb, disk_mb, log_rate, health, readiness) values ($1, $1, 'web', 1, 256, 256, -1, '{"Type":"port"}', '{"Type":"process"}')`, []any{f.app}},
		{`insert into sidecars (guid, app_guid, name, command, process_types, origin) values ($1, $2, 'side', 'true', '{web}', 'user')`, []any{onSidecar(f), f.app}},
		{`insert into packages (guid, app_guid, type, state) values ($1, $3, 'bits', 'READY'), ($2, $3, 'bits', 'AWAITING_UPLOAD')`, []any{onPackage(f), "awaiting-" + f.app, f.app}},
		{`insert into builds (guid, app_guid, package_guid, state, lifecycle, memory_mb, disk_mb, actor_guid, actor_type, actor_name) values ($1, $2, $3, 'STAGED', 'buildpack', 1, 1, '', '', '')`, []any{onBuild(f), f.app, onPackage(f)}},
		{`insert into droplets (guid, app_guid, package_guid, build_guid, state, image, lifecycle) values ($1, $3, $4, $5, 'STAGED', 'r/a@sha256:1', 'buildpack'), ($2, $3, $4, $5, 'STAGED', 'r/a@sha256:2', 'buildpack')`,
			[]any{onDroplet(f), "other-" + f.app, f.app, onPackage(f), onBuild(f)}},
		{`insert into revisions (guid, app_guid, version, droplet_guid, description, body) values ($1, $2, 1, $3, '', '')`, []any{onRevision(f), f.app, onDroplet(f)}},
		{`insert into deployments (guid, app_guid, strategy, status_value, status_reason, max_in_flight, steps, step, scale, droplet_guid, previous_droplet_guid, revision_guid, version, previous_version)
			values ($1, $2, 'canary', 'ACTIVE', 'PAUSED', 1, '{}', 1, '{}', $3, $3, $4, 1, 0)`, []any{onDeployment(f), f.app, onDroplet(f), onRevision(f)}},
	}
}

// appPermissions are the rows about apps and what belongs to them.
func appPermissions() map[string]permission {
	says := func(body any) func(fixture) any { return func(fixture) any { return body } }
	note := says(object{"metadata": object{"labels": object{"a": "b"}}})
	manifest := says("applications: [{name: app, memory: 512M}]")
	rows := map[string]permission{
		"GET /v3/apps": {ok: 200, may: everyone, list: onApp, see: seeSpace},
		"POST /v3/apps": {ok: 201, may: developers, see: seeSpace, blind: 422, body: func(f fixture) any {
			return object{"name": "new", "relationships": object{"space": to(f.space.GUID)}}
		}},
		"PATCH /v3/apps/{guid}":                               {path: onApp, ok: 200, may: developers, see: seeSpace, body: says(object{"name": "renamed"})},
		"DELETE /v3/apps/{guid}":                              {path: onApp, ok: 202, may: developers, see: seeSpace},
		"POST /v3/apps/{guid}/actions/start":                  {path: onApp, ok: 200, may: supporters, see: seeSpace},
		"POST /v3/apps/{guid}/actions/stop":                   {path: onApp, ok: 200, may: supporters, see: seeSpace},
		"POST /v3/apps/{guid}/actions/restart":                {path: onApp, ok: 200, may: supporters, see: seeSpace},
		"PATCH /v3/apps/{guid}/relationships/current_droplet": {path: onApp, ok: 200, may: developers, see: seeSpace, body: func(f fixture) any { return to("other-" + f.app) }},
		"GET /v3/apps/{guid}/env":                             {path: onApp, ok: 200, may: secretive, see: seeSpace},
		"GET /v3/apps/{guid}/environment_variables":           {path: onApp, ok: 200, may: secretive, see: seeSpace},
		"PATCH /v3/apps/{guid}/environment_variables":         {path: onApp, ok: 200, may: developers, see: seeSpace, body: says(object{"var": object{"A": "b"}})},
		"PATCH /v3/apps/{guid}/features/{name}":               {path: onApp, ok: 200, may: developers, see: seeSpace, body: says(object{"enabled": false})},
		"GET /v3/apps/{guid}/manifest":                        {path: onApp, ok: 200, may: secretive, see: seeSpace},
		"POST /v3/spaces/{guid}/actions/apply_manifest":       {path: onSpace, ok: 202, may: developers, see: seeSpace, body: manifest},
		"POST /v3/spaces/{guid}/manifest_diff":                {path: onSpace, ok: 201, may: developers, see: seeSpace, body: manifest},

		"GET /v3/processes":                                   {ok: 200, may: everyone, list: onApp, see: seeSpace},
		"PATCH /v3/processes/{guid}":                          {path: onApp, ok: 200, may: developers, see: seeSpace, body: says(object{"command": "run"})},
		"POST /v3/processes/{guid}/actions/scale":             {path: onApp, ok: 202, may: supporters, see: seeSpace, body: says(object{"instances": 2})},
		"PATCH /v3/apps/{guid}/processes/{type}":              {path: onApp, ok: 200, may: developers, see: seeSpace, body: says(object{"command": "run"})},
		"POST /v3/apps/{guid}/processes/{type}/actions/scale": {path: onApp, ok: 202, may: supporters, see: seeSpace, body: says(object{"instances": 2})},

		"POST /v3/apps/{guid}/sidecars": {path: onApp, ok: 201, may: developers, see: seeSpace, body: says(object{"name": "new", "command": "true", "process_types": []string{"web"}})},
		"GET /v3/sidecars/{guid}":       {path: onSidecar, ok: 200, may: seeSpace},
		"PATCH /v3/sidecars/{guid}":     {path: onSidecar, ok: 200, may: developers, see: seeSpace, body: says(object{"name": "renamed"})},
		"DELETE /v3/sidecars/{guid}":    {path: onSidecar, ok: 204, may: developers, see: seeSpace},

		"GET /v3/deployments":                            {ok: 200, may: everyone, list: onDeployment, see: seeSpace},
		"POST /v3/deployments":                           {ok: 201, may: supporters, see: seeSpace, blind: 422, body: func(f fixture) any { return object{"relationships": object{"app": to(f.app)}} }},
		"GET /v3/deployments/{guid}":                     {path: onDeployment, ok: 200, may: seeSpace},
		"PATCH /v3/deployments/{guid}":                   {path: onDeployment, ok: 200, may: supporters, see: seeSpace, body: note},
		"POST /v3/deployments/{guid}/actions/continue":   {path: onDeployment, ok: 200, may: supporters, see: seeSpace},
		"POST /v3/deployments/{guid}/actions/cancel":     {path: onDeployment, ok: 200, may: supporters, see: seeSpace},
		"GET /v3/revisions/{guid}":                       {path: onRevision, ok: 200, may: seeSpace},
		"PATCH /v3/revisions/{guid}":                     {path: onRevision, ok: 200, may: developers, see: seeSpace, body: note},
		"GET /v3/revisions/{guid}/environment_variables": {path: onRevision, ok: 200, may: secretive, see: seeSpace},

		"POST /v3/resource_matches": {ok: 200, may: everyone, body: says(object{"resources": []any{}})},
		"GET /v3/packages":          {ok: 200, may: everyone, list: onPackage, see: seeSpace},
		"POST /v3/packages": {ok: 201, may: developers, see: seeSpace, blind: 422, body: func(f fixture) any {
			return object{"type": "bits", "relationships": object{"app": to(f.app)}}
		}},
		"GET /v3/packages/{guid}":          {path: onPackage, ok: 200, may: seeSpace},
		"PATCH /v3/packages/{guid}":        {path: onPackage, ok: 200, may: developers, see: seeSpace, body: note},
		"DELETE /v3/packages/{guid}":       {path: onPackage, ok: 202, may: developers, see: seeSpace},
		"POST /v3/packages/{guid}/upload":  {path: func(f fixture) string { return "awaiting-" + f.app }, ok: 503, may: developers, see: seeSpace}, // without a registry
		"GET /v3/packages/{guid}/droplets": {path: onPackage, ok: 200, may: seeSpace},

		"GET /v3/builds":          {ok: 200, may: everyone, list: onBuild, see: seeSpace},
		"POST /v3/builds":         {ok: 201, may: developers, see: seeSpace, blind: 422, body: func(f fixture) any { return object{"package": object{"guid": onPackage(f)}} }},
		"GET /v3/builds/{guid}":   {path: onBuild, ok: 200, may: seeSpace},
		"PATCH /v3/builds/{guid}": {path: onBuild, ok: 200, may: developers, see: seeSpace, body: note},

		"GET /v3/droplets":           {ok: 200, may: everyone, list: onDroplet, see: seeSpace},
		"GET /v3/droplets/{guid}":    {path: onDroplet, ok: 200, may: seeSpace},
		"PATCH /v3/droplets/{guid}":  {path: onDroplet, ok: 200, may: developers, see: seeSpace, body: note},
		"DELETE /v3/droplets/{guid}": {path: func(f fixture) string { return "other-" + f.app }, ok: 202, may: developers, see: seeSpace},

		"GET /api/v1/info":        {ok: 200, may: everyone},
		"GET /api/v1/read/{guid}": {path: onApp, ok: 200, may: seeSpace},
		// Nobody looks after streams here: who comes so far may read. See TestLogStream.
		"GET /v2/read": {query: func(f fixture) string { return "log&source_id=" + f.app }, ok: 503, may: seeSpace},
	}
	for _, path := range []string{"/v3/apps/{guid}", "/v3/processes/{guid}", "/v3/processes/{guid}/stats", "/v3/processes/{guid}/sidecars"} {
		rows["GET "+path] = permission{path: onApp, ok: 200, may: seeSpace}
	}
	for _, part := range []string{"relationships/current_droplet", "droplets/current", "features", "features/{name}", "ssh_enabled", "permissions", "packages", "droplets", "builds", "routes", "tasks",
		"revisions", "revisions/deployed", "processes", "processes/{type}", "processes/{type}/stats", "sidecars"} {
		rows["GET /v3/apps/{guid}/"+part] = permission{path: onApp, ok: 200, may: seeSpace}
	}
	return rows
}
