package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

// bareSender sends one prepared mail again and again and reads the replies, nothing else: what no mail client can be faster than.
// It pipelines as the service does.
type bareSender struct {
	addr           string
	envelope, body []byte
}

func newBareSender(addr string, m *smtptest.Mail) bareSender {
	return bareSender{
		addr:     addr,
		envelope: fmt.Appendf(nil, "MAIL FROM:<%s> SIZE=%d\r\nRCPT TO:<%s>\r\nDATA\r\n", m.From, len(m.Raw), m.To),
		body:     append(bytes.ReplaceAll(m.Raw, []byte("\n."), []byte("\n..")), ".\r\n"...),
	}
}

// send sends so many mails over so many connections.
func (s bareSender) send(ctx context.Context, mails int64, conns int) error {
	var left atomic.Int64
	left.Store(mails)
	group, ctx := errgroup.WithContext(ctx)
	for range conns {
		group.Go(func() error { return s.work(ctx, &left) })
	}
	return group.Wait()
}

// work keeps one connection busy until nothing is left.
func (s bareSender) work(ctx context.Context, left *atomic.Int64) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	in := bufio.NewReader(conn)
	if err := expect(in, 1); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("EHLO bench\r\n")); err != nil {
		return err
	}
	if err := expect(in, 1); err != nil {
		return err
	}
	for left.Add(-1) >= 0 {
		if _, err := conn.Write(s.envelope); err != nil {
			return err
		}
		if err := expect(in, 3); err != nil {
			return err
		}
		if _, err := conn.Write(s.body); err != nil {
			return err
		}
		if err := expect(in, 1); err != nil {
			return err
		}
	}
	return nil
}

// expect reads so many replies, none of which may be a refusal.
func expect(in *bufio.Reader, replies int) error {
	for replies > 0 {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(text) < 4 || text[0] >= '4' {
			return fmt.Errorf("the sink said %q", text)
		}
		if text[3] == ' ' { // the last line of a reply
			replies--
		}
	}
	return nil
}
