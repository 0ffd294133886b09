package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is one request that is sent again and again. It shares the machine with what it measures, so it is cheap: the request is
// bytes that are made once, and a reply is read into a buffer that is used again.
type load struct {
	addr    string
	request []byte
	holds   []byte // each reply must have status 200 and hold this
	conns   int
}

// run sends for a while over all connections and counts the replies.
func (l load) run(ctx context.Context, during time.Duration) (int64, error) {
	var replies atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	end := time.Now().Add(during)
	for range l.conns {
		group.Go(func() error {
			n, err := l.send(ctx, end)
			replies.Add(n)
			return err
		})
	}
	err := group.Wait()
	return replies.Load(), err
}

// send keeps one connection busy until the end.
func (l load) send(ctx context.Context, end time.Time) (n int64, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := conn.SetDeadline(end.Add(10 * time.Second)); err != nil {
		return 0, err
	}
	in, body := bufio.NewReader(conn), new(bytes.Buffer)
	for ; time.Now().Before(end); n++ {
		if _, err := conn.Write(l.request); err != nil {
			return n, err
		}
		if err := l.read(in, body); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (l load) read(in *bufio.Reader, body *bytes.Buffer) error {
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return fmt.Errorf("read reply: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body.Reset()
	if _, err := io.Copy(body, resp.Body); err != nil {
		return fmt.Errorf("read reply: %w", err)
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(body.Bytes(), l.holds) {
		return fmt.Errorf("the reply was %s: %.200s", resp.Status, body)
	}
	return nil
}
