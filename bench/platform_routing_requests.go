package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// first is the number of the routes that requests are compared through. Traefik tries hosts one after the other, the longest first: to be
// compared, two must be of one length, and whatever stands before them costs.
const first = 1_000_000_000

// compareRequests sends as many requests as it can through one of our routes, through a bare one, and through one of the many, in turn.
func (r *router) compareRequests(ctx context.Context, n int, during time.Duration) ([]line, error) {
	name, err := r.bare(ctx, first)
	if err != nil {
		return nil, err
	}
	guid, err := r.ours(ctx, first)
	if err != nil {
		return nil, err
	}
	ours, bare, among := r.host("ours", first), r.host("bare", first), r.host("fill", n/2)
	hosts := []string{ours, bare, among}
	for _, host := range hosts {
		if err := r.answered(ctx, host); err != nil {
			return nil, err
		}
	}
	rates, tails := map[string][]float64{}, map[string][]float64{}
	for range routingRounds {
		for _, host := range hosts {
			times, err := r.flood(ctx, host, during)
			if err != nil {
				return nil, err
			}
			slices.Sort(times)
			rates[host] = append(rates[host], float64(len(times))/during.Seconds())
			tails[host] = append(tails[host], times[len(times)*99/100])
		}
		slices.Reverse(hosts)
	}
	say("%s: %.0f requests/s, bare %.0f, and %.0f through one in the middle of %d routes", routingName, median(rates[ours]), median(rates[bare]), median(rates[among]), n)
	suffix := fmt.Sprintf(".%d", n)
	return []line{
		{name: routingName + ".requests" + suffix, ours: quantity{median(rates[ours]), "requests/s"}, bare: quantity{median(rates[bare]), "requests/s"}, aim: aim{of: "ratio", is: ">=", bound: 0.95},
			notes: []string{fmt.Sprintf("medians of %d rounds, over %d connections to the same instance; the gateway tries both hosts before all others, because they are longer", routingRounds, routingConns),
				fmt.Sprintf("one in the middle of its list: %.0f requests/s", median(rates[among]))}},
		{name: routingName + ".p99" + suffix, ours: quantity{1000 * median(tails[ours]), "ms"}, bare: quantity{1000 * median(tails[bare]), "ms"}, aim: aim{of: "ratio", is: "<=", bound: 1.05}},
	}, errors.Join(r.call(ctx, http.MethodDelete, r.path()+"/"+name, nil, nil), r.deleted(ctx, guid))
}

// flood keeps connections busy, and tells how long each request took, in seconds.
func (r *router) flood(ctx context.Context, host string, during time.Duration) ([]float64, error) {
	l := load{addr: r.at.Gateway, request: []byte("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"), holds: []byte(" on 8080")}
	each := make([][]float64, routingConns)
	group, ctx := errgroup.WithContext(ctx)
	end := time.Now().Add(during)
	for i := range each {
		group.Go(func() (err error) {
			each[i], err = l.times(ctx, end)
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(each...), err
}

// times keeps one connection busy until the end, as send does.
func (l load) times(ctx context.Context, end time.Time) (all []float64, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(end.Add(10 * time.Second)); err != nil {
		return nil, err
	}
	in, body := bufio.NewReader(conn), new(bytes.Buffer)
	for begin := time.Now(); begin.Before(end); begin = time.Now() {
		if _, err := conn.Write(l.request); err != nil {
			return all, err
		}
		if err := l.read(in, body); err != nil {
			return all, err
		}
		all = append(all, time.Since(begin).Seconds())
	}
	return all, nil
}

func (r *router) deleted(ctx context.Context, guid string) error {
	_, err := r.DeleteRoute(ctx, operator, guid)
	return err
}
