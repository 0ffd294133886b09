package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// The senders of the table: the three scopes that reach everywhere, every role, and somebody without one.
var (
	admin    = []string{"admin"}
	readers  = []string{"admin", "admin_read_only", "global_auditor"}
	inOrg    = []string{"organization_user", "organization_auditor", "organization_billing_manager", "organization_manager"}
	inSpace  = []string{"space_auditor", "space_developer", "space_manager", "space_supporter"}
	nobody   = []string{"none"}
	everyone = slices.Concat(readers, inOrg, inSpace, nobody)
	seeOrg   = slices.Concat(readers, inOrg, inSpace)
	seeSpace = slices.Concat(readers, inSpace, []string{"organization_manager"})
	manager  = []string{"admin", "organization_manager"}
	managers = []string{"admin", "organization_manager", "space_manager"}
	auditors = []string{"organization_auditor"}
)

// permission is a row: how the route is asked, and who gets what. Whoever is in neither list is refused with 403, or with blind
// if that is set: to those the record does not exist.
type permission struct {
	path  func(f fixture) string // nil: the pattern as it is
	inner func(f fixture) string // the second guid in it
	query func(f fixture) string // behind it
	body  func(f fixture) any
	ok    int
	may   []string
	see   []string // get 403; everybody else gets blind
	blind int      // 404 when zero
	list  func(f fixture) (guid string)
}

// fixture is a place of its own for each try.
type fixture struct {
	org   v3.Organization
	space v3.Space
	user  string // guid of somebody in the organization and the space
	role  string // their role in the organization
	inner string // their role in the space
	event string // guid of an event in the organization
	job   string
	app   string // in the space; see inApp for what it has
	n     int
}

func onOrg(f fixture) string   { return f.org.GUID }
func onSpace(f fixture) string { return f.space.GUID }

// permissions has a row for every route. A route without one fails the test below.
func permissions() map[string]permission {
	return map[string]permission{
		"GET /{$}":     {path: func(fixture) string { return "/" }, ok: 200, may: everyone},
		"GET /v3":      {ok: 200, may: everyone},
		"GET /v3/info": {ok: 200, may: everyone},

		"GET /v3/organizations":                                                {ok: 200, may: everyone, list: onOrg, see: seeOrg},
		"POST /v3/organizations":                                               {ok: 201, may: admin, see: everyone, body: func(f fixture) any { return object{"name": fmt.Sprint("new ", f.n)} }},
		"GET /v3/organizations/{guid}":                                         {path: onOrg, ok: 200, may: seeOrg},
		"PATCH /v3/organizations/{guid}":                                       {path: onOrg, ok: 200, may: manager, see: seeOrg, body: func(f fixture) any { return object{"name": fmt.Sprint("renamed ", f.n)} }},
		"DELETE /v3/organizations/{guid}":                                      {path: onOrg, ok: 202, may: admin, see: seeOrg},
		"GET /v3/organizations/{guid}/domains":                                 {path: onOrg, ok: 200, may: seeOrg},
		"GET /v3/organizations/{guid}/domains/default":                         {path: onOrg, ok: 200, may: seeOrg},
		"GET /v3/organizations/{guid}/usage_summary":                           {path: onOrg, ok: 200, may: seeOrg},
		"GET /v3/organizations/{guid}/relationships/default_isolation_segment": {path: onOrg, ok: 200, may: seeOrg},
		"GET /v3/organization_quotas":                                          {ok: 200, may: everyone},
		"GET /v3/organization_quotas/{guid}":                                   {path: func(fixture) string { return platform.DefaultQuota.GUID }, ok: 200, may: everyone},
		"GET /v3/isolation_segments":                                           {ok: 200, may: everyone},

		"GET /v3/spaces": {ok: 200, may: everyone, list: onSpace, see: seeSpace},
		"POST /v3/spaces": {ok: 201, may: manager, see: seeOrg, blind: 422, body: func(f fixture) any {
			return object{"name": "another", "relationships": object{"organization": to(f.org.GUID)}}
		}},
		"GET /v3/spaces/{guid}":                                 {path: onSpace, ok: 200, may: seeSpace},
		"PATCH /v3/spaces/{guid}":                               {path: onSpace, ok: 200, may: managers, see: seeSpace, body: func(fixture) any { return object{"name": "renamed"} }},
		"DELETE /v3/spaces/{guid}":                              {path: onSpace, ok: 202, may: manager, see: seeSpace},
		"GET /v3/spaces/{guid}/features":                        {path: onSpace, ok: 200, may: seeSpace},
		"GET /v3/spaces/{guid}/features/{name}":                 {path: onSpace, ok: 200, may: seeSpace},
		"PATCH /v3/spaces/{guid}/features/{name}":               {path: onSpace, ok: 200, may: managers, see: seeSpace, body: func(fixture) any { return object{"enabled": false} }},
		"GET /v3/spaces/{guid}/relationships/isolation_segment": {path: onSpace, ok: 200, may: seeSpace},
		"GET /v3/spaces/{guid}/running_security_groups":         {path: onSpace, ok: 200, may: seeSpace},
		"GET /v3/spaces/{guid}/staging_security_groups":         {path: onSpace, ok: 200, may: seeSpace},

		"GET /v3/roles": {ok: 200, may: everyone, list: func(f fixture) string { return f.inner }, see: seeSpace},
		"POST /v3/roles": {ok: 201, may: managers, see: seeSpace, blind: 422, body: func(f fixture) any {
			return object{"type": "space_auditor", "relationships": object{"space": to(f.space.GUID), "user": object{"data": object{"username": "ann"}}}}
		}},
		"GET /v3/roles/{guid}":    {path: func(f fixture) string { return f.role }, ok: 200, may: seeOrg},
		"DELETE /v3/roles/{guid}": {path: func(f fixture) string { return f.inner }, ok: 202, may: managers, see: seeSpace},

		"GET /v3/users":           {ok: 200, may: everyone, list: func(f fixture) string { return f.user }, see: seeOrg},
		"POST /v3/users":          {ok: 201, may: admin, see: everyone, body: func(f fixture) any { return object{"guid": fmt.Sprint("stranger-", f.n)} }},
		"GET /v3/users/{guid}":    {path: func(f fixture) string { return f.user }, ok: 200, may: seeOrg},
		"DELETE /v3/users/{guid}": {path: func(f fixture) string { return f.user }, ok: 202, may: admin, see: seeOrg},

		"GET /v3/stacks":            {ok: 200, may: everyone},
		"GET /v3/stacks/{guid}":     {path: func(fixture) string { return platform.Stack{Name: "proa"}.GUID() }, ok: 200, may: everyone},
		"GET /v3/buildpacks":        {ok: 200, may: everyone},
		"GET /v3/buildpacks/{guid}": {path: func(fixture) string { return platform.Buildpack{Name: "proa/java", Stack: "proa"}.GUID() }, ok: 200, may: everyone},

		"GET /v3/feature_flags":          {ok: 200, may: everyone},
		"GET /v3/feature_flags/{name}":   {ok: 200, may: everyone},
		"PATCH /v3/feature_flags/{name}": {ok: 200, may: admin, see: everyone, body: func(fixture) any { return object{"enabled": true} }},
		"GET /v3/audit_events":           {ok: 200, may: everyone, list: func(f fixture) string { return f.event }, see: slices.Concat(readers, auditors)},
		"GET /v3/audit_events/{guid}":    {path: func(f fixture) string { return f.event }, ok: 200, may: slices.Concat(readers, auditors)},
		"GET /v3/jobs/{guid}":            {path: func(f fixture) string { return f.job }, ok: 200, may: readers},
	}
}

// pathOf fills the pattern's blanks.
func (p permission) pathOf(pattern string, f fixture) string {
	_, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimSuffix(path, "{$}")
	if p.path != nil {
		path = strings.ReplaceAll(path, "{guid}", p.path(f))
	}
	if p.inner != nil {
		path = strings.NewReplacer("{destination}", p.inner(f), "{space}", p.inner(f), "{organization}", p.inner(f)).Replace(path)
	}
	if p.query != nil {
		path += "?" + p.query(f)
	}
	path = strings.ReplaceAll(path, "{type}", "web")
	if strings.HasPrefix(path, "/v3/spaces/") || strings.HasPrefix(path, "/v3/apps/") {
		return strings.ReplaceAll(path, "{name}", "ssh")
	}
	return strings.ReplaceAll(path, "{name}", "route_sharing")
}

func (p permission) want(sender string) int {
	switch {
	case slices.Contains(p.may, sender):
		return p.ok
	case slices.Contains(p.see, sender):
		return http.StatusForbidden
	case p.blind != 0:
		return p.blind
	}
	return http.StatusNotFound
}

// Every route, asked by everybody who can be told apart.
func TestPermissions(t *testing.T) {
	rows := permissions()
	maps.Copy(rows, appPermissions())
	maps.Copy(rows, routePermissions())
	maps.Copy(rows, instancePermissions())
	maps.Copy(rows, marketPermissions())
	routes := api.Routes()
	for pattern := range routes {
		if _, ok := rows[pattern]; !ok {
			t.Errorf("%s has no row in the table of permissions: say who may.", pattern)
		}
	}
	for pattern := range rows {
		if _, ok := routes[pattern]; !ok {
			t.Errorf("%s is in the table of permissions but not a route.", pattern)
		}
	}
	w := newWorld(t)
	do[v3.FeatureFlag](w, 200, http.MethodPatch, "/v3/feature_flags/"+platform.FlagSpaceBrokers, w.admin, object{"enabled": true})
	n := 0
	for pattern, guarded := range routes {
		row, method := rows[pattern], strings.Fields(pattern)[0]
		for _, sender := range everyone {
			n++
			f := w.fixture(n, sender)
			token := w.senderToken(sender, n)
			var body any
			if row.body != nil {
				body = row.body(f)
			}
			path := row.pathOf(pattern, f)
			if row.list != nil {
				path += "?per_page=5000&order_by=-created_at" // the newest: there are more than a page holds
			}
			got := w.call(method, path, token, body)
			if got.status != row.want(sender) {
				t.Errorf("%s as %s: %d, want %d: %s", pattern, sender, got.status, row.want(sender), got.body)
			}
			if row.list != nil && strings.Contains(got.body, `"guid":"`+row.list(f)+`"`) != slices.Contains(row.see, sender) {
				t.Errorf("%s as %s: in the list or not, against the table", pattern, sender)
			}
		}
		if !guarded {
			continue
		}
		n++
		if got := w.call(method, row.pathOf(pattern, w.fixture(n, "none")), "", nil); got.status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", pattern, got.status)
		}
	}
}

// senderToken is the token of somebody who is new, and holds the scope if the sender is known by one.
func (w *world) senderToken(sender string, n int) string {
	name := fmt.Sprint("sender", n)
	switch sender {
	case "admin":
		return w.token(name, platform.ScopeAdmin)
	case "admin_read_only":
		return w.token(name, platform.ScopeAdminReadOnly)
	case "global_auditor":
		return w.token(name, platform.ScopeGlobalAuditor)
	}
	return w.token(name)
}

// statement is a step of a fixture.
type statement struct {
	sql  string
	args []any
}

// fixture makes an organization and a space with somebody in it, in which the sender has the role.
func (w *world) fixture(n int, sender string) fixture {
	w.t.Helper()
	f := fixture{n: n, user: fmt.Sprint("member", n), role: platform.NewGUID(), inner: platform.NewGUID(), event: platform.NewGUID(), job: platform.NewGUID(), app: platform.NewGUID()}
	f.org.GUID, f.space.GUID = platform.NewGUID(), platform.NewGUID()
	statements := []statement{
		{`insert into orgs (guid, name) values ($1, $2)`, []any{f.org.GUID, fmt.Sprint("org ", n)}},
		{`insert into spaces (guid, org_guid, name, cluster_id) values ($1, $2, 'space', 'default')`, []any{f.space.GUID, f.org.GUID}},
		{`insert into users (guid, username, origin) values ($1, $1, 'uaa'), ($2, $3, 'uaa'), ('guid-of-ann', 'ann', 'uaa') on conflict do nothing`, []any{f.user, fmt.Sprint("sender", n, "-guid"), fmt.Sprint("sender", n)}},
		{`insert into roles (guid, type, user_guid, org_guid) values ($1, 'organization_user', $2, $3), ($4, 'organization_user', 'guid-of-ann', $3)`, []any{f.role, f.user, f.org.GUID, platform.NewGUID()}},
		{`insert into roles (guid, type, user_guid, org_guid, space_guid) values ($1, 'space_auditor', $2, $3, $4)`, []any{f.inner, f.user, f.org.GUID, f.space.GUID}},
		{`insert into audit_events (guid, type, actor_guid, actor_type, actor_name, target_guid, target_type, target_name, org_guid, request_id, data)
			values ($1, 'audit.organization.update', '', '', '', '', '', '', $2, '', '{}')`, []any{f.event, f.org.GUID}},
		{`insert into jobs (guid, operation, state, owner) values ($1, 'x', 'COMPLETE', 'somebody else')`, []any{f.job}},
	}
	statements = slices.Concat(statements, inApp(f), atApp(f), withInstances(f), inMarket(f))
	held := []string{sender}
	if slices.Contains(inSpace, sender) {
		held = append(held, "organization_user")
	}
	batch := &pgx.Batch{} // one round trip, one transaction
	for _, s := range statements {
		batch.Queue(s.sql, s.args...)
	}
	for _, role := range held {
		if role == "none" || slices.Contains(readers, role) {
			continue
		}
		var space any
		if platform.RoleType(role).InSpace() {
			space = f.space.GUID
		}
		batch.Queue(`insert into roles (guid, type, user_guid, org_guid, space_guid) values ($1, $2, $3, $4, $5)`, platform.NewGUID(), role, fmt.Sprint("sender", n, "-guid"), f.org.GUID, space)
	}
	must(w.t, w.pool.SendBatch(w.t.Context(), batch).Close())
	return f
}
