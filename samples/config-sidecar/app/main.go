// App asks the config server beside it for its configuration, and shows what it got.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	config := "http://localhost:" + os.Getenv("CONFIG_SERVER_PORT") + "/config/"
	client := &http.Client{Timeout: 5 * time.Second}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, r *http.Request) { relay(w, r, client, config) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Ask for /config: it comes from the sidecar.\n")
	})
	port := os.Getenv("PORT")
	log.Printf("the app listens on port %s and asks %s", port, config)
	server := &http.Server{Addr: ":" + port, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// relay asks the sidecar and returns what it returned.
func relay(w http.ResponseWriter, r *http.Request, client *http.Client, config string) {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, config, nil)
	if err != nil {
		http.Error(w, "CONFIG_SERVER_PORT is not a port. Set it in the manifest.", http.StatusInternalServerError)
		return
	}
	resp, err := client.Do(ask)
	if err != nil {
		log.Printf("ask the config server: %v", err)
		http.Error(w, "The config server does not answer. Try again.", http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, resp.Body); err != nil {
		log.Printf("return what the config server said: %v", err)
	}
}
