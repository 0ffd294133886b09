package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestBrokersAreTrusted asks a server whose certificate nobody knows, with and without its authority among the settings.
func TestBrokersAreTrusted(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of who does not trust it
	server.StartTLS()
	defer server.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for trusted, want := range map[string]bool{"": false, authority: true} {
		client, err := (&config{Timeout: 5 * time.Second, Trusted: trusted}).brokers()
		if err != nil || client.Timeout != 5*time.Second {
			t.Fatal(client, err)
		}
		resp, err := client.Get(server.URL)
		if (err == nil) != want {
			t.Errorf("trusting %q: %v", trusted, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	if _, err := (&config{Trusted: "nonsense"}).brokers(); err == nil || err.Error() != "PROA_BROKER_CA must be certificates in PEM" {
		t.Error(err)
	}
}
