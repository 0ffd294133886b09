package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// What Dial says on its stderr: that it has a connection, and that the other side has ended its half after so many bytes.
// Kubernetes ends stdout only with the process, and keeps no order between stdout and stderr.
const (
	DialConnected = "connected"
	DialEnd       = "end"
)

const dialTimeout = 10 * time.Second

// Dial connects stdin and stdout with an address that the container reaches, until both directions have ended.
func Dial(ctx context.Context, address string) error {
	runtime.GOMAXPROCS(1)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintln(os.Stderr, DialConnected)
	return relay(conn.(*net.TCPConn), os.Stdin, os.Stdout, os.Stderr)
}

// relay ends when both directions have, or when one has failed.
func relay(conn *net.TCPConn, in io.Reader, out, say io.Writer) error {
	failed := make(chan error, 2)
	var both sync.WaitGroup
	both.Go(func() {
		n, err := io.Copy(out, conn)
		fmt.Fprintln(say, DialEnd, n)
		if err != nil {
			failed <- err
		}
	})
	both.Go(func() {
		_, err := io.Copy(conn, in)
		if err = errors.Join(err, conn.CloseWrite()); err != nil {
			failed <- err
		}
	})
	go func() {
		both.Wait()
		failed <- nil
	}()
	return <-failed
}
