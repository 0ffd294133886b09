package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// What serves a route is the gateway. The bare engine is an HTTPRoute of the same shape, to the same Service, that is given to the API
// server without us.
var routing = figure{
	name:  routingName,
	about: "a route's first answer among others, a pass when nothing changes, and requests through it, beside a bare HTTPRoute; needs a cluster",
	run:   measureRouting,
}

const (
	routingName   = "platform.routing"
	routingRounds = 7
	routingConns  = 16
	routingIdle   = 31 * time.Second // three full passes
	minRoutes     = 200              // a tenth is more than the 10 before
	maxRoutes     = 20_000
)

func measureRouting(ctx context.Context, b *bench) ([]line, error) {
	var lines []line
	err := b.withController(ctx, routingName, func(ctx context.Context, c *controlled) error {
		r, end, err := c.route(ctx)
		if err != nil {
			return err
		}
		defer end()
		for _, n := range []int{10, b.routes / 10, b.routes} {
			more, err := r.among(ctx, n)
			if err != nil {
				return fmt.Errorf("among %d routes: %w", n, err)
			}
			lines = append(lines, more...)
			if n > 10 && n < b.routes {
				continue
			}
			more, err = r.compareRequests(ctx, n, b.round)
			if err != nil {
				return fmt.Errorf("requests among %d routes: %w", n, err)
			}
			lines = append(lines, more...)
		}
		return nil
	})
	return lines, err
}

// router makes routes, by the records and without them.
type router struct {
	*controlled
	api    string // the API server, through kubectl
	domain platform.Domain
	status json.RawMessage // what the gateway says of a route that it serves
	routes int
}

func (c *controlled) route(ctx context.Context) (*router, func(), error) {
	r := &router{controlled: c}
	var err error
	if r.domain, err = c.AppsDomain(ctx, c.installation+"."+c.at.Domain); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "kubectl", "proxy", "--port=0", "--api-prefix=/")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	end := func() { cancel(); _ = cmd.Wait() } // it ends by our signal
	said, err := bufio.NewReader(out).ReadString('\n')
	_, at, found := strings.Cut(strings.TrimSpace(said), "Starting to serve on ")
	if err != nil || !found {
		end()
		return nil, nil, fmt.Errorf("kubectl proxy said %q: %w", said, err)
	}
	r.api = "http://" + at
	return r, end, nil
}

func (r *router) host(kind string, n int) string {
	return fmt.Sprintf("%s-%d.%s", kind, n, r.domain.Name)
}

// asks one host through the gateway, over a connection of its own: the gateway gives each change to new requests only.
func (r *router) asks(ctx context.Context, host string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.at.Gateway, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// answered waits for the first good answer.
func (r *router) answered(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		status, err := r.asks(ctx, host)
		if err != nil {
			return fmt.Errorf("%s: %w", host, err)
		}
		if status == http.StatusOK {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// among brings the cluster to so many routes, and measures.
func (r *router) among(ctx context.Context, n int) ([]line, error) {
	begin := time.Now()
	if err := r.fill(ctx, n); err != nil {
		return nil, err
	}
	say("%s: %d routes are served after %.0f s", routingName, n, time.Since(begin).Seconds())
	query, err := r.readWanted(ctx, n)
	if err != nil {
		return nil, err
	}
	pass, err := r.idle(ctx)
	if err != nil {
		return nil, err
	}
	say("a pass took %.0f ms, of which reading what is wanted %.0f ms", pass*1000, query*1000)
	var ours, bare []float64
	for round := range routingRounds {
		theirs, err := r.serveBare(ctx, n+round)
		if err != nil {
			return nil, err
		}
		mine, err := r.serve(ctx, n+round)
		if err != nil {
			return nil, err
		}
		ours, bare = append(ours, mine), append(bare, theirs)
		say("first answer after %.2f s, bare %.2f s", mine, theirs)
	}
	suffix := fmt.Sprintf(".%d", n)
	return []line{
		{name: routingName + ".first" + suffix, ours: quantity{median(ours), "s"}, bare: quantity{median(bare), "s"},
			notes: []string{fmt.Sprintf("medians of %d, among %d routes; from the rows, or from the request to the API server, to the first answer", routingRounds, n)}},
		{name: routingName + ".pass" + suffix, ours: quantity{pass * 1000, "ms"}, bare: quantity{query * 1000, "ms in PostgreSQL"}, aim: aim{of: "ours", is: "<=", bound: 1000, unit: " ms"},
			notes: []string{"mean of the controller's passes while nothing changes, beside reading what is wanted"}},
	}, nil
}

// fill adds rows until there are so many routes, and waits until the last of them is served. The gateway of the development cluster
// writes into each new route what it thinks of it, five in a second, and serves none of a batch before it has written to all: here
// the first routes are written to by the gateway, and the others by us in its stead.
func (r *router) fill(ctx context.Context, n int) error {
	pool, err := pg.Open(ctx, r.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	first := r.routes
	const add = `with t as (insert into routes (guid, space_guid, domain_guid, host, hostname, path)
			select gen_random_uuid(), $1, $2, 'fill-' || n, 'fill-' || n || '.' || $3, '' from generate_series($4::int, $5::int - 1) n returning guid)
		insert into destinations (guid, route_guid, app_guid, process_type, port, weight, protocol) select gen_random_uuid(), guid, $6, 'web', 0, 0, 'http1' from t`
	if _, err := pool.Exec(ctx, add, r.space.GUID, r.domain.GUID, r.domain.Name, first, n, r.app.GUID); err != nil {
		return fmt.Errorf("add rows: %w", err)
	}
	r.routes = n
	if r.status != nil {
		if err := r.writeStatus(ctx, n-first); err != nil {
			return err
		}
	}
	for _, one := range []int{n - 1, first} {
		if err := r.answered(ctx, r.host("fill", one)); err != nil {
			return err
		}
	}
	if r.status == nil {
		r.status, err = r.readStatus(ctx)
	}
	return err
}

func (r *router) path() string {
	return "/apis/gateway.networking.k8s.io/v1/namespaces/" + r.space.Namespace() + "/httproutes"
}

// call asks the API server.
func (r *router) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, r.api+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s %.300s", method, path, resp.Status, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

func (r *router) readStatus(ctx context.Context) (json.RawMessage, error) {
	var found struct {
		Items []struct{ Status json.RawMessage }
	}
	err := r.call(ctx, http.MethodGet, r.path()+"?limit=1", nil, &found)
	if err == nil && (len(found.Items) != 1 || len(found.Items[0].Status) < 100) {
		err = errors.New("the gateway has not said what it thinks of a route that it serves")
	}
	if err != nil {
		return nil, err
	}
	return found.Items[0].Status, nil
}

// writeStatus follows routes as they come.
func (r *router) writeStatus(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.api+r.path()+"?watch=1", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for events := json.NewDecoder(resp.Body); n > 0; {
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ Name string }
				Status   struct{ Parents []json.RawMessage }
			}
		}
		if err := events.Decode(&event); err != nil {
			return errors.Join(err, group.Wait())
		}
		if event.Type != "ADDED" || len(event.Object.Status.Parents) > 0 {
			continue
		}
		n--
		group.Go(func() error {
			return r.call(ctx, http.MethodPatch, r.path()+"/"+event.Object.Metadata.Name+"/status", map[string]any{"status": r.status}, nil)
		})
	}
	return group.Wait()
}

// readWanted times the statement behind a pass.
func (r *router) readWanted(ctx context.Context, n int) (float64, error) {
	var times []float64
	for range 5 {
		begin := time.Now()
		all, err := r.WantedRoutes(ctx, "default")
		times = append(times, time.Since(begin).Seconds())
		if err == nil && len(all) != n {
			err = fmt.Errorf("%d routes are wanted", len(all))
		}
		if err != nil {
			return 0, err
		}
	}
	return median(times), nil
}

// idle is the mean time of the controller's passes while nothing changes.
func (r *router) idle(ctx context.Context) (float64, error) {
	before, err := r.passes(ctx)
	if err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(routingIdle):
	}
	after, err := r.passes(ctx)
	if err == nil && after.count == before.count {
		err = errors.New("the controller made no pass")
	}
	return (after.sum - before.sum) / (after.count - before.count), err
}

type passes struct{ sum, count float64 }

func (r *router) passes(ctx context.Context) (p passes, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.metrics+"/metrics", http.NoBody)
	if err != nil {
		return p, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return p, err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "proa_controller_pass_seconds_sum %g", &p.sum)
		_, _ = fmt.Sscanf(lines.Text(), "proa_controller_pass_seconds_count %g", &p.count)
	}
	return p, lines.Err()
}

// serve makes a route by the records, and takes it away again.
func (r *router) serve(ctx context.Context, n int) (float64, error) {
	begin := time.Now()
	guid, err := r.ours(ctx, n)
	if err != nil {
		return 0, err
	}
	if err := r.answered(ctx, r.host("ours", n)); err != nil {
		return 0, err
	}
	took := time.Since(begin).Seconds()
	if _, err := r.DeleteRoute(ctx, operator, guid); err != nil {
		return 0, err
	}
	return took, r.unanswered(ctx, r.host("ours", n))
}

// ours is a route as people ask for it.
func (r *router) ours(ctx context.Context, n int) (guid string, err error) {
	route, err := r.CreateRoute(ctx, operator, platform.Route{SpaceGUID: r.space.GUID, DomainGUID: r.domain.GUID, Host: fmt.Sprintf("ours-%d", n), Protocol: platform.ProtocolHTTP,
		Metadata: platform.Metadata{Labels: map[string]string{}, Annotations: map[string]string{}}}, store.Settings{})
	if err != nil {
		return "", err
	}
	to := platform.Destination{AppGUID: r.app.GUID, ProcessType: platform.WebProcess, Protocol: platform.ProtocolHTTP1}
	_, err = r.ReplaceDestinations(ctx, operator, route.GUID, []platform.Destination{to})
	return route.GUID, err
}

// serveBare does the same without the records.
func (r *router) serveBare(ctx context.Context, n int) (float64, error) {
	begin := time.Now()
	name, err := r.bare(ctx, n)
	if err != nil {
		return 0, err
	}
	if err := r.answered(ctx, r.host("bare", n)); err != nil {
		return 0, err
	}
	took := time.Since(begin).Seconds()
	if err := r.call(ctx, http.MethodDelete, r.path()+"/"+name, nil, nil); err != nil {
		return 0, err
	}
	return took, r.unanswered(ctx, r.host("bare", n))
}

// bare is an HTTPRoute as people write it.
func (r *router) bare(ctx context.Context, n int) (name string, err error) {
	type object = map[string]any
	name = fmt.Sprintf("bare-%d", n)
	return name, r.call(ctx, http.MethodPost, r.path(), object{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": object{"name": name},
		"spec": object{
			"parentRefs": []object{{"namespace": "proa-gateway", "name": "apps"}}, "hostnames": []string{r.host("bare", n)},
			"rules": []object{{"backendRefs": []object{{"name": "p-" + r.process, "port": platform.DefaultPort}}}},
		},
	}, nil)
}

func (r *router) unanswered(ctx context.Context, host string) error {
	return await(ctx, func() (bool, error) {
		status, err := r.asks(ctx, host)
		return status == http.StatusNotFound, err
	})
}
