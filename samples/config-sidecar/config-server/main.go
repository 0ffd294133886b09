// Config-server has the configuration of the app beside it. It listens on localhost only: who asks is in the same container.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"time"
)

// configuration is what the app may do, and what it proves that with.
type configuration struct {
	Scope    string `json:"scope"`
	Password string `json:"password"`
}

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /config/{$}", func(w http.ResponseWriter, _ *http.Request) {
		log.Print("the app has asked for its configuration")
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(configuration{Scope: "orders.read", Password: "a-sample-is-no-secret"}); err != nil {
			log.Print(err)
		}
	})
	address := "localhost:" + os.Getenv("CONFIG_SERVER_PORT")
	log.Printf("the config server listens on %s", address)
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
