package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// TestServicesInEnv: whoever may see secrets sees what the app would be given now.
func TestServicesInEnv(t *testing.T) {
	w := newWorld(t)
	org, space, dev := w.place()
	app := w.app(space, "blue")
	self := "/v3/apps/" + app.GUID
	if got := w.call(http.MethodGet, self+"/env", dev, nil); !strings.Contains(got.body, `"system_env_json":{"VCAP_SERVICES":{}}`) {
		t.Errorf("without services: %s", got.body)
	}
	sealed, err := sealing().Seal([]byte(`{"password":"hush","port":5432.0}`), []byte("service instance u"))
	must(t, err)
	_, err = w.pool.Exec(t.Context(), `insert into service_instances (guid, space_guid, name, credentials) values ('u', $1, 'own', $2)`, space.GUID, sealed)
	must(t, err)
	_, err = w.pool.Exec(t.Context(), `insert into service_bindings (guid, type, instance_guid, app_guid, space_guid) values ('b', 'app', 'u', $1, $2)`, app.GUID, space.GUID)
	must(t, err)
	const services = `"VCAP_SERVICES":{"user-provided":[{"label":"user-provided","provider":null,"name":"own","tags":[],"instance_guid":"u","instance_name":"own","binding_guid":"b","binding_name":null,` +
		`"credentials":{"password":"hush","port":5432.0},"syslog_drain_url":null,"volume_mounts":[]}]}`
	if got := w.call(http.MethodGet, self+"/env", dev, nil); !strings.Contains(got.body, `"system_env_json":{`+services+`}`) {
		t.Errorf("with a service: %s", got.body)
	}
	do[v3.Feature](w, 200, http.MethodPatch, self+"/features/service-binding-k8s", dev, object{"enabled": true})
	if got := w.call(http.MethodGet, self+"/env", dev, nil); !strings.Contains(got.body, `"system_env_json":{"SERVICE_BINDING_ROOT":"/etc/cf-service-bindings",`+services+`}`) {
		t.Errorf("with files: %s", got.body)
	}
	w.give("aud", platform.SpaceAuditor, org, space)
	if got := w.call(http.MethodGet, self+"/env", w.token("aud"), nil); got.status != http.StatusForbidden || strings.Contains(got.body, "hush") {
		t.Errorf("an auditor sees %d %s", got.status, got.body)
	}
}
