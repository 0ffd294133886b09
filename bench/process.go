package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/proa-dev/proa/kit/pg"
)

// What a measurement starts is a with: it ends with the function that uses it, also after an interrupt.

// withDatabase makes an empty database and drops it afterwards.
func (b *bench) withDatabase(ctx context.Context, use func(url string) error) (err error) {
	u, err := url.Parse(b.database)
	if err != nil || u.Host == "" {
		return errors.New("PROA_BENCH_DATABASE_URL must look like postgres://user:password@host/name")
	}
	pool, err := pg.Open(ctx, b.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	name := "proa_bench_" + strings.ToLower(rand.Text()[:12])
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, dropErr := pool.Exec(ctx, `drop database if exists `+name+` with (force)`)
		err = errors.Join(err, dropErr)
	}()
	if _, err := pool.Exec(ctx, `create database `+name); err != nil {
		return fmt.Errorf("make a database: %w", err)
	}
	u.Path = "/" + name
	return use(u.String())
}

// build compiles one of our programs as it is now.
func (b *bench) build(ctx context.Context, room string) (path string, err error) {
	path = filepath.Join(b.dir, filepath.Base(room))
	_, err = goTool(ctx, "build", "-o", path, filepath.Join(b.root, room))
	return path, err
}

func goTool(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", args...).Output() //nolint:gosec // the arguments are ours
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// program is a server that is measured.
type program struct {
	path  string
	env   []string // all of it
	ready string   // the URL that answers 200 once it works
}

// withProcess runs a program until use is done with it. The context of use ends when the program does.
func (b *bench) withProcess(ctx context.Context, p program, use func(ctx context.Context, pid int) error) error {
	name := filepath.Base(p.path)
	logPath := p.path + ".log"
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, p.path) //nolint:gosec // we built it
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir, p.env, log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the state tells
		cancel(fmt.Errorf("%s ended by itself: %s", name, cmd.ProcessState))
	}()
	if err = awaitReady(ctx, p.ready); err == nil {
		err = use(ctx, cmd.Process.Pid)
	}
	if err != nil {
		select {
		case <-ctx.Done():
			err = fmt.Errorf("%w (%w); the log ends:\n%s", err, context.Cause(ctx), tail(logPath))
		case <-time.After(200 * time.Millisecond): // a broken connection is seen before the end of the process
		}
	}
	cancel(nil)
	<-ended
	return err
}

func awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", url, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func tail(path string) []byte {
	text, _ := os.ReadFile(path) // this is help for an error that is told anyway
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-5):], []byte("\n"))
}

// freeAddr is a loopback address that nobody listens on.
func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
