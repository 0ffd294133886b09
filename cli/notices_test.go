package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// noticing is the part of the API that switches notifications; why is what it refuses them with.
func noticing(on *bool, why *string) func(*world) map[string]http.HandlerFunc {
	return func(w *world) map[string]http.HandlerFunc {
		const path = "/v3/apps/a-1/features/notifications"
		show := func(rw http.ResponseWriter) {
			w.say(rw, http.StatusOK, map[string]any{"name": "notifications", "enabled": *on})
		}
		return map[string]http.HandlerFunc{
			"GET " + path: func(rw http.ResponseWriter, _ *http.Request) { show(rw) },
			"PATCH " + path: func(rw http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				switch {
				case err != nil:
					w.t.Error(err)
				case *why != "" && strings.Contains(string(body), "true"):
					w.refuse(rw, http.StatusUnprocessableEntity, "CF-UnprocessableEntity", *why)
					return
				}
				*on = strings.Contains(string(body), "true")
				show(rw)
			},
		}
	}
}

func TestNotifications(t *testing.T) {
	on, why := false, ""
	w := loggedIn(t, noticing(&on, &why))
	w.manifest, w.states = "applications: [{name: shop}]", []string{"RUNNING"}
	if out := w.ok("app", "shop"); strings.Contains(out, "notifications") {
		t.Errorf("nobody asked for them:\n%s", out)
	}
	contains(t, w.ok("enable-notifications", "shop"), "Enabling notifications for app shop", "OK", "crashed three times in a row")
	contains(t, w.ok("app", "shop"), "notifications:   on")
	contains(t, w.ok("app", "shop", "--output", "json"), `"notifications": true`)
	contains(t, w.ok("disable-notifications", "shop"), "Disabling notifications for app shop", "OK")
	if on {
		t.Error("they are still on")
	}
	why = "Notifications are not available here, because this installation knows no notification service. Ask its operator to set PROA_NOTIFY_URL."
	if _, err, code := w.run("enable-notifications", "shop"); code != ExitFailed || !strings.Contains(err, why) {
		t.Errorf("exit %d: %s", code, err)
	}
}

// TestNotificationsElsewhere: another platform knows nothing of them.
func TestNotificationsElsewhere(t *testing.T) {
	w := loggedIn(t)
	w.manifest, w.states = "applications: [{name: shop}]", []string{"RUNNING"}
	w.ok("app", "shop")
	if _, err, code := w.run("enable-notifications", "shop"); code != ExitFailed || !strings.Contains(err, "does not tell developers") {
		t.Errorf("exit %d: %s", code, err)
	}
}
