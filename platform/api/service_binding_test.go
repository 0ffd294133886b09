package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	v3 "github.com/proa-dev/proa/platform/v3"
)

const bindingsPath = "/v3/service_credential_bindings"

// bound is the body for a binding of an app.
func bound(app v3.App, instance v3.ServiceInstance, more object) object {
	body := object{"type": "app", "relationships": object{"app": to(app.GUID), "service_instance": to(instance.GUID)}}
	for k, v := range more {
		body[k] = v
	}
	return body
}

func keyOf(instance v3.ServiceInstance, name string) object {
	return object{"type": "key", "name": name, "relationships": object{"service_instance": to(instance.GUID)}}
}

func (w *world) bindings(query, token string) []v3.ServiceBinding {
	w.t.Helper()
	return do[v3.List[v3.ServiceBinding]](w, 200, http.MethodGet, bindingsPath+"?"+query, token, nil).Resources
}

func TestBindings(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	w.offer("sql", "small")
	db := w.has(one, "db", "small")
	app := w.app(one.space, "app")
	guid := w.begun(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, object{"parameters": object{"role": "hush-hush"}})), "service_bindings.create")
	self := bindingsPath + "/" + guid
	b := do[v3.ServiceBinding](w, 200, http.MethodGet, self, one.token, nil)
	if b.Name != nil || b.Type != "app" || b.LastOperation.State != "initial" || b.Relationships["app"].GUID() != app.GUID || b.Relationships["service_instance"].GUID() != db.GUID {
		t.Errorf("created %+v", b)
	}
	const busy = "An operation for the service binding between app app and service instance db is in progress."
	for _, got := range []reply{w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, nil)), w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, object{"strategy": "multiple"})),
		w.call(http.MethodDelete, self, one.token, nil), w.call(http.MethodDelete, "/v3/service_instances/"+db.GUID, one.token, nil)} {
		w.refused(got, 422, 90008, "CF-AsyncServiceBindingOperationInProgress", busy)
	}
	w.refused(w.call(http.MethodGet, self+"/details", one.token, nil), 404, 10010, "CF-ResourceNotFound", "The service credential binding is being created. Ask again when its last operation has succeeded.")

	// One that failed is in nobody's way, and gives nothing.
	w.exec(`update service_bindings set op_state = 'failed'`)
	w.refused(w.call(http.MethodGet, self+"/details", one.token, nil), 404, 10010, "CF-ResourceNotFound", "The creation of the service credential binding has failed: it has no credentials. Delete it, and bind again.")
	again := w.begun(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, nil)), "service_bindings.create")
	if all := w.bindings("", one.token); len(all) != 1 || all[0].GUID != again || again == guid {
		t.Errorf("after the second: %+v", all)
	}
	w.done()
	w.unprocessable(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, nil)), "The app is already bound to the service instance.")
	w.unprocessable(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, object{"strategy": "single"})), "The app is already bound to the service instance.")

	// Credentials are rotated by binding again; there is an end to it.
	for range 4 {
		w.begun(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, object{"strategy": "multiple"})), "service_bindings.create")
		w.done()
	}
	w.unprocessable(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, object{"strategy": "multiple"})), "The app has too many bindings to this service instance (limit: 5). Delete those that it no longer needs.")
	self = bindingsPath + "/" + again
	w.begun(w.call(http.MethodDelete, self, one.token, nil), "service_bindings.delete")
	if b := do[v3.ServiceBinding](w, 200, http.MethodGet, self, one.token, nil); b.LastOperation.Type != "delete" || b.LastOperation.State != "initial" {
		t.Errorf("on its way: %+v", b)
	}
	if trail := w.trail(again); !slices.Equal(trail, []string{"audit.service_binding.start_create", "audit.service_binding.start_delete"}) {
		t.Errorf("the trail: %v", trail)
	}
	if n := value[int](w, `select count(*) from audit_events where data::text like '%hush%'`); n != 0 {
		t.Error("parameters are in the trail")
	}
	// With the app go its bindings; what the broker holds is not forgotten.
	held := value[int](w, `select count(*) from service_bindings where held`)
	w.deleted("/v3/apps/"+app.GUID, one.token)
	if n := value[int](w, `select count(*) from service_orphans where binding_guid <> ''`); n != held || held == 0 {
		t.Errorf("%d orphans of %d", n, held)
	}
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	w.offer("sql", "small")
	db := w.has(one, "db", "small")
	w.begun(w.call(http.MethodPost, bindingsPath, one.token, keyOf(db, "my key")), "service_bindings.create")
	const twice = "The binding name is invalid. Key binding names must be unique. The service instance already has a key binding with name 'my key'."
	w.unprocessable(w.call(http.MethodPost, bindingsPath, one.token, keyOf(db, "my key")), twice)
	w.exec(`update service_bindings set op_state = 'failed'`)
	guid := w.begun(w.call(http.MethodPost, bindingsPath, one.token, keyOf(db, "my key")), "service_bindings.create")
	w.done()
	w.unprocessable(w.call(http.MethodPost, bindingsPath, one.token, keyOf(db, "my key")), twice)
	self := bindingsPath + "/" + guid
	if got := w.call(http.MethodGet, self+"/parameters", one.token, nil); got.body != `{}` {
		t.Errorf("parameters: %s", got.body)
	}
	w.exec(`update service_offerings set bindings_retrievable = false, instances_retrievable = false`)
	w.refused(w.call(http.MethodGet, self+"/parameters", one.token, nil), 400, 10004, "CF-BadRequest", "This service does not support fetching service binding parameters.")
	w.refused(w.call(http.MethodGet, "/v3/service_instances/"+db.GUID+"/parameters", one.token, nil), 400, 10004, "CF-BadRequest", "This service does not support fetching service instance parameters.")
	if got := w.call(http.MethodGet, "/v3/service_instances/"+db.GUID+"/credentials", one.token, nil); got.status != 404 {
		t.Errorf("credentials: %d", got.status)
	}
	sealed, err := sealing().Seal([]byte(`{"Credentials":{"password":"hush-hush","port":5432},"SyslogDrainURL":"","VolumeMounts":null}`), []byte("service binding "+guid))
	must(t, err)
	w.exec(`update service_bindings set credentials = $1`, sealed)
	if got := w.call(http.MethodGet, self+"/details", one.token, nil); got.body != `{"credentials":{"password":"hush-hush","port":5432}}` {
		t.Errorf("details: %s", got.body)
	}
	for _, path := range []string{bindingsPath, self, bindingsPath + "?include=service_instance"} {
		if got := w.call(http.MethodGet, path, one.token, nil); got.status != 200 || strings.Contains(got.body, "hush") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if noted := do[v3.ServiceBinding](w, 200, http.MethodPatch, self, one.token, object{"metadata": object{"annotations": object{"a": "b"}}}); noted.Metadata.Annotations["a"] != "b" || *noted.Name != "my key" {
		t.Errorf("noted %+v", noted)
	}
	w.begun(w.call(http.MethodDelete, self, one.token, nil), "service_bindings.delete")
	if trail := w.trail(guid); !slices.Equal(trail, []string{"audit.service_key.start_create", "audit.service_key.show", "audit.service_key.update", "audit.service_key.start_delete"}) {
		t.Errorf("the trail: %v", trail)
	}
}

func TestBindingRefusals(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	w.offer("sql", "small", "fixed")
	w.exec(`update service_plans set bindable = false where guid = 'fixed'`)
	db, other, fixed, theirs := w.has(one, "db", "small"), w.has(one, "other", "small"), w.has(one, "fixed", "fixed"), w.has(two, "theirs", "small")
	app, foreign := w.app(one.space, "app"), w.app(two.space, "app")
	beside := w.space(one.org, "beside")
	w.give("one", "space_developer", one.org, beside)
	away := w.app(beside, "away")
	w.begun(w.call(http.MethodPost, bindingsPath, one.token, bound(app, other, object{"name": "main"})), "service_bindings.create")
	w.done()
	mine := do[v3.ServiceInstance](w, 201, http.MethodPost, "/v3/service_instances", one.token, provided(one.space, "mine", nil))
	const noInstance, noApp = "Invalid service instance. Ensure that the service instance exists and you have access to it.", "Invalid app. Ensure that the app exists and you have access to it."
	for _, test := range []struct {
		body   object
		detail string
	}{
		{bound(app, theirs, nil), noInstance}, {bound(foreign, db, nil), noApp}, {keyOf(theirs, "k"), noInstance},
		{bound(app, fixed, nil), "Service plan does not allow bindings."}, {keyOf(fixed, "k"), "Service plan does not allow bindings."},
		{bound(app, db, object{"name": "main"}), "The binding name is invalid. App binding names must be unique. The app already has a binding with name 'main'."},
		{bound(app, db, object{"name": "a/b"}), "Name must be made of letters, digits, '.', '_' and '-'."},
		{bound(app, db, object{"strategy": "often"}), "Strategy must be one of 'single', 'multiple'"},
		{bound(app, db, object{"parameters": "x"}), "Parameters must be an object"},
		{bound(app, mine, object{"parameters": object{"a": 1}}), "Binding parameters are not supported for user-provided service instances."},
		{bound(away, db, nil), "The service instance and the app are in different spaces. Ensure the service instance is shared into this space."},
		{keyOf(db, ""), "Name can't be blank"}, {keyOf(db, "a\x00"), "Name must contain printable characters only"},
		{object{"type": "app", "relationships": object{"service_instance": to(db.GUID)}}, "Relationships 'relationships' must include one or more valid relationships: say the app to bind."},
		{object{"type": "app", "relationships": object{"app": to(app.GUID)}}, "Relationships 'relationships' must include one or more valid relationships: say the service_instance to bind."},
		{object{"type": "route"}, "Type must be one of 'app', 'key'"},
		{object{"type": "key", "name": "k", "relationships": object{"service_instance": to(db.GUID), "app": to(app.GUID)}}, "A key belongs to no app. Leave the app out, or set the type to 'app'."},
	} {
		w.unprocessable(w.call(http.MethodPost, bindingsPath, one.token, test.body), test.detail)
	}
	w.exec(`update service_instances set op_state = 'failed' where guid = $1`, db.GUID)
	w.unprocessable(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, nil)), "Service instance 'db' could not be created. Delete it, and create it again.")
}

func TestBindingList(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	w.offer("sql", "small", "large")
	w.offer("mq", "tiny")
	app, worker := w.app(one.space, "app"), w.app(one.space, "worker")
	db, queue := w.has(one, "db", "small"), w.has(one, "queue", "tiny")
	w.begun(w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, object{"name": "a"})), "service_bindings.create")
	w.begun(w.call(http.MethodPost, bindingsPath, one.token, bound(app, queue, object{"name": "b"})), "service_bindings.create")
	w.begun(w.call(http.MethodPost, bindingsPath, one.token, bound(worker, db, object{"name": "c"})), "service_bindings.create")
	w.begun(w.call(http.MethodPost, bindingsPath, one.token, keyOf(db, "d")), "service_bindings.create")
	for query, want := range map[string]string{
		"": "a b c d", "type=app": "a b c", "type=key": "d", "names=a,d": "a d", "service_instance_guids=" + db.GUID: "a c d", "service_instance_names=queue": "b",
		"service_plan_guids=small": "a c d", "service_plan_names=tiny,large": "b", "service_offering_guids=mq": "b", "service_offering_names=sql": "a c d",
		"app_guids=" + app.GUID: "a b", "app_names=worker": "c", "order_by=-name": "d c b a", "per_page=2&page=2": "c d",
		"type=app&app_guids=" + app.GUID + "&service_instance_guids=" + db.GUID: "a", "created_ats[gt]=2020-01-01T00:00:00Z": "a b c d",
	} {
		var got []string
		for _, b := range w.bindings(query, one.token) {
			got = append(got, *b.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	if all := w.bindings("", two.token); len(all) != 0 {
		t.Errorf("others see %+v", all)
	}
	list := do[v3.List[v3.ServiceBinding]](w, 200, http.MethodGet, bindingsPath+"?include=app,service_instance", one.token, nil)
	var beside []string
	for _, a := range list.Included.Apps {
		beside = append(beside, a.Name)
	}
	for _, i := range list.Included.ServiceInstances {
		beside = append(beside, i.Name)
	}
	if fmt.Sprint(beside) != "[app worker db queue]" {
		t.Errorf("included %v", beside)
	}
	if got := w.call(http.MethodGet, bindingsPath+"?include=space", one.token, nil); got.status != 400 {
		t.Errorf("include=space: %d", got.status)
	}
}

// Of many who bind an app at once, one does.
func TestBindAtOnce(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	w.offer("sql", "small")
	db, app := w.has(one, "db", "small"), w.app(one.space, "app")
	var wait sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wait.Go(func() { statuses[i] = w.call(http.MethodPost, bindingsPath, one.token, bound(app, db, nil)).status })
	}
	wait.Wait()
	slices.Sort(statuses)
	if statuses[0] != 202 || statuses[1] != 422 || value[int](w, `select count(*) from service_operations`) != 1 {
		t.Errorf("got %v", statuses)
	}
}

func TestSharing(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	w.offer("sql", "small")
	db := w.has(one, "db", "small")
	self := "/v3/service_instances/" + db.GUID
	path := self + "/relationships/shared_spaces"
	with := func(guids ...string) object {
		data := []object{}
		for _, guid := range guids {
			data = append(data, object{"guid": guid})
		}
		return object{"data": data}
	}
	w.refused(w.call(http.MethodPost, path, one.token, with(two.space.GUID)), 403, 330002, "CF-FeatureDisabled", "Feature Disabled: service_instance_sharing. Ask an administrator to enable it.")
	do[v3.FeatureFlag](w, 200, http.MethodPatch, "/v3/feature_flags/service_instance_sharing", w.admin, object{"enabled": true})
	w.unprocessable(w.call(http.MethodPost, path, one.token, with(two.space.GUID)), "Unable to share service instance db with spaces ['"+two.space.GUID+"']. Ensure the spaces exist and that you have access to them.")
	w.give("one", "space_auditor", two.org, two.space)
	w.unprocessable(w.call(http.MethodPost, path, one.token, with(two.space.GUID)), "Unable to share service instance db with spaces ['"+two.space.GUID+
		"']. Write permission is required in order to share a service instance with a space, and its organization must not be suspended.")
	w.give("one", "space_developer", two.org, two.space)
	w.unprocessable(w.call(http.MethodPost, path, one.token, with()), "Data must be a list of one or more spaces, each with its guid.")
	w.unprocessable(w.call(http.MethodPost, path, one.token, with(two.space.GUID, one.space.GUID)), "Unable to share service instance 'db' with space 'space'. Service instances cannot be shared into the space where they were created.")
	w.exec(`update service_offerings set shareable = false`)
	w.unprocessable(w.call(http.MethodPost, path, one.token, with(two.space.GUID)), "The sql service does not support service instance sharing.")
	w.exec(`update service_offerings set shareable = true`)
	w.exec(`update service_plans set visibility = 'organization'`)
	w.unprocessable(w.call(http.MethodPost, path, one.token, with(two.space.GUID)), "Access to service sql and plan small is not enabled in space space. Ask whoever offers the service to enable it there.")
	w.exec(`update service_plans set visibility = 'public'`)
	clash := do[v3.ServiceInstance](w, 201, http.MethodPost, "/v3/service_instances", two.token, provided(two.space, "db", nil))
	w.unprocessable(w.call(http.MethodPost, path, one.token, with(two.space.GUID)), "A service instance called db already exists in space.")
	w.call(http.MethodDelete, "/v3/service_instances/"+clash.GUID, two.token, nil)
	if n := value[int](w, `select count(*) from service_instance_shares`); n != 0 {
		t.Fatalf("%d shares after refusals", n)
	}

	if shared := do[v3.SharedSpaces](w, 200, http.MethodPost, path, one.token, with(two.space.GUID)); len(shared.Data) != 1 || shared.Data[0].GUID != two.space.GUID {
		t.Errorf("shared with %+v", shared)
	}
	w.unprocessable(w.call(http.MethodPost, path, one.token, with(two.space.GUID)), "A service instance called db has already been shared with space.")
	w.unprocessable(w.call(http.MethodPost, "/v3/service_instances", two.token, provided(two.space, "db", nil)), "The service instance name is taken: db.")
	w.unprocessable(w.call(http.MethodPatch, self, one.token, object{"name": "renamed"}), "Shared service instances cannot be renamed. Unshare db first.")

	app := w.app(two.space, "app")
	w.begun(w.call(http.MethodPost, bindingsPath, two.token, bound(app, db, nil)), "service_bindings.create")
	busy := w.call(http.MethodDelete, path+"/"+two.space.GUID, one.token, nil)
	w.refused(busy, 422, 90008, "CF-AsyncServiceBindingOperationInProgress", "An operation for the service binding between app app and service instance db is in progress.")
	w.done()
	query := "?fields[space]=name,guid,relationships.organization&fields[space.organization]=name"
	if got := w.call(http.MethodGet, path+query, two.token, nil); !strings.Contains(got.body, `"organizations":[{"name":"two"}]`) || !strings.Contains(got.body, `"name":"space","relationships":{"organization":{"data":{"guid":"`+two.org.GUID) {
		t.Errorf("shared spaces: %s", got.body)
	}
	usage := do[v3.SharedUsage](w, 200, http.MethodGet, path+"/usage_summary", one.token, nil)
	if fmt.Sprint(usage.UsageSummary) != fmt.Sprint([]v3.SpaceUsage{{Space: v3.Ref{GUID: two.space.GUID}, BoundAppCount: 1}}) {
		t.Errorf("usage %+v", usage)
	}
	// Where it comes from is told to those with whom it is shared.
	if got := w.call(http.MethodGet, self+"?fields[space]=name&fields[space.organization]=name", two.token, nil); !strings.Contains(got.body, `"included":{"organizations":[{"name":"one"}],"spaces":[{"name":"space"}]}`) {
		t.Errorf("seen from there: %s", got.body)
	}

	if got := w.call(http.MethodDelete, path+"/"+two.space.GUID, one.token, nil); got.status != 204 {
		t.Fatalf("unshare: %d %s", got.status, got.body)
	}
	if n := value[int](w, `select count(*) from service_orphans where instance_guid = $1 and binding_guid <> ''`, db.GUID); n != 1 || len(w.bindings("", two.token)) != 0 {
		t.Errorf("%d orphans", n)
	}
	w.refused(w.call(http.MethodGet, self, two.token, nil), 404, 10010, "CF-ResourceNotFound", "Service instance not found")
	w.unprocessable(w.call(http.MethodDelete, path+"/"+two.space.GUID, one.token, nil),
		"Unable to unshare service instance from space "+two.space.GUID+". Ensure the space exists and the service instance has been shared to this space.")
	if trail := w.trail(db.GUID); !slices.Equal(trail, []string{"audit.service_instance.start_create", "audit.service_instance.share", "audit.service_instance.unshare"}) {
		t.Errorf("the trail: %v", trail)
	}
}
