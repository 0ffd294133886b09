// Package cli is the proa command: what people and scripts use the platform with. It speaks the public protocols of the platform
// (platform/v3) and of the authorization server (auth/uaa), and keeps what it must remember between two commands in one file.
//
// A command is a row in commands.go: its options, what it needs (an API, a login, a target), and a function that runs.
package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Env is the world as a command sees it.
type Env struct {
	In        io.Reader
	Out, Err  io.Writer
	InTTY     bool       // somebody can be asked
	OutTTY    bool       // somebody watches: lines may be redrawn
	Colour    bool       // on Out; Err follows it
	Width     func() int // of the terminal; 0 if there is none
	Hidden    func(context.Context) (string, error)
	Raw       func() (restore func(), err error)             // lets every key through as it is, until it is put back
	Size      func() (columns, rows int)                     // of the terminal that is typed at
	Resized   func() (changed <-chan os.Signal, stop func()) // tells when it has another size
	Getenv    func(string) string
	Dir       string // where the person stands
	Home      string // the directory of the configuration
	Now       func() time.Time
	Poll      time.Duration // between two looks at something that takes its time
	Transport http.RoundTripper
	Version   string
}

// System is the world of this process.
func System(version string) *Env {
	out := isTerminal(os.Stdout)
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	return &Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: isTerminal(os.Stdin), OutTTY: out,
		Colour: out && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Width:  func() int { return terminalWidth(os.Stdout) },
		Hidden: func(ctx context.Context) (string, error) { return readHidden(ctx, os.Stdin) },
		Raw:    func() (func(), error) { return makeRaw(os.Stdin) },
		Size:   func() (int, int) { return terminalSize(os.Stdin) }, Resized: resized,
		Getenv: os.Getenv, Dir: dir, Home: configHome(os.Getenv),
		Now: time.Now, Poll: time.Second, Transport: http.DefaultTransport, Version: version,
	}
}

// configHome is $PROA_HOME/.proa if that is set, and otherwise proa in the directory where programs keep their configuration.
func configHome(getenv func(string) string) string {
	if home := getenv("PROA_HOME"); home != "" {
		return filepath.Join(home, ".proa")
	}
	if dir := getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "proa")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	return filepath.Join(home, ".config", "proa")
}

// path is where a file is that somebody named from where they stand.
func (e *Env) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(e.Dir, name)
}

// wait lets a moment pass, or ends with the context.
func (e *Env) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
