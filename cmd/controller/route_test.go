package main_test

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// traffic is an app that answers every kind of request.
func (w *world) traffic(command string) map[string]string {
	w.Helper()
	dir, err := programs()
	must(w, err)
	program, err := os.ReadFile(filepath.Join(dir, "traffic"))
	must(w, err)
	return map[string]string{"Procfile": "web: " + command + "\n", "traffic": string(program)}
}

// routed stages and starts an app that answers every kind of request.
func (w *world) routed(name string) platform.App {
	w.Helper()
	a, pkg := w.app(name, w.traffic("exec ./traffic $PORT"))
	b := w.build(pkg)
	if b.State != platform.BuildStaged {
		w.Fatalf("the build is %+v\n%s", b, w.log(a.GUID))
	}
	w.run(a, b.DropletGUID)
	return a
}

// domain is one that only this world has.
func (w *world) domain() string {
	return w.installation + "." + os.Getenv("PROA_APPS_DOMAIN")
}

// route makes a route under the world's domain.
func (w *world) route(host, path string, to ...platform.Destination) platform.Route {
	w.Helper()
	d := get[platform.Domain](w)(w.store.AppsDomain(w.Context(), w.domain()))
	r := get[platform.Route](w)(w.store.CreateRoute(w.Context(), admin, platform.Route{SpaceGUID: w.space.GUID, DomainGUID: d.GUID, Host: host, Path: path, Protocol: platform.ProtocolHTTP, Metadata: noted}, store.Settings{}))
	if len(to) > 0 {
		r = get[platform.Route](w)(w.store.ReplaceDestinations(w.Context(), admin, r.GUID, to))
	}
	return r
}

func to(a platform.App, port int) platform.Destination {
	return platform.Destination{AppGUID: a.GUID, ProcessType: platform.WebProcess, Port: port, Protocol: platform.ProtocolHTTP1}
}

// gateway is a way to the gateway, whatever the name in the address.
func gateway() *http.Transport {
	at := map[string]string{"80": os.Getenv("PROA_GATEWAY_HTTP"), "443": os.Getenv("PROA_GATEWAY_HTTPS")}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, at[port])
		},
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, // the name is not that of its certificate
		MaxIdleConnsPerHost: 100,
	}
}

// ask tells what a GET answers: its status and text.
func ask(t http.RoundTripper, url string) string {
	client := &http.Client{Transport: t, Timeout: 10 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, strings.TrimSpace(string(text)))
}

func (w *world) answers(t http.RoundTripper, url, want string) time.Duration {
	w.Helper()
	return w.until(30*time.Second, url+" answers "+want, func() error {
		if got := ask(t, url); !strings.Contains(got, want) {
			return errors.New(got)
		}
		return nil
	})
}

// TestSidecarRoute is a debug sidecar that gets a route: it answers after the next release and not before, beside the main process.
func TestSidecarRoute(t *testing.T) {
	w := newWorld(t)
	w.start()
	way := gateway()
	a := w.routed("shop")
	main := w.route("shop", "", to(a, 0))
	t.Logf("the first answer came %.2f s after the rows", w.answers(way, "http://"+main.URL(), "on 8080").Seconds())

	get[platform.Sidecar](w)(w.store.CreateSidecar(t.Context(), admin, platform.Sidecar{AppGUID: a.GUID, Name: "debug", Command: "exec ./traffic 9090", ProcessTypes: []string{"web"}, MemoryMB: new(32), Origin: platform.SidecarOfUser}))
	debug := w.route("debug", "/threaddump", to(a, 9090))
	if !debug.Destinations[0].Pending {
		t.Errorf("the destination is %+v", debug.Destinations[0])
	}
	w.until(15*time.Second, "a pass that saw it", func() error { // a later route is served, so this one was looked at
		other := w.route(strings.ToLower(fmt.Sprintf("other-%d", time.Now().UnixNano())), "", to(a, 0))
		w.answers(way, "http://"+other.URL(), "on 8080")
		return nil
	})
	if got := ask(way, "http://"+debug.URL()); !strings.HasPrefix(got, "404") {
		t.Errorf("before the restart it answers %q", got)
	}
	ports := w.try("--namespace="+w.space.Namespace(), "get", "services", "-o", "jsonpath={.items[*].spec.ports[*].port}")
	if ports != "8080" {
		t.Errorf("before the restart the ports are %q", ports)
	}

	get[platform.App](w)(w.store.RestartApp(t.Context(), admin, a.GUID, store.Settings{}))
	t.Logf("the sidecar answers %.2f s after the restart", w.answers(way, "http://"+debug.URL(), "on 9090").Seconds())
	for range 20 {
		if got := ask(way, "http://"+main.URL()); !strings.HasSuffix(got, "on 8080") {
			t.Errorf("the main process answers %q", got)
		}
		if got := ask(way, "http://"+debug.URL()+"/more"); !strings.HasSuffix(got, "on 9090") {
			t.Errorf("the sidecar answers %q", got)
		}
	}
	for _, beside := range []string{"http://" + debug.Hostname(), "http://" + debug.URL() + "s", "http://nobody." + w.domain()} {
		if got := ask(way, beside); !strings.HasPrefix(got, "404") {
			t.Errorf("%s answers %q", beside, got)
		}
	}

	get[platform.Job](w)(w.store.DeleteRoute(t.Context(), admin, debug.GUID))
	t.Logf("its route is gone %.2f s after it was deleted", w.answers(way, "http://"+debug.URL(), "404").Seconds())
	get[platform.App](w)(w.store.StopApp(t.Context(), admin, a.GUID))
	w.until(time.Minute, "nothing left", func() error {
		if left := w.there("httproutes,services", "route"); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	w.answers(way, "http://"+main.URL(), "404")
}

// TestRoutesComeBack alters and deletes by hand what serves a route.
func TestRoutesComeBack(t *testing.T) {
	w := newWorld(t)
	w.start()
	way := gateway()
	a := w.routed("shop")
	r := w.route("shop", "", to(a, 0))
	w.answers(way, "http://"+r.URL(), "on 8080")
	in := "--namespace=" + w.space.Namespace()
	for _, change := range [][]string{
		{in, "delete", "httproute", "t-" + r.GUID},
		{in, "delete", "service", "--all"},
		{in, "patch", "httproute", "t-" + r.GUID, "--type=merge", `-p={"spec":{"hostnames":["other.example.org"]}}`},
		{in, "patch", "service", "p-" + w.web(a).GUID, "--type=merge", `-p={"spec":{"selector":{"proa.dev/process":"other"}}}`},
	} {
		w.try(change...)
		w.until(10*time.Second, strings.Join(change[1:4], " "), func() error {
			if got := ask(way, "http://"+r.URL()); strings.HasPrefix(got, "200") {
				return errors.New(got)
			}
			return nil
		})
		t.Logf("%s: it answers again after %.1f s", strings.Join(change[1:4], " "), w.answers(way, "http://"+r.URL(), "on 8080").Seconds())
	}
}

// TestTraffic sends every kind of request through the gateway.
func TestTraffic(t *testing.T) {
	w := newWorld(t)
	w.start()
	way := gateway()
	a := w.routed("shop")
	r := w.route("shop", "", to(a, 0))
	url := "http://" + r.URL()
	w.answers(way, url, "on 8080")

	t.Run("tls", func(t *testing.T) {
		if got := ask(way, "https://"+r.URL()); !strings.HasSuffix(got, "on 8080") {
			t.Errorf("it answers %q", got)
		}
	})
	t.Run("headers", func(t *testing.T) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/headers", nil)
		must(t, err)
		request.Header.Set("X-Forwarded-For", "192.0.2.1") // nobody may say where others come from
		request.Header.Set("X-Request-Id", "mine")
		heard := func() (got http.Header) {
			response, err := way.RoundTrip(request)
			must(t, err)
			defer response.Body.Close()
			must(t, json.NewDecoder(response.Body).Decode(&got))
			return got
		}
		got := heard()
		for name, want := range map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": r.Hostname(), "X-Forwarded-Proto": "http", "Host": r.Hostname(), "X-Request-Id": "mine"} {
			if got.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, got.Get(name), want)
			}
		}
		// Each request has an id: the client's, or a new one.
		const trace = "0af7651916cd43dd8448eb211c80319c"
		id := regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-0[01]$`)
		first, second := id.FindStringSubmatch(got.Get("Traceparent")), id.FindStringSubmatch(heard().Get("Traceparent"))
		if first == nil || second == nil || first[1] == second[1] {
			t.Errorf("the ids of two requests are %q and %q", first, second)
		}
		request.Header.Set("Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
		if its := id.FindStringSubmatch(heard().Get("Traceparent")); its == nil || its[1] != trace {
			t.Errorf("the client's own id became %q", its)
		}
		request.Header.Set("Traceparent", "nonsense")
		if its := id.FindStringSubmatch(heard().Get("Traceparent")); its == nil {
			t.Error("with what is no id it has none")
		}
	})
	t.Run("slow", func(t *testing.T) {
		client := &http.Client{Transport: way, Timeout: 2 * time.Minute}
		response, err := client.Get(url + "/slow/65000") // a minute is what many proxies wait
		must(t, err)
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("it answers %s", response.Status)
		}
	})
	t.Run("events", func(t *testing.T) {
		client := &http.Client{Transport: way, Timeout: time.Minute}
		response, err := client.Get(url + "/events/300")
		must(t, err)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		var last time.Time
		n := 0
		for lines.Scan() {
			if !strings.HasPrefix(lines.Text(), "data: ") {
				continue
			}
			if since := time.Since(last); n > 0 && since < 100*time.Millisecond {
				t.Errorf("event %d came %s after the one before: it was held back", n, since)
			}
			n, last = n+1, time.Now()
		}
		if n != 5 {
			t.Errorf("%d events came", n)
		}
	})
	t.Run("websocket", func(t *testing.T) { socket(t, r.Hostname()) })
	t.Run("upload", func(t *testing.T) { upload(t, way, url) })
	t.Run("grpc", func(t *testing.T) {
		get[platform.Route](w)(w.store.ReplaceDestinations(t.Context(), admin, r.GUID, []platform.Destination{{AppGUID: a.GUID, ProcessType: "web", Protocol: platform.ProtocolHTTP2}}))
		h2 := gateway()
		h2.Protocols = new(http.Protocols)
		h2.Protocols.SetUnencryptedHTTP2(true)
		h2.Protocols.SetHTTP2(true)
		for _, scheme := range []string{"http://", "https://"} {
			w.until(20*time.Second, scheme+" in both directions", func() error { return stream(t, h2, scheme+r.URL()) })
		}
	})
}

// socket opens a websocket and waits for each message to come back.
func socket(t *testing.T, host string) {
	t.Helper()
	conn, err := net.Dial("tcp", os.Getenv("PROA_GATEWAY_HTTP"))
	must(t, err)
	defer func() { _ = conn.Close() }()
	must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	key := base64.StdEncoding.EncodeToString([]byte("sixteen letters."))
	_, err = fmt.Fprintf(conn, "GET /socket HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", host, key)
	must(t, err)
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	must(t, err)
	defer response.Body.Close()
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		t.Fatalf("it answers %s %v", response.Status, response.Header)
	}
	for n := range 10 {
		message := fmt.Sprintf("\x81\x09message %d", n)
		_, err = conn.Write([]byte(message))
		must(t, err)
		got := make([]byte, len(message))
		if _, err = io.ReadFull(in, got); err != nil || string(got) != message {
			t.Fatalf("message %d came back as %q, %v", n, got, err)
		}
	}
}

// upload sends 1 GiB that the gateway must not keep.
func upload(t *testing.T, way http.RoundTripper, url string) {
	t.Helper()
	const size = 1 << 30
	sum := sha256.New()
	body := io.TeeReader(io.LimitReader(counting{}, size), sum)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/upload", body)
	must(t, err)
	request.ContentLength = size
	began := time.Now()
	response, err := way.RoundTrip(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	if want := fmt.Sprintf("%d %x <nil>\n", size, sum.Sum(nil)); string(text) != want {
		t.Errorf("it answers %s %q, want %q", response.Status, text, want)
	}
	t.Logf("1 GiB took %.1f s", time.Since(began).Seconds())
}

// counting is bytes without an end.
type counting struct{}

func (counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

// stream says things over HTTP/2, each after the answer to the one before, and reads the trailer.
func stream(t *testing.T, way http.RoundTripper, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, in := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/echo.Echo/Say", out)
	must(t, err)
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	response, err := way.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	for n := range 10 {
		message := fmt.Sprintf("say %4d", n)
		if _, err := in.Write([]byte(message)); err != nil {
			return err
		}
		got := make([]byte, len(message))
		if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != message {
			return fmt.Errorf("%q came back as %q, %w", message, got, err)
		}
	}
	_ = in.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.Trailer.Get("Grpc-Status") != "0" || response.Trailer.Get("Grpc-Message") != "HTTP/2.0" {
		return fmt.Errorf("the trailer is %v", response.Trailer)
	}
	return nil
}

// TestPrecedence has routes that could take each other's requests. The port tells which one answered.
func TestPrecedence(t *testing.T) {
	w := newWorld(t)
	w.start()
	way := gateway()
	a, pkg := w.app("shop", w.traffic("exec ./traffic 8080 9001 9002 9003 9004 9005"))
	b := w.build(pkg)
	w.route("*", "", to(a, 9001))
	w.route("shop", "", to(a, 9002))
	w.route("shop", "/cart", to(a, 9003))
	w.route("shop", "/cart/old", to(a, 9004))
	w.route("", "", to(a, 9005))
	w.route("other", "", to(a, 8080))
	w.run(a, b.DropletGUID)
	w.answers(way, "http://other."+w.domain(), "on 8080")
	for address, want := range map[string]string{
		"anyone." + w.domain():              "on 9001",
		"anyone." + w.domain() + "/cart":    "on 9001",
		"deep.down." + w.domain():           "on 9001",
		"shop." + w.domain():                "on 9002",
		"SHOP." + w.domain():                "on 9002",
		"shop." + w.domain() + "/cartwheel": "on 9002",
		"shop." + w.domain() + "/cart":      "on 9003",
		"shop." + w.domain() + "/cart/":     "on 9003",
		"shop." + w.domain() + "/cart/new":  "on 9003",
		"shop." + w.domain() + "/cart/old":  "on 9004",
		w.domain():                          "on 9005",
	} {
		if got := ask(way, "http://"+address); !strings.HasSuffix(got, want) {
			t.Errorf("%s answers %q, want %s", address, got, want)
		}
	}
}

// TestRouteFails keeps one route from being served. It holds up no other, and is served when the reason has gone.
func TestRouteFails(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	way := gateway()
	a := w.routed("shop")
	first := w.route("first", "", to(a, 0))
	w.answers(way, "http://"+first.URL(), "on 8080")
	in := "--namespace=" + w.space.Namespace()
	w.try(in, "create", "quota", "one", "--hard=count/httproutes.gateway.networking.k8s.io=1")
	w.until(20*time.Second, "the quota counts", func() error {
		if used := w.try(in, "get", "quota", "one", "-o", "jsonpath={.status.used}"); !strings.Contains(used, `"1"`) {
			return fmt.Errorf("it says %s", used)
		}
		return nil
	})
	second := w.route("second", "", to(a, 0))
	w.until(10*time.Second, "the log says why", func() error {
		if !strings.Contains(p.log.String(), "exceeded quota") {
			return errors.New("it does not")
		}
		return nil
	})
	get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(2)}))
	w.instances(a, "RUNNING RUNNING")
	if got := ask(way, "http://"+first.URL()); !strings.HasSuffix(got, "on 8080") {
		t.Errorf("the first answers %q", got)
	}
	get[platform.Job](w)(w.store.DeleteRoute(t.Context(), admin, first.GUID))
	w.answers(way, "http://"+first.URL(), "404")
	w.answers(way, "http://"+second.URL(), "on 8080")
}
