package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func onInstance(f fixture) string   { return "instance-" + f.app }
func onProvided(f fixture) string   { return "provided-" + f.app }
func onShared(f fixture) string     { return "shared-" + f.app }
func onOtherSpace(f fixture) string { return "space-" + f.app }
func onBinding(f fixture) string    { return "binding-" + f.app }
func onKey(f fixture) string        { return "key-" + f.app }

// withInstances is what the app of a fixture is bound to: a managed instance with a key, one that a user provides, and a managed one that
// is shared with another space of the organization. The broker keeps what it was asked for.
func withInstances(f fixture) []statement {
	return []statement{
		{`insert into service_brokers (guid, name, url, credentials, state) values ($1, $1, 'http://broker.example.org', '', 'AVAILABLE')`, []any{"b-" + f.app}},
		{`insert into service_offerings (guid, broker_guid, unique_id, name, description, active, bindable, plan_updateable, instances_retrievable, bindings_retrievable, context_updates, shareable,
			tags, requires, documentation_url, catalog_metadata) values ($1, $2, $1, $1, '', true, true, true, true, true, false, true, '{}', '{}', '', '{}')`, []any{"o-" + f.app, "b-" + f.app}},
		{`insert into service_plans (guid, offering_guid, unique_id, name, description, free, active, bindable, plan_updateable, visibility, max_polling, catalog_metadata, schemas)
			values ($1, $2, $1, $1, '', true, true, true, true, 'organization', 0, '{}', '{}')`, []any{"p-" + f.app, "o-" + f.app}},
		{`insert into service_plan_orgs (plan_guid, org_guid) values ($1, $2)`, []any{"p-" + f.app, f.org.GUID}},
		{`insert into spaces (guid, org_guid, name, cluster_id) values ($1, $2, 'other', 'default')`, []any{onOtherSpace(f), f.org.GUID}},
		{`insert into service_instances (guid, space_guid, name, plan_guid, held, service_id, plan_id) values ($1, $3, 'db', $4, true, 's', 'p'), ($2, $3, 'shared', $4, true, 's', 'p')`,
			[]any{onInstance(f), onShared(f), f.space.GUID, "p-" + f.app}},
		{`insert into service_instances (guid, space_guid, name) values ($1, $2, 'provided')`, []any{onProvided(f), f.space.GUID}},
		{`insert into service_instance_shares (instance_guid, space_guid) values ($1, $2)`, []any{onShared(f), onOtherSpace(f)}},
		{`insert into service_bindings (guid, type, name, instance_guid, app_guid, space_guid, held) values ($1, 'app', '', $3, $4, $5, true), ($2, 'key', 'key', $3, null, $5, true)`,
			[]any{onBinding(f), onKey(f), onInstance(f), f.app, f.space.GUID}},
	}
}

// instancePermissions are the rows about service instances and bindings. Sharing is refused to developers by its flag, which is off.
func instancePermissions() map[string]permission {
	says := func(body any) func(fixture) any { return func(fixture) any { return body } }
	note := says(object{"metadata": object{"labels": object{"a": "b"}}})
	const one, shared, bindings, binding = "/v3/service_instances/{guid}", "/v3/service_instances/{guid}/relationships/shared_spaces", "/v3/service_credential_bindings", "/v3/service_credential_bindings/{guid}"
	return map[string]permission{
		"GET /v3/service_instances": {ok: 200, may: everyone, list: onInstance, see: seeSpace},
		"POST /v3/service_instances": {ok: 202, may: developers, see: seeSpace, blind: 422, body: func(f fixture) any {
			return object{"type": "managed", "name": "new", "relationships": object{"space": to(f.space.GUID), "service_plan": to("p-" + f.app)}}
		}},
		"GET " + one:                  {path: onInstance, ok: 200, may: seeSpace},
		"PATCH " + one:                {path: onInstance, ok: 200, may: developers, see: seeSpace, body: note},
		"DELETE " + one:               {path: onInstance, ok: 202, may: developers, see: seeSpace},
		"GET " + one + "/parameters":  {path: onInstance, ok: 200, may: secretive, see: seeSpace},
		"GET " + one + "/credentials": {path: onProvided, ok: 200, may: secretive, see: seeSpace},
		"GET " + one + "/permissions": {path: onInstance, ok: 200, may: seeSpace},
		"GET " + shared:               {path: onShared, ok: 200, may: seeSpace},
		"POST " + shared: {path: onInstance, ok: 200, may: admin, see: seeSpace, body: func(f fixture) any {
			return object{"data": []object{{"guid": onOtherSpace(f)}}}
		}},
		"DELETE " + shared + "/{space}":    {path: onShared, inner: onOtherSpace, ok: 204, may: developers, see: seeSpace},
		"GET " + shared + "/usage_summary": {path: onShared, ok: 200, may: seeSpace},

		"GET " + bindings: {ok: 200, may: everyone, list: onBinding, see: seeSpace},
		"POST " + bindings: {ok: 201, may: developers, see: seeSpace, blind: 422, body: func(f fixture) any {
			return object{"type": "app", "relationships": object{"app": to(f.app), "service_instance": to(onProvided(f))}}
		}},
		"GET " + binding:                 {path: onBinding, ok: 200, may: seeSpace},
		"PATCH " + binding:               {path: onKey, ok: 200, may: developers, see: seeSpace, body: note},
		"DELETE " + binding:              {path: onBinding, ok: 202, may: developers, see: seeSpace},
		"GET " + binding + "/details":    {path: onKey, ok: 200, may: secretive, see: seeSpace},
		"GET " + binding + "/parameters": {path: onKey, ok: 200, may: secretive, see: seeSpace},
	}
}

// Those with whom an instance is shared see that it is there, and use it for their own apps. They learn nothing else, and change nothing.
func TestSharedInstancePermissions(t *testing.T) {
	w := newWorld(t)
	f := w.fixture(1, "none")
	there := w.org("there")
	space := w.space(there, "there")
	if _, err := w.pool.Exec(t.Context(), `insert into service_instance_shares (instance_guid, space_guid) values ($1, $2)`, onShared(f), space.GUID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), `insert into service_bindings (guid, type, name, instance_guid, space_guid, held) values ('k', 'key', 'k', $1, $2, true)`, onShared(f), f.space.GUID); err != nil {
		t.Fatal(err)
	}
	app := w.app(space, "app")
	one := "/v3/service_instances/" + onShared(f)
	named := object{"service_instance": to(onShared(f))}
	rows := []struct {
		method, path string
		body         any
		developer    int
		auditor      int
	}{
		{"GET", one, nil, 200, 200},
		{"GET", one + "/permissions", nil, 200, 200},
		{"GET", one + "/relationships/shared_spaces", nil, 200, 200},
		{"GET", one + "/relationships/shared_spaces/usage_summary", nil, 200, 200},
		{"PATCH", one, object{"name": "mine"}, 403, 403},
		{"PATCH", one, object{"metadata": object{"labels": object{"a": "b"}}}, 403, 403},
		{"DELETE", one, nil, 403, 403},
		{"DELETE", one + "?purge=true", nil, 403, 403},
		{"GET", one + "/parameters", nil, 403, 403},
		{"GET", one + "/credentials", nil, 403, 403},
		{"POST", one + "/relationships/shared_spaces", object{"data": []object{{"guid": space.GUID}}}, 403, 403},
		{"DELETE", one + "/relationships/shared_spaces/" + space.GUID, nil, 403, 403},
		{"POST", "/v3/service_credential_bindings", object{"type": "key", "name": "k2", "relationships": named}, 403, 403},
		{"GET", "/v3/service_credential_bindings/k", nil, 404, 404},
		{"GET", "/v3/service_credential_bindings/k/details", nil, 404, 404},
		{"DELETE", "/v3/service_credential_bindings/k", nil, 404, 404},
		{"POST", "/v3/service_credential_bindings", object{"type": "app", "relationships": object{"service_instance": to(onShared(f)), "app": to(app.GUID)}}, 202, 403},
		{"POST", "/v3/service_credential_bindings", object{"type": "app", "relationships": object{"service_instance": to(onInstance(f)), "app": to(app.GUID)}}, 422, 403},
		{"GET", "/v3/service_instances/" + onInstance(f), nil, 404, 404},
		{"DELETE", "/v3/service_instances/" + onInstance(f), nil, 404, 404},
	}
	senders := map[string]platform.RoleType{"dev": platform.SpaceDeveloper, "auditor": platform.SpaceAuditor, "spacemanager": platform.SpaceManager, "supporter": platform.SpaceSupporter, "manager": platform.OrgManager, "member": platform.OrgUser}
	for name, role := range senders {
		w.give(name, role, there, space)
	}
	for _, row := range rows {
		for _, name := range []string{"auditor", "spacemanager", "supporter", "manager", "member", "stranger", "dev"} {
			want := row.auditor
			switch {
			case name == "dev":
				want = row.developer
			case name == "member" || name == "stranger": // in no space with which it is shared
				want = 404
				if row.path == "/v3/service_credential_bindings" {
					want = 422
				}
			}
			if got := w.call(row.method, row.path, w.token(name), row.body); got.status != want {
				t.Errorf("%s %s as %s: %d, want %d: %s", row.method, row.path, name, got.status, want, got.body)
			}
		}
	}
	for name := range senders {
		list := do[v3.List[v3.ServiceInstance]](w, 200, http.MethodGet, "/v3/service_instances", w.token(name), nil)
		there := do[v3.List[v3.ServiceInstance]](w, 200, http.MethodGet, "/v3/service_instances?space_guids="+space.GUID, w.token(name), nil)
		var guids []string
		for _, i := range slices.Concat(list.Resources, there.Resources) {
			guids = append(guids, i.GUID)
		}
		want := []string{onShared(f), onShared(f)}
		if name == "member" {
			want = nil
		}
		if !slices.Equal(guids, want) || list.Pagination.TotalResults != len(want)/2 {
			t.Errorf("%s lists %v", name, guids)
		}
	}
	// They learn of their own space, and not with whom else it is shared; those who live with it see all.
	shared := do[v3.SharedSpaces](w, 200, http.MethodGet, one+"/relationships/shared_spaces", w.token("dev"), nil)
	if fmt.Sprint(shared.Data) != fmt.Sprint([]v3.Ref{{GUID: space.GUID}}) {
		t.Errorf("the developer there sees %v", shared.Data)
	}
	if all := do[v3.SharedSpaces](w, 200, http.MethodGet, one+"/relationships/shared_spaces", w.admin, nil); len(all.Data) != 2 {
		t.Errorf("the administrator sees %v", all.Data)
	}
	if got := w.call(http.MethodGet, one+"/permissions", w.token("dev"), nil); got.body != `{"read":true,"manage":false}` {
		t.Errorf("permissions: %s", got.body)
	}
	// What the owner has bound is none of theirs; what they have bound is.
	list := w.call(http.MethodGet, "/v3/service_credential_bindings?include=app,service_instance", w.token("dev"), nil)
	if strings.Contains(list.body, `"k"`) || strings.Count(list.body, `"type":"app"`) != 1 || !strings.Contains(list.body, `"name":"shared"`) {
		t.Errorf("bindings: %s", list.body)
	}
}
