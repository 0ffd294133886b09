package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// sources is this program: what it makes depends on it too.
//
//go:embed *.go
var sources embed.FS

func source(name string) string {
	text, err := sources.ReadFile(name)
	if err != nil {
		panic(err) // embed has it, or it would not have been compiled
	}
	return string(text)
}

// fingerprint covers the parts and where one ends and the next begins.
func fingerprint(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s\n", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// A cache is a directory of what was made. Names say what it was made from, so nothing in it ever changes.
type cache string

func openCache() (cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("There is no place for a cache: %w. Set HOME or XDG_CACHE_HOME.", err)
	}
	return cache(filepath.Join(dir, "proa", "images")), nil
}

func (c cache) path(name string) string { return filepath.Join(string(c), name) }

func (c cache) has(name string) bool {
	_, err := os.Lstat(c.path(name))
	return err == nil
}

// file gives the path of a file, written first if it is absent.
func (c cache) file(name string, write func(io.Writer) error) (string, error) {
	return c.make(name, func(at string) error {
		f, err := os.Create(at)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	})
}

// lock waits until no other process makes anything here, and gives what lets the next one in. (Debian's root filesystem
// made twice has two digests, and an image is known by one.)
func (c cache) lock(ctx context.Context) (unlock func() error, err error) {
	if err := os.MkdirAll(string(c), 0o755); err != nil { //nolint:gosec // images are no secret
		return nil, err
	}
	f, err := os.OpenFile(c.path(".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return f.Close, nil
		}
		if try == 0 {
			say("Waiting for another process that makes images.")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// make gives the path of a file or directory, made first if it is absent. It is made under another name, and gets its own
// when it is whole: a half-made one is never found.
func (c cache) make(name string, do func(at string) error) (string, error) {
	place := c.path(name)
	if c.has(name) {
		return place, nil
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil { //nolint:gosec // images are no secret
		return "", err
	}
	room, err := os.MkdirTemp(filepath.Dir(place), ".making-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(room) }()
	at := filepath.Join(room, "new")
	if err := do(at); err != nil {
		return "", err
	}
	return place, os.Rename(at, place)
}

// prune deletes what matches the pattern and was last touched before then.
func (c cache) prune(pattern string, then time.Time) error {
	found, err := filepath.Glob(c.path(pattern))
	if err != nil {
		return err
	}
	for _, at := range found {
		if info, err := os.Lstat(at); err == nil && info.ModTime().Before(then) {
			if err := os.RemoveAll(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// sorted walks a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
