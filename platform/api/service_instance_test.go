package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// offer writes a broker with one offering and plans that everybody can have. What is special is said in SQL afterwards.
func (w *world) offer(name string, plans ...string) {
	w.t.Helper()
	w.exec(`insert into service_brokers (guid, name, url, credentials, state) values ($1, $1, 'http://broker.example.org', '', 'AVAILABLE')`, name+"-broker")
	w.exec(`insert into service_offerings (guid, broker_guid, unique_id, name, description, active, bindable, plan_updateable, instances_retrievable, bindings_retrievable, context_updates, shareable,
		tags, requires, documentation_url, catalog_metadata) values ($1, $2, 'id-of-' || $1, $1, 'about ' || $1, true, true, true, true, true, false, true, '{sql}', '{}', 'http://docs.example.org', '{}')`, name, name+"-broker")
	for _, plan := range plans {
		w.exec(`insert into service_plans (guid, offering_guid, unique_id, name, description, free, active, bindable, plan_updateable, visibility, max_polling, catalog_metadata, schemas)
			values ($1, $2, 'id-of-' || $1, $1, '', true, true, true, true, 'public', 0, '{}', '{}')`, plan, name)
	}
}

// managed is the body for an instance of a plan.
func managed(space v3.Space, name, plan string, more object) object {
	body := object{"type": "managed", "name": name, "relationships": object{"space": to(space.GUID), "service_plan": to(plan)}}
	for k, v := range more {
		body[k] = v
	}
	return body
}

func provided(space v3.Space, name string, more object) object {
	body := object{"type": "user-provided", "name": name, "relationships": object{"space": to(space.GUID)}}
	for k, v := range more {
		body[k] = v
	}
	return body
}

func (w *world) instanceCalled(name, token string) v3.ServiceInstance {
	w.t.Helper()
	list := do[v3.List[v3.ServiceInstance]](w, 200, http.MethodGet, "/v3/service_instances?names="+name, token, nil)
	if len(list.Resources) != 1 {
		w.t.Fatalf("there are %d instances called %s", len(list.Resources), name)
	}
	return list.Resources[0]
}

// done lets a broker have said yes to everything.
func (w *world) done() {
	w.t.Helper()
	w.exec(`update service_instances set op_state = 'succeeded', held = plan_guid is not null where op_state = 'initial'`)
	w.exec(`update service_bindings set op_state = 'succeeded', held = true where op_state = 'initial'`)
	w.exec(`delete from service_operations`)
}

// has is an instance of a plan that a broker has made.
func (w *world) has(t tenant, name, plan string) v3.ServiceInstance {
	w.t.Helper()
	if got := w.call(http.MethodPost, "/v3/service_instances", t.token, managed(t.space, name, plan, nil)); got.status != 202 {
		w.t.Fatalf("create %s: %d %s", name, got.status, got.body)
	}
	w.done()
	return w.instanceCalled(name, t.token)
}

func (w *world) trail(guid string) (types []string) {
	w.t.Helper()
	for _, e := range do[v3.List[v3.Event]](w, 200, http.MethodGet, "/v3/audit_events?target_guids="+guid, w.admin, nil).Resources {
		types = append(types, e.Type)
	}
	return types
}

func TestManagedInstance(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	w.offer("sql", "small", "large")
	got := w.call(http.MethodPost, "/v3/service_instances", one.token, managed(one.space, "db", "small", object{"parameters": object{"password": "hush-hush"}, "tags": []string{"a", "b"}}))
	w.begun(got, "service_instance.create")
	db := w.instanceCalled("db", one.token)
	if db.Type != "managed" || db.LastOperation.Type != "create" || db.LastOperation.State != "initial" || db.Relationships["service_plan"].GUID() != "small" || !slices.Equal(db.Tags, []string{"a", "b"}) {
		t.Errorf("created %+v", db)
	}
	if kind := value[string](w, `select kind || ' ' || stage from service_operations where subject = $1`, db.GUID); kind != "service_instance.create ask" {
		t.Errorf("the operation is %s", kind)
	}
	if n := value[int](w, `select count(*) from river_job where args->>'guid' = (select guid from service_operations) or args->>'GUID' = (select guid from service_operations)`); n != 1 {
		t.Errorf("%d jobs of the queue are about it", n)
	}
	if n := value[int](w, `select count(*) from service_operations where request::text like '%hush%' or encode(request, 'escape') like '%hush%'`); n != 0 {
		t.Error("the parameters are not sealed")
	}
	if ids := value[string](w, `select service_id || ' ' || plan_id || ' ' || held from service_instances where guid = $1`, db.GUID); ids != "id-of-sql id-of-small false" {
		t.Errorf("it is known as %s", ids)
	}

	// While the broker is being asked, nothing else can be asked of it.
	self := "/v3/service_instances/" + db.GUID
	app := w.app(one.space, "app")
	for _, got := range []reply{
		w.call(http.MethodPatch, self, one.token, object{"name": "other"}),
		w.call(http.MethodPost, "/v3/service_credential_bindings", one.token, object{"type": "app", "relationships": object{"app": to(app.GUID), "service_instance": to(db.GUID)}}),
		w.call(http.MethodPost, "/v3/service_credential_bindings", one.token, object{"type": "key", "name": "k", "relationships": object{"service_instance": to(db.GUID)}}),
		w.call(http.MethodGet, self+"/parameters", one.token, nil),
	} {
		w.refused(got, 409, 60016, "CF-AsyncServiceInstanceOperationInProgress", "An operation for service instance db is in progress.")
	}
	if noted := do[v3.ServiceInstance](w, 200, http.MethodPatch, self, one.token, object{"metadata": object{"labels": object{"a": "b"}}}); noted.Metadata.Labels["a"] != "b" {
		t.Errorf("noted %+v", noted)
	}
	w.done()

	// A name and tags are changed at once, the rest by the broker.
	w.has(one, "taken", "small")
	if changed := do[v3.ServiceInstance](w, 200, http.MethodPatch, self, one.token, object{"name": "base", "tags": []string{}, "relationships": object{"service_plan": to("small")}}); changed.Name != "base" || len(changed.Tags) != 0 {
		t.Errorf("changed to %+v", changed)
	}
	w.unprocessable(w.call(http.MethodPatch, self, one.token, object{"name": "taken"}), "The service instance name is taken: taken.")
	w.begun(w.call(http.MethodPatch, self, one.token, object{"name": "later", "parameters": object{"a": 1}, "relationships": object{"service_plan": to("large")}}), "service_instance.update")
	w.refused(w.call(http.MethodDelete, self, one.token, nil), 409, 60016, "CF-AsyncServiceInstanceOperationInProgress", "An operation for service instance base is in progress.")
	if db = do[v3.ServiceInstance](w, 200, http.MethodGet, self, one.token, nil); db.Name != "base" || db.LastOperation.Type != "update" || db.LastOperation.State != "initial" || db.Relationships["service_plan"].GUID() != "small" {
		t.Errorf("before the broker has agreed: %+v", db)
	}
	w.done()

	w.exec(`update service_offerings set context_updates = true where guid = 'sql'`)
	w.begun(w.call(http.MethodPatch, self, one.token, object{"name": "later"}), "service_instance.update")
	w.done()
	w.begun(w.call(http.MethodDelete, self, one.token, nil), "service_instance.delete")
	if trail := w.trail(db.GUID); !slices.Equal(trail, []string{"audit.service_instance.start_create", "audit.service_instance.update", "audit.service_instance.update",
		"audit.service_instance.start_update", "audit.service_instance.start_update", "audit.service_instance.start_delete"}) {
		t.Errorf("the trail: %v", trail)
	}
	if n := value[int](w, `select count(*) from audit_events where data::text like '%hush%'`); n != 0 {
		t.Error("parameters are in the trail")
	}
}

func TestInstanceRefusals(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	w.offer("sql", "small", "large")
	w.offer("other", "else")
	w.exec(`insert into service_plans (guid, offering_guid, unique_id, name, description, free, active, bindable, plan_updateable, visibility, max_polling, catalog_metadata, schemas) values
		('gone', 'sql', 'gone', 'gone', '', true, false, true, true, 'public', 0, '{}', '{}'), ('secret', 'sql', 'secret', 'secret', '', true, true, true, true, 'admin', 0, '{}', '{}'),
		('orgs', 'sql', 'orgs', 'orgs', '', true, true, true, true, 'organization', 0, '{}', '{}')`)
	w.exec(`insert into service_plan_orgs (plan_guid, org_guid) values ('orgs', $1)`, one.org.GUID)
	db := w.has(one, "db", "small")
	const badPlan = "Invalid service plan. Ensure that the service plan exists, is available, and you have access to it."
	for _, test := range []struct {
		body   any
		detail string
	}{
		{managed(one.space, "db", "small", nil), "The service instance name is taken: db."},
		{managed(one.space, "", "small", nil), "Name can't be blank"},
		{managed(one.space, strings.Repeat("x", 256), "small", nil), "Name is too long (maximum is 255 characters)"},
		{managed(one.space, "a\x00b", "small", nil), "Name must contain printable characters only"},
		{managed(one.space, "new", "nope", nil), badPlan},
		{managed(one.space, "new", "gone", nil), badPlan},
		{managed(one.space, "new", "secret", nil), badPlan},
		{managed(one.space, "new", "", nil), "Relationships 'relationships' must include one or more valid relationships: say the service_plan of the service instance."},
		{managed(one.space, "new", "small", object{"parameters": []int{1}}), "Parameters must be an object"},
		{managed(one.space, "new", "small", object{"tags": []string{strings.Repeat("x", 2049)}}), "Tags may hold 2048 characters together: the combined length of tags for service new must be 2048 characters or less."},
		{managed(one.space, "new", "small", object{"tags": []string{"a\x00"}}), "Tags must not be empty, nor hold line breaks or control characters."},
		{managed(one.space, "new", "small", object{"colour": "red"}), "Unknown field(s): 'colour'"},
		{managed(one.space, "new", "small", object{"credentials": object{}}), "Credentials, syslog_drain_url and route_service_url belong to user-provided service instances: a broker makes those of a managed one."},
		{managed(two.space, "new", "small", nil), "Invalid space. Ensure that the space exists and you have access to it."},
		{managed(v3.Space{}, "new", "small", nil), "Relationships 'relationships' must include one or more valid relationships: say the space of the service instance."},
		{object{"type": "found", "name": "x", "relationships": object{"space": to(one.space.GUID)}}, "Type must be one of 'managed', 'user-provided'"},
		{provided(one.space, "db", nil), "The service instance name is taken: db."},
		{provided(one.space, "new", object{"credentials": "x"}), "Credentials must be an object"},
		{provided(one.space, "new", object{"syslog_drain_url": "syslog://x"}), "Logs are not sent to a syslog_drain_url: Proa has no log drains. Leave it out, and read logs where the cluster collects them."},
		{provided(one.space, "new", object{"route_service_url": "https://x"}), "Requests are not sent through a route_service_url: Proa has no route services. Leave it out."},
		{provided(one.space, "new", object{"parameters": object{}}), "Parameters and a service_plan belong to managed service instances: nobody makes a user-provided one but its user."},
	} {
		w.unprocessable(w.call(http.MethodPost, "/v3/service_instances", one.token, test.body), test.detail)
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/service_instances", two.token, managed(two.space, "new", "orgs", nil)), badPlan)
	w.begun(w.call(http.MethodPost, "/v3/service_instances", one.token, managed(one.space, "of the org", "orgs", nil)), "service_instance.create")
	w.done()

	self := "/v3/service_instances/" + db.GUID
	plan := func(guid string) object { return object{"relationships": object{"service_plan": to(guid)}} }
	w.exec(`update service_plans set maintenance_info = '{"version": "2.0.0"}' where guid = 'small'`)
	for _, test := range []struct {
		body   any
		detail string
	}{
		{plan("gone"), badPlan}, {plan("nope"), badPlan},
		{plan("else"), "The service plan belongs to another service offering. Choose a plan of the offering that the instance has."},
		{object{"credentials": object{"a": 1}}, "Credentials can only be set on a user-provided service instance: those of 'db' come from its broker."},
		{object{"relationships": object{"space": to(two.space.GUID)}}, "A service instance stays in its space. Share it with the other, or create one there."},
		{object{"maintenance_info": object{"version": "3.0.0"}}, "maintenance_info.version requested is invalid. Please ensure the catalog is up to date and you are providing a version supported by this service plan."},
		{object{"maintenance_info": object{"version": "2.0.0"}, "relationships": object{"service_plan": to("large")}}, "maintenance_info should not be changed when switching to different plan."},
		{object{"name": "\n"}, "Name must contain printable characters only"},
	} {
		w.unprocessable(w.call(http.MethodPatch, self, one.token, test.body), test.detail)
	}
	if db = do[v3.ServiceInstance](w, 200, http.MethodGet, self, one.token, nil); !*db.UpgradeAvailable || db.LastOperation.Type != "create" {
		t.Errorf("after what was refused: %+v", db)
	}
	w.begun(w.call(http.MethodPatch, self, one.token, object{"maintenance_info": object{"version": "2.0.0"}}), "service_instance.update")
	w.done()
	w.exec(`update service_plans set plan_updateable = false where guid = 'small'`)
	w.refused(w.call(http.MethodPatch, self, one.token, plan("large")), 400, 10004, "CF-BadRequest", "The service does not support changing plans.")
	w.exec(`update service_plans set active = false where guid = 'small'`)
	w.unprocessable(w.call(http.MethodPatch, self, one.token, object{"parameters": object{}}), "Cannot update parameters of a service instance that belongs to inaccessible plan")

	w.exec(`update service_instances set op_type = 'create', op_state = 'failed' where guid = $1`, db.GUID)
	w.unprocessable(w.call(http.MethodPatch, self, one.token, plan("large")), "Service instance 'db' could not be created. Delete it, and create it again.")
	w.begun(w.call(http.MethodDelete, self, one.token, nil), "service_instance.delete")

	do[v3.FeatureFlag](w, 200, http.MethodPatch, "/v3/feature_flags/service_instance_creation", w.admin, object{"enabled": false})
	w.refused(w.call(http.MethodPost, "/v3/service_instances", one.token, managed(one.space, "late", "large", nil)), 403, 330002, "CF-FeatureDisabled", "Feature Disabled: service_instance_creation. Ask an administrator to enable it.")
}

func TestUserProvided(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	made := do[v3.ServiceInstance](w, 201, http.MethodPost, "/v3/service_instances", one.token, provided(one.space, "mine", object{"credentials": object{"password": "hush-hush", "port": 1}, "syslog_drain_url": ""}))
	self := "/v3/service_instances/" + made.GUID
	if made.Type != "user-provided" || made.LastOperation.State != "succeeded" || len(made.Relationships) != 1 {
		t.Errorf("created %+v", made)
	}
	if n := value[int](w, `select count(*) from service_instances where encode(credentials, 'escape') like '%hush%'`); n != 0 {
		t.Error("the credentials are not sealed")
	}
	if got := w.call(http.MethodGet, self+"/credentials", one.token, nil); got.body != `{"password":"hush-hush","port":1}` {
		t.Errorf("credentials: %s", got.body)
	}
	for _, path := range []string{"/v3/service_instances", self} {
		if got := w.call(http.MethodGet, path, one.token, nil); strings.Contains(got.body, "hush") {
			t.Errorf("%s shows credentials", path)
		}
	}
	w.refused(w.call(http.MethodGet, self+"/parameters", one.token, nil), 400, 10004, "CF-BadRequest", "This service does not support fetching service instance parameters.")
	app := w.app(one.space, "app")
	bind := object{"type": "app", "name": "bound", "relationships": object{"app": to(app.GUID), "service_instance": to(made.GUID)}}
	got := w.call(http.MethodPost, "/v3/service_credential_bindings", one.token, bind)
	if got.status != 201 || got.header.Get("Location") != "" {
		t.Fatalf("bind: %d %v %s", got.status, got.header, got.body)
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/service_credential_bindings", one.token, bind), "The app is already bound to the service instance.")
	w.unprocessable(w.call(http.MethodPost, "/v3/service_credential_bindings", one.token, object{"type": "key", "name": "k", "relationships": object{"service_instance": to(made.GUID)}}),
		"Service credential bindings of type 'key' are not supported for user-provided service instances.")
	list := do[v3.List[v3.ServiceBinding]](w, 200, http.MethodGet, "/v3/service_credential_bindings?names=bound", one.token, nil)
	path := "/v3/service_credential_bindings/" + list.Resources[0].GUID
	w.refused(w.call(http.MethodGet, path+"/parameters", one.token, nil), 400, 10004, "CF-BadRequest", "This service does not support fetching service binding parameters.")

	// What its user says now is what counts.
	do[v3.ServiceInstance](w, 200, http.MethodPatch, self, one.token, object{"credentials": object{"uri": "x"}, "name": "yours"})
	if got := w.call(http.MethodGet, path+"/details", one.token, nil); got.body != `{"credentials":{"uri":"x"}}` {
		t.Errorf("details: %s", got.body)
	}
	w.unprocessable(w.call(http.MethodPatch, self, one.token, object{"parameters": object{}}), "A user-provided service instance has no plan, parameters or maintenance_info: nobody makes it but its user.")
	w.unprocessable(w.call(http.MethodPost, self+"/relationships/shared_spaces", one.token, object{"data": []object{{"guid": one.space.GUID}}}), "User-provided services cannot be shared.")
	if got := w.call(http.MethodDelete, path, one.token, nil); got.status != 204 || got.header.Get("Location") != "" {
		t.Errorf("unbind: %d %s", got.status, got.body)
	}
	do[v3.ServiceBinding](w, 201, http.MethodPost, "/v3/service_credential_bindings", one.token, bind)
	if got := w.call(http.MethodDelete, self, one.token, nil); got.status != 204 || got.header.Get("Location") != "" {
		t.Errorf("delete: %d %s", got.status, got.body)
	}
	if n := value[int](w, `select count(*) from service_bindings`) + value[int](w, `select count(*) from service_orphans`) + value[int](w, `select count(*) from service_operations`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if trail := w.trail(made.GUID); !slices.Equal(trail, []string{"audit.user_provided_service_instance.create", "audit.user_provided_service_instance.show", "audit.user_provided_service_instance.update", "audit.user_provided_service_instance.delete"}) {
		t.Errorf("the trail: %v", trail)
	}
}

// The list as `cf services` asks it, with all that stands beside: each record once, and only the fields that were asked for.
func TestInstanceList(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	w.offer("sql", "small", "large")
	w.offer("mq", "tiny")
	for i, plan := range []string{"small", "large", "small", "tiny"} {
		w.has(one, fmt.Sprint("n", 4-i), plan)
	}
	do[v3.ServiceInstance](w, 201, http.MethodPost, "/v3/service_instances", one.token, provided(one.space, "n5", object{"metadata": object{"labels": object{"a": "b"}}}))
	w.has(two, "n6", "tiny")
	names := func(query, token string) string {
		t.Helper()
		var all []string
		for href := "/v3/service_instances?" + query; href != ""; {
			list := do[v3.List[v3.ServiceInstance]](w, 200, http.MethodGet, href, token, nil)
			for _, i := range list.Resources {
				all = append(all, i.Name)
			}
			href = ""
			if list.Pagination.Next != nil && !strings.Contains(query, "&page=2") {
				href = list.Pagination.Next.Href
			}
		}
		return strings.Join(all, " ")
	}
	org := one.org.GUID
	for query, want := range map[string]string{
		"order_by=name": "n1 n2 n3 n4 n5", "order_by=-name&per_page=2": "n5 n4 n3 n2 n1", "order_by=name&per_page=2&page=2": "n3 n4", "per_page=1": "n4 n3 n2 n1 n5",
		"type=managed&order_by=name": "n1 n2 n3 n4", "type=user-provided": "n5", "service_plan_guids=small&order_by=name": "n2 n4", "service_plan_names=large,tiny&order_by=name": "n1 n3",
		"space_guids=" + one.space.GUID + "&order_by=name": "n1 n2 n3 n4 n5", "space_guids=" + two.space.GUID: "", "organization_guids=" + org + "&names=n3,n6": "n3",
		"label_selector=a%3Db": "n5", "label_selector=!a&order_by=name": "n1 n2 n3 n4",
	} {
		if got := names(query, one.token); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := names("order_by=name", w.admin); got != "n1 n2 n3 n4 n5 n6" {
		t.Errorf("an administrator sees %s", got)
	}
	query := "/v3/service_instances?order_by=name&fields[service_plan]=guid,name,relationships.service_offering&fields[service_plan.service_offering]=guid,name,tags,relationships.service_broker" +
		"&fields[service_plan.service_offering.service_broker]=guid,name&fields[space]=guid,name,relationships.organization&fields[space.organization]=name,guid"
	type object = map[string]any
	all := do[struct{ Included object }](w, 200, http.MethodGet, query, one.token, nil)
	ref := func(name, guid string) string {
		return fmt.Sprintf("relationships:map[%s:map[data:map[guid:%s]]]", name, guid)
	}
	want := fmt.Sprint("map[organizations:[map[guid:", org, " name:one]]",
		" service_brokers:[map[guid:sql-broker name:sql-broker] map[guid:mq-broker name:mq-broker]]",
		" service_offerings:[map[guid:sql name:sql ", ref("service_broker", "sql-broker"), " tags:[sql]] map[guid:mq name:mq ", ref("service_broker", "mq-broker"), " tags:[sql]]]",
		" service_plans:[map[guid:large name:large ", ref("service_offering", "sql"), "] map[guid:small name:small ", ref("service_offering", "sql"), "] map[guid:tiny name:tiny ", ref("service_offering", "mq"), "]]",
		" spaces:[map[guid:", one.space.GUID, " name:space ", ref("organization", org), "]]]")
	if got := fmt.Sprint(all.Included); got != want {
		t.Errorf("included %s\nwant %s", got, want)
	}
	n5 := w.instanceCalled("n5", one.token)
	single := do[struct{ Included object }](w, 200, http.MethodGet, "/v3/service_instances/"+n5.GUID+"?fields[space]=name&fields[service_plan]=name", one.token, nil)
	if got := fmt.Sprint(single.Included); got != "map[service_plans:[] spaces:[map[name:space]]]" {
		t.Errorf("included %s", got)
	}
	for _, query := range []string{"fields[service_plan]=schemas", "fields[app]=name", "fields=name", "colours=red", "order_by=type", "page=0"} {
		if got := w.call(http.MethodGet, "/v3/service_instances?"+query, one.token, nil); got.status != 400 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// Of many who ask for one name, one gets it.
func TestInstanceNamesAtOnce(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	w.offer("sql", "small")
	var wait sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wait.Go(func() {
			statuses[i] = w.call(http.MethodPost, "/v3/service_instances", one.token, managed(one.space, "db", "small", nil)).status
		})
	}
	wait.Wait()
	slices.Sort(statuses)
	if statuses[0] != 202 || statuses[1] != 422 || value[int](w, `select count(*) from service_operations`) != 1 {
		t.Errorf("got %v", statuses)
	}
}

func TestDeleteInstance(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	w.offer("sql", "small")
	db := w.has(one, "db", "small")
	self := "/v3/service_instances/" + db.GUID
	w.exec(`insert into service_instance_shares (instance_guid, space_guid) values ($1, $2)`, db.GUID, two.space.GUID)
	w.unprocessable(w.call(http.MethodDelete, self, one.token, nil),
		"Service instances must be unshared before they can be deleted. Unsharing db will automatically delete any bindings that have been made to applications in other spaces.")
	w.exec(`delete from service_instance_shares`)
	w.exec(`insert into service_bindings (guid, type, name, instance_guid, space_guid, op_state, held) values ('k', 'key', 'k', $1, $2, 'in progress', true)`, db.GUID, one.space.GUID)
	w.refused(w.call(http.MethodDelete, self, one.token, nil), 422, 90008, "CF-AsyncServiceBindingOperationInProgress", "An operation for a key of service instance db is in progress.")
	if got := w.call(http.MethodDelete, self+"?purge=true", one.token, nil); got.status != 403 {
		t.Errorf("a developer purges: %d %s", got.status, got.body)
	}
	if got := w.call(http.MethodDelete, self+"?purge=true", w.admin, nil); got.status != 204 || got.header.Get("Location") != "" {
		t.Errorf("purge: %d %s", got.status, got.body)
	}
	mine := w.has(one, "mine", "small")
	w.exec(`update service_brokers set space_guid = $1`, one.space.GUID)
	if got := w.call(http.MethodDelete, "/v3/service_instances/"+mine.GUID+"?purge=true", one.token, nil); got.status != 204 {
		t.Errorf("purge of a space's own: %d %s", got.status, got.body)
	}
	if n := value[int](w, `select count(*) from service_orphans`) + value[int](w, `select count(*) from service_instances`) + value[int](w, `select count(*) from service_bindings`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	// What goes with its space is not forgotten at the broker.
	w.exec(`update service_brokers set space_guid = null`)
	kept := w.has(one, "kept", "small")
	w.deleted("/v3/spaces/"+one.space.GUID, one.token)
	if n := value[int](w, `select count(*) from service_orphans where instance_guid = $1`, kept.GUID); n != 1 {
		t.Errorf("%d orphans", n)
	}
}

func TestOrgUsage(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	w.offer("sql", "small")
	w.has(one, "db", "small")
	w.route(one, w.apps.GUID, "www", "")
	w.domain(one, "one.example.net")
	app := w.startable(one.space, "app", platform.Droplet{Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack}})
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", one.token, nil)
	do[v3.Process](w, 202, http.MethodPost, "/v3/apps/"+app.GUID+"/processes/web/actions/scale", one.token, object{"instances": 3, "memory_in_mb": 128})
	w.app(one.space, "stopped")
	usage := do[v3.UsageSummary](w, 200, http.MethodGet, "/v3/organizations/"+one.org.GUID+"/usage_summary", one.token, nil).Usage
	if got := fmt.Sprint(usage); got != "map[domains:1 memory_in_mb:384 per_app_tasks:0 reserved_ports:0 routes:1 service_instances:1 service_keys:0 started_instances:3]" {
		t.Errorf("usage %s", got)
	}
}
