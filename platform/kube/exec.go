package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	spdystream "k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	execerrors "k8s.io/client-go/util/exec"
)

// Where our own programs are in every app's image.
const (
	Launcher = ourLauncher
	SFTP     = "/proa/sftp"
)

// Exec is a command to run in the container of an instance, beside the app. With a TTY there is one stream of output,
// and Stderr stays untouched.
type Exec struct {
	Command        []string
	Stdin          io.Reader // nil is none
	Stdout, Stderr io.Writer // nil is away with it
	TTY            bool
	Resize         <-chan Window // with a TTY, and the caller closes it or ends the context
}

// Window is the size of a terminal.
type Window struct {
	Columns, Rows uint16
}

// Exec runs a command and answers with its exit status. An error is that it did not run, or that nobody knows how it
// ended. When the context ends Exec returns at once, without the command: Kubernetes leaves that running, and the streams
// may be read or written once more.
func (c *Cluster) Exec(ctx context.Context, namespace, pod string, e Exec) (status int, err error) {
	if e.Stdin == nil && e.Stdout == nil && (e.Stderr == nil || e.TTY) {
		e.Stdout = io.Discard // Kubernetes refuses a command without any stream
	}
	address := c.core.RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: appContainer, Command: e.Command, Stdin: e.Stdin != nil, Stdout: e.Stdout != nil, Stderr: e.Stderr != nil && !e.TTY, TTY: e.TTY,
	}, scheme.ParameterCodec).URL()
	executor, err := c.executor(address)
	if err != nil {
		return 0, fmt.Errorf("exec in %s: %w", pod, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams := remotecommand.StreamOptions{Stdin: e.Stdin, Stdout: e.Stdout, Stderr: e.Stderr, Tty: e.TTY}
	if e.TTY {
		streams.Stderr = nil
		streams.TerminalSizeQueue = windows{ctx: ctx, sizes: e.Resize}
	}
	ended := make(chan error, 1)
	go func() { ended <- executor.StreamWithContext(ctx, streams) }() // after the context it may wait for the other side to take its last words
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if exit, ok := errors.AsType[execerrors.CodeExitError](err); ok {
		return exit.Code, nil
	}
	if err != nil {
		return 0, fmt.Errorf("exec in %s: %w", pod, err)
	}
	return 0, nil
}

// executor speaks SPDY, and WebSocket where something between us and the API server does not let that through. The other way
// round, as kubectl does it, a person who stops reading for a minute would lose the command: the WebSocket client takes
// nothing in meanwhile, not the answer to its heartbeat either.
func (c *Cluster) executor(address *url.URL) (remotecommand.Executor, error) {
	config := rest.CopyConfig(c.config)
	config.ContentType, config.AcceptContentTypes = "", "" // streams are bytes, and refusals are read as JSON
	spdy, err := silent(config, address)
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, address.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(spdy, websocket, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// silent speaks SPDY without pings. A ping that reaches the API server after the command has ended makes it close both ways at
// once, and what a slow reader has not had yet is lost.
func silent(config *rest.Config, address *url.URL) (remotecommand.Executor, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	trip, err := spdystream.NewRoundTripperWithConfig(spdystream.RoundTripperConfig{TLS: tls, Proxier: proxy})
	if err != nil {
		return nil, err
	}
	known, err := rest.HTTPWrappersForConfig(config, trip)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForTransports(known, trip, http.MethodPost, address)
}

type windows struct {
	ctx   context.Context
	sizes <-chan Window
}

// Next waits for the next size; nil is that there will be none.
func (w windows) Next() *remotecommand.TerminalSize {
	select {
	case size, open := <-w.sizes:
		if !open {
			return nil
		}
		return &remotecommand.TerminalSize{Width: size.Columns, Height: size.Rows}
	case <-w.ctx.Done():
		return nil
	}
}
