// Command app is what the smoke test runs in its pods: it listens on the ports it is given, says on each which one it
// is and who answers, and exits when asked to.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	host, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	for _, port := range os.Args[1:] {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s on %s\n", host, port) })
		mux.HandleFunc("POST /exit/{status}", func(_ http.ResponseWriter, r *http.Request) {
			status, _ := strconv.Atoi(r.PathValue("status"))
			log.Printf("exiting with status %d", status)
			os.Exit(status)
		})
		server := &http.Server{Addr: ":" + port, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		go func() { ended <- server.ListenAndServe() }()
	}
	log.Fatal(<-ended)
}
