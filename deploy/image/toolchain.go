package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const goVersion = "1.26.8" // of the toolchain that apps are built with

// toolchainLayer holds what building an app takes: no tests, no sources of the tools themselves, no race detector (it
// needs a C compiler, and there is none).
func toolchainLayer() layer {
	return layer{
		name: "go", about: "Go " + goVersion, from: []string{goVersion, source("toolchain.go")},
		write: func(ctx context.Context, a *archive) error {
			return eachGoFile(ctx, func(to, from string, mode os.FileMode) error {
				return a.file("usr/local/go/"+to, from, int64(mode))
			})
		},
	}
}

// stdLayer holds the standard library as the Go buildpack compiles it, so that no app waits until it is compiled and
// none keeps it in its cache.
func stdLayer() layer {
	return layer{
		name: "std", about: "the standard library, compiled", from: []string{goVersion, source("toolchain.go")},
		write: func(ctx context.Context, a *archive) error {
			room, err := os.MkdirTemp("", "proa-std-")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(room) }()
			root := filepath.Join(room, "go")
			if err := eachGoFile(ctx, func(to, from string, mode os.FileMode) error { return copyFile(filepath.Join(root, to), from, mode) }); err != nil {
				return err
			}
			cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "go"), "install", "-trimpath", "std") //nolint:gosec // the Go we have just copied
			cmd.Dir, cmd.Stderr = room, os.Stderr
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + room, "GOROOT=" + root, "GOCACHE=" + filepath.Join(room, "cache"),
				"GOENV=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GODEBUG=installgoroot=all",
			}
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("compile the standard library: %w", err)
			}
			compiled := filepath.Join(root, "pkg", "linux_amd64")
			names, err := files(compiled)
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := a.file("usr/local/go/pkg/linux_amd64/"+name, filepath.Join(compiled, name), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// eachGoFile goes through the files of the pinned Go that a build needs.
func eachGoFile(ctx context.Context, do func(to, from string, mode os.FileMode) error) error {
	root, err := toolchain(ctx)
	if err != nil {
		return err
	}
	names, err := files(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !toBuild(name) {
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "pkg/tool/") {
			mode = 0o755 // a module has no modes
		}
		// A module cannot hold another's go.mod, so the toolchain's module calls them _go.mod.
		to := strings.TrimSuffix(name, "_go.mod")
		if to != name {
			to += "go.mod"
		}
		if err := do(to, filepath.Join(root, name), mode); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(to, from string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

func toBuild(name string) bool {
	steps := strings.Split(name, "/")
	switch steps[0] {
	case "bin":
		return name == "bin/go"
	case "pkg":
		return slices.Contains([]string{"asm", "compile", "link", "preprofile"}, steps[len(steps)-1]) || steps[1] == "include"
	case "src":
		return !strings.HasPrefix(name, "src/cmd/") && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".syso") &&
			!slices.ContainsFunc(steps[:len(steps)-1], func(s string) bool { return s == "testdata" || s[0] == '_' })
	}
	return slices.Contains([]string{"lib", "VERSION", "go.env", "LICENSE"}, steps[0])
}

// toolchain finds the pinned Go: as a module, or as the one that runs here.
func toolchain(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "golang.org/toolchain@v0.0.1-go"+goVersion+".linux-amd64")
	cmd.Dir = "/" // outside of any module
	var module struct{ Dir, Error string }
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err == nil && module.Dir != "" {
		return module.Dir, nil
	}
	out, envErr := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOROOT").Output()
	if version, root, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); envErr == nil && version == "go"+goVersion {
		return root, nil
	}
	return "", fmt.Errorf("Go %s is not in reach as a module (%w %s), and the Go here is another. Set GOPROXY to a proxy that has golang.org/toolchain.", goVersion, err, module.Error)
}
