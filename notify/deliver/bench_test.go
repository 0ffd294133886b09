package deliver_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/proa-dev/proa/notify/deliver"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

const benchConns = 8

// benchMail is as big as a short notification in text and HTML.
func benchMail() deliver.Envelope {
	mail := envelope("user1@example.org")
	header, _, _ := bytes.Cut(mail.Raw, []byte("\r\n\r\n"))
	mail.Raw = append(append(header, "\r\n\r\n"...), strings.Repeat("Your application has been restarted because it used too much memory.\r\n", 40)...)
	return mail
}

// bareClient sends prepared bytes and reads the replies, nothing else: what no client can be faster than.
type bareClient struct {
	c              net.Conn
	r              *bufio.Reader
	envelope, body []byte
}

func newBareClient(b *testing.B, addr string) *bareClient {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	mail := benchMail()
	bare := &bareClient{
		c: c, r: bufio.NewReader(c),
		envelope: fmt.Appendf(nil, "MAIL FROM:<%s> SIZE=%d\r\nRCPT TO:<%s>\r\nDATA\r\n", mail.From, len(mail.Raw), mail.To),
		body:     append(bytes.ReplaceAll(mail.Raw, []byte("\n."), []byte("\n..")), ".\r\n"...),
	}
	if err := bare.read(1); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Write([]byte("EHLO bench\r\n")); err != nil {
		b.Fatal(err)
	}
	for {
		line, err := bare.r.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if line[3] == ' ' {
			return bare
		}
	}
}

func (bare *bareClient) read(n int) error {
	for range n {
		line, err := bare.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line[0] >= '4' {
			return fmt.Errorf("relay said %s", line)
		}
	}
	return nil
}

func (bare *bareClient) send() error {
	if _, err := bare.c.Write(bare.envelope); err != nil {
		return err
	}
	if err := bare.read(3); err != nil {
		return err
	}
	if _, err := bare.c.Write(bare.body); err != nil {
		return err
	}
	return bare.read(1)
}

// sendAll lets each of the senders send until n mails have been sent.
func sendAll(b *testing.B, n int, senders []func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for _, send := range senders {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := send(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkSend compares the pool with a bare client: the same mails, sink and number of connections. The two take turns, so
// that both meet the same machine; the ratio is of mails in a second, and cpu-ratio of mails in a second of processor time.
func BenchmarkSend(b *testing.B) {
	sink, err := smtptest.Start(smtptest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(sink.Close)
	bares := make([]func() error, benchConns)
	for i := range bares {
		bares[i] = newBareClient(b, sink.Addr).send
	}
	signer := func(key []byte) *deliver.Signer {
		s, err := deliver.NewSigner("example.org", "mail2026", key)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name    string
		perConn int
		signer  *deliver.Signer
	}{
		{"plain", 0, nil},
		{"long", 10_000, nil}, // over connections that are kept as long as those of the bare client
		{"ed25519", 0, signer(pkcs8(b, newEd25519(b)))},
		{"rsa2048", 0, signer(pkcs8(b, newRSA(b)))},
	} {
		b.Run(c.name, func(b *testing.B) {
			pool := &deliver.Pool{Relays: []deliver.Relay{clear(sink)}, PerRelay: benchConns, MaxPerConn: c.perConn, DKIM: c.signer}
			defer pool.Close()
			pools, mail := make([]func() error, benchConns), benchMail()
			for i := range pools {
				pools[i] = func() error { return pool.Send(b.Context(), mail) }
			}
			const turn = 2000
			var bare, pooled stopwatch
			for range max(b.N/turn, 3) {
				bare.time(b, func() { sendAll(b, turn, bares) })
				pooled.time(b, func() { sendAll(b, turn, pools) })
			}
			b.ReportMetric(bare.rate(turn), "bare/s")
			b.ReportMetric(pooled.rate(turn), "pool/s")
			b.ReportMetric(pooled.rate(turn)/bare.rate(turn), "ratio")
			b.ReportMetric(bare.cpu.Seconds()/pooled.cpu.Seconds(), "cpu-ratio")
		})
	}
}

// stopwatch measures turns: the time they take, and the processor's, which a busy machine changes less.
type stopwatch struct {
	turns     int
	wall, cpu time.Duration
}

func (s *stopwatch) time(b *testing.B, f func()) {
	begin, used := time.Now(), processorTime(b)
	f()
	s.wall += time.Since(begin)
	s.cpu += processorTime(b) - used
	s.turns++
}

func (s *stopwatch) rate(turn int) float64 { return float64(s.turns*turn) / s.wall.Seconds() }

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
