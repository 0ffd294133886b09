package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWithoutTCPRoutes is a cluster that has no definition of TCPRoute, or does not let us see them: routes of http are followed all the same.
func TestWithoutTCPRoutes(t *testing.T) {
	for status, reason := range map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden"} {
		t.Run(reason, func(t *testing.T) {
			mux := http.NewServeMux()
			list := func(kind, version string) http.HandlerFunc {
				return func(out http.ResponseWriter, r *http.Request) {
					out.Header().Set("Content-Type", "application/json")
					if r.URL.Query().Get("watch") != "" {
						<-r.Context().Done()
						return
					}
					_, _ = fmt.Fprintf(out, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind, version)
				}
			}
			mux.HandleFunc("GET /apis/gateway.networking.k8s.io/v1/httproutes", list("HTTPRouteList", "gateway.networking.k8s.io/v1"))
			mux.HandleFunc("GET /api/v1/services", list("ServiceList", "v1"))
			mux.HandleFunc("GET /apis/gateway.networking.k8s.io/v1alpha2/tcproutes", func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Content-Type", "application/json")
				out.WriteHeader(status)
				_, _ = fmt.Fprintf(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, status)
			})
			server := httptest.NewServer(mux)
			t.Cleanup(server.CloseClientConnections)
			config := filepath.Join(t.TempDir(), "kubeconfig")
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server.URL)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := Connect(config, Settings{})
			if err != nil {
				t.Fatal(err)
			}
			routing, err := c.watchRoutes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := &Watch{routing: routing}
			if routes, entries := w.Routes(); len(routes)+len(entries) != 0 {
				t.Errorf("it has %v and %v", routes, entries)
			}
			if why := w.WhyNoTCP(); why == nil || !strings.Contains(why.Error(), "experimental channel") {
				t.Errorf("no reason is given: %v", why)
			}
		})
	}
}
