package main_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// tcp is the world's own domain for tcp, with the ports of the gateway.
func (w *world) tcp() store.Settings {
	w.Helper()
	ports, err := platform.ParsePorts(os.Getenv("PROA_TCP_PORTS"))
	must(w, err)
	d := get[platform.Domain](w)(w.store.TCPDomain(w.Context(), w.installation+"."+os.Getenv("PROA_TCP_DOMAIN")))
	return store.Settings{TCP: store.TCP{Domain: d, Ports: ports}}
}

// port makes a route of tcp, at whatever port is free.
func (w *world) port(set store.Settings, to ...platform.Destination) platform.Route {
	w.Helper()
	r := get[platform.Route](w)(w.store.CreateRoute(w.Context(), admin, platform.Route{SpaceGUID: w.space.GUID, DomainGUID: set.TCP.Domain.GUID, Metadata: noted}, set))
	return get[platform.Route](w)(w.store.ReplaceDestinations(w.Context(), admin, r.GUID, to))
}

// dial opens a connection through the gateway and gives the first line that comes, once something is said if it is not empty.
func dial(r platform.Route, says string) (net.Conn, string, error) {
	host, _, err := net.SplitHostPort(os.Getenv("PROA_GATEWAY_HTTP"))
	if err != nil {
		return nil, "", err
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(r.Port)), 5*time.Second)
	if err != nil {
		return nil, "", err
	}
	_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err = io.WriteString(conn, says); err == nil {
		var line []byte
		for len(line) == 0 || line[len(line)-1] != '\n' { // no more than the line
			one := make([]byte, 1)
			if _, err = io.ReadFull(conn, one); err != nil {
				break
			}
			line = append(line, one[0])
		}
		if err == nil {
			return conn, strings.TrimSpace(string(line)), nil
		}
	}
	_ = conn.Close()
	return nil, "", err
}

// greets tells who greets at a route.
func greets(r platform.Route) string {
	conn, line, err := dial(r, "")
	if err != nil {
		return "nobody: " + err.Error()
	}
	_ = conn.Close()
	return line
}

func (w *world) connects(r platform.Route, want string) time.Duration {
	w.Helper()
	return w.until(30*time.Second, r.URL()+" says "+want, func() error {
		if got := greets(r); !strings.Contains(got, want) {
			return errors.New(got)
		}
		return nil
	})
}

// TestTCP reaches an app that speaks no http, at a port of the gateway.
func TestTCP(t *testing.T) {
	w := newWorld(t)
	w.start()
	set, way := w.tcp(), gateway()
	a, pkg := w.app("broker", w.traffic("exec ./traffic 8080 echo:9000 echo:9001"))
	b := w.build(pkg)
	w.run(a, b.DropletGUID)
	web := w.route("broker", "", to(a, 0))
	w.answers(way, "http://"+web.URL(), "on 8080")
	get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(2)}))

	at := func(port, weight int) platform.Destination {
		return platform.Destination{AppGUID: a.GUID, ProcessType: platform.WebProcess, Port: port, Weight: weight}
	}
	r := w.port(set, at(9000, 0))
	if !set.TCP.Ports.Hold(r.Port) || r.Protocol != platform.ProtocolTCP || r.Destinations[0].Protocol != platform.ProtocolTCP || !r.Destinations[0].Pending {
		t.Errorf("the route is %+v", r)
	}
	w.answers(way, "http://"+w.route("later", "", to(a, 0)).URL(), "on 8080") // a later route is served, so this one was looked at
	if got := greets(r); !strings.HasPrefix(got, "nobody") {
		t.Errorf("before the restart it says %q", got)
	}

	get[platform.App](w)(w.store.RestartApp(t.Context(), admin, a.GUID, set))
	t.Logf("connected %.2f s after the restart", w.connects(r, "on 9000").Seconds())
	w.instances(a, "RUNNING RUNNING")
	w.until(30*time.Second, "both instances", func() error {
		seen := map[string]bool{}
		for range 20 {
			seen[greets(r)] = true
		}
		if len(seen) != 2 {
			return fmt.Errorf("these have greeted: %v", seen)
		}
		return nil
	})
	conn, _, err := dial(r, "")
	must(t, err)
	lines := bufio.NewReader(conn)
	for n := range 10 {
		_, err := fmt.Fprintf(conn, "message %d\n", n)
		must(t, err)
		if got, err := lines.ReadString('\n'); err != nil || got != fmt.Sprintf("message %d\n", n) {
			t.Fatalf("message %d came back as %q, %v", n, got, err)
		}
	}
	_ = conn.Close()
	if got := ask(way, "http://"+web.URL()); !strings.HasSuffix(got, "on 8080") {
		t.Errorf("over http it answers %q", got)
	}

	t.Run("weights", func(t *testing.T) { w.with(t).weights(r, at) })
	t.Run("beside http", func(t *testing.T) {
		w := w.with(t)
		both := w.port(set, at(0, 0))
		w.until(30*time.Second, "http over a connection", func() error {
			conn, line, err := dial(both, "GET / HTTP/1.0\r\n\r\n")
			if err != nil {
				return err
			}
			_ = conn.Close()
			if !strings.HasPrefix(line, "HTTP/1.0 200") {
				return errors.New(line)
			}
			return nil
		})
		if got := ask(way, "http://"+web.URL()); !strings.HasSuffix(got, "on 8080") {
			t.Errorf("over http it answers %q", got)
		}
	})

	in, uid := "--namespace="+w.space.Namespace(), "-o=jsonpath={.metadata.uid}"
	was := w.try(in, "get", "tcproute", "t-"+r.GUID, uid)
	w.try(in, "delete", "tcproute", "t-"+r.GUID)
	took := w.until(30*time.Second, "another object", func() error {
		if is := w.try(in, "get", "tcproute", "t-"+r.GUID, uid); is == was || strings.Contains(is, " ") {
			return errors.New(is)
		}
		return nil
	})
	w.connects(r, "on 9000")
	t.Logf("deleted by hand, it is back after %.1f s", took.Seconds())

	// The port goes to another route, and its connections with it.
	get[platform.Job](w)(w.store.DeleteRoute(t.Context(), admin, r.GUID))
	next := get[platform.Route](w)(w.store.CreateRoute(t.Context(), admin, platform.Route{SpaceGUID: w.space.GUID, DomainGUID: set.TCP.Domain.GUID, Port: r.Port, Metadata: noted}, set))
	next = get[platform.Route](w)(w.store.ReplaceDestinations(t.Context(), admin, next.GUID, []platform.Destination{at(9001, 0)}))
	w.connects(next, "on 9001")
	get[platform.App](w)(w.store.StopApp(t.Context(), admin, a.GUID))
	w.until(time.Minute, "nothing left", func() error {
		if left := w.there("tcproutes,httproutes,services", "route"); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	w.connects(next, "nobody")
}

// weights lets a route lead to two ports, with three connections for one.
func (w *world) weights(r platform.Route, at func(port, weight int) platform.Destination) {
	get[platform.Route](w)(w.store.ReplaceDestinations(w.Context(), admin, r.GUID, []platform.Destination{at(9000, 75), at(9001, 25)}))
	a := get[platform.App](w)(w.store.App(w.Context(), admin, r.Destinations[0].AppGUID))
	get[platform.App](w)(w.store.RestartApp(w.Context(), admin, a.GUID, store.Settings{}))
	w.connects(r, "on 9001")
	w.instances(a, "RUNNING RUNNING")
	count := map[string]int{}
	for range 80 {
		_, port, _ := strings.Cut(greets(r), " on ")
		count[port]++
	}
	if count["9000"] < 50 || count["9000"] > 70 || count["9000"]+count["9001"] != 80 {
		w.Errorf("of 80 connections came %v", count)
	}
	w.Logf("of 80 connections came %v", count)
}

// with is the world in a part of its test.
func (w *world) with(t *testing.T) *world {
	own := *w
	own.T = t
	return &own
}
