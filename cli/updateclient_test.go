package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

func TestUpdateClient(t *testing.T) {
	var asked string
	w := loggedIn(t, func(w *world) map[string]http.HandlerFunc {
		guarded := func(next http.HandlerFunc) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Authorization") != "bearer "+w.good:
					w.say(rw, http.StatusUnauthorized, map[string]string{"error": "invalid_token", "error_description": "No token."})
				case r.PathValue("id") != "harbour":
					w.say(rw, http.StatusNotFound, map[string]string{"error": "not_found", "error_description": "No such client."})
				default:
					next(rw, r)
				}
			}
		}
		return map[string]http.HandlerFunc{
			"GET /oauth/clients/{id}": guarded(func(rw http.ResponseWriter, _ *http.Request) {
				w.say(rw, http.StatusOK, map[string]any{"client_id": "harbour", "authorities": []string{"notifications.write", "emails.write"}, "authorized_grant_types": []string{"client_credentials"}})
			}),
			"PUT /oauth/clients/{id}": guarded(func(rw http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !json.Valid(body) {
					t.Errorf("%s, %v", body, err)
				}
				asked = string(body)
				w.say(rw, http.StatusOK, map[string]any{"client_id": "harbour"})
			}),
		}
	})
	contains(t, w.ok("update-client", "harbour", "--add-authority", "notifications.manage,notifications.write", "--remove-authority", "emails.write"), "Updating client harbour as ada...", "OK")
	if want := `{"authorities":["notifications.manage","notifications.write"],"client_id":"harbour"}`; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	contains(t, w.refused(ExitNotFound, "update-client", "quay", "--add-authority", "x"), `There is no client "quay".`, "proa clients")
	w.refused(ExitUsage, "update-client", "harbour")
}
