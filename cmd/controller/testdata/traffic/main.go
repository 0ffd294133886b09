// Command traffic answers requests of every kind that an app may get, on the ports that it is given, and connections on those after echo:. Told to stop, it finishes
// what it has.
package main

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	host, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	var all sync.WaitGroup
	for _, port := range os.Args[1:] {
		if port, is := strings.CutPrefix(port, "echo:"); is {
			go echo(host, port)
			continue
		}
		server := &http.Server{Addr: ":" + port, Handler: answers(host, port), ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		go func() {
			if err := server.ListenAndServe(); err != http.ErrServerClosed {
				log.Fatal(err)
			}
		}()
		all.Go(func() {
			<-told.Done()
			limit, cancel := context.WithTimeout(context.Background(), 9*time.Second)
			defer cancel()
			if err := server.Shutdown(limit); err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
}

// echo is spoken to in no words of http: it says who it is before it is asked, and sends back the bytes that come.
func echo(host, port string) {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer conn.Close()
			fmt.Fprintf(conn, "%s on %s\n", host, port)
			_, _ = io.Copy(conn, conn)
		}()
	}
}

func number(r *http.Request, name string) int {
	n, _ := strconv.Atoi(r.PathValue(name))
	return n
}

func answers(host, port string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s on %s\n", host, port)
	})
	mux.HandleFunc("GET /headers", func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Host", r.Host)
		_ = json.NewEncoder(w).Encode(r.Header)
	})
	mux.HandleFunc("/slow/{ms}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(number(r, "ms")) * time.Millisecond)
		fmt.Fprintf(w, "%s on %s\n", host, port)
	})
	mux.HandleFunc("POST /exit/{status}", func(_ http.ResponseWriter, r *http.Request) { os.Exit(number(r, "status")) })
	mux.HandleFunc("GET /events/{ms}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 5 {
			fmt.Fprintf(w, "data: %d\n\n", n)
			w.(http.Flusher).Flush()
			time.Sleep(time.Duration(number(r, "ms")) * time.Millisecond)
		}
	})
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%d %x %v\n", n, sum.Sum(nil), err)
	})
	mux.HandleFunc("GET /socket", socket)
	mux.HandleFunc("POST /echo.Echo/Say", say)
	return mux
}

// socket accepts a websocket, and sends back the bytes that come.
func socket(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, both, err := w.(http.Hijacker).Hijack()
	if err != nil {
		log.Print(err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	_ = both.Flush()
	_, _ = io.Copy(conn, both)
}

// say is a stream in both directions as gRPC has it: an answer to each message while the next is still to come, and a trailer.
func say(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	message := make([]byte, 8)
	for {
		if _, err := io.ReadFull(r.Body, message); err != nil {
			break
		}
		_, _ = w.Write(message)
		w.(http.Flusher).Flush()
	}
	w.Header().Set("Grpc-Status", "0")
	w.Header().Set("Grpc-Message", r.Proto)
}
