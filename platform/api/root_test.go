package api_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/proa-dev/proa/platform/api"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// Where the notification service is stands in the root, so that nobody who sends must be told.
func TestRootNamesTheNotificationService(t *testing.T) {
	w := newWorld(t, func(s *api.Server) { s.Offer.Notify = &url.URL{Scheme: "https", Host: "notify.example.org", Path: "/"} })
	root := do[v3.Root](w, 200, http.MethodGet, "/", "", nil)
	if link := root.Links["notifications"]; link == nil || link.Href != "https://notify.example.org" {
		t.Errorf("the link is %+v", link)
	}
}
