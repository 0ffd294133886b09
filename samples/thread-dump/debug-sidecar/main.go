// Debug-sidecar makes the Java process beside it write down what its threads do: GET /threaddump sends it SIGQUIT, and the dump
// appears on its standard output, which is the app's log.
package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"syscall"
	"time"
)

func main() {
	port, token := os.Getenv("DEBUG_PORT"), os.Getenv("DEBUG_TOKEN")
	if token == "" {
		log.Print("DEBUG_TOKEN is not set: whoever reaches this port can ask for thread dumps")
	}
	log.Printf("the debug sidecar listens on port %s", port)
	server := &http.Server{Addr: ":" + port, Handler: routes("/proc", token), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func routes(proc, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /threaddump", func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r, token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Send the token of DEBUG_TOKEN, as in: Authorization: Bearer TOKEN.", http.StatusUnauthorized)
			return
		}
		pid, err := dump(proc)
		switch {
		case errors.Is(err, errNoJava):
			http.Error(w, "No Java process is ready to be asked. Try again when the app is up.", http.StatusServiceUnavailable)
		case err != nil:
			log.Printf("ask for a thread dump: %v", err)
			http.Error(w, "The Java process could not be asked. The log says why.", http.StatusInternalServerError)
		default:
			log.Printf("asked process %d for a thread dump", pid)
			fmt.Fprintf(w, "Process %d writes a thread dump to the app's log.\n", pid)
		}
	})
	return mux
}

// allowed compares in a time that tells nothing about the token, not even its length. Without a token everybody is.
func allowed(r *http.Request, token string) bool {
	if token == "" {
		return true
	}
	want, got := sha256.Sum256([]byte("Bearer "+token)), sha256.Sum256([]byte(r.Header.Get("Authorization")))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// dump asks the Java process, and returns which one that is.
func dump(proc string) (int, error) {
	pid, err := findJava(proc)
	if err != nil {
		return 0, err
	}
	return pid, syscall.Kill(pid, syscall.SIGQUIT)
}
