// Image assembles the images that apps are staged with and run in, and pushes them to a registry.
//
//	go run ./deploy/image build             assemble what is missing; print each image's name and OCI layout directory
//	go run ./deploy/image push REGISTRY     the same, then push; print each image's name and digest reference
//	go run ./deploy/image unpack NAME       the same, then unpack one; print the directory of its root filesystem
//
// There are three images, each on top of the one before:
//
//	run       Debian with a Java runtime (deploy/stack): what an app runs in
//	build     and the Go toolchain: what buildpacks run in
//	builder   and the lifecycle (engines/lifecycle), the buildpacks (buildpacks/), and the order they are tried in
//
// Layers are split by what changes together, so that a changed buildpack travels as some kilobytes. Whatever is made
// goes to a cache outside the checkout, under a name that covers all it is made of: what is there is not made again.
// The same content gives the same digest: entries are sorted, times are fixed. (Debian's root is not quite the same content
// when it is made again: it is made once for a machine.)
//
// To push: PROA_REGISTRY_USERNAME and PROA_REGISTRY_PASSWORD (or ..._PASSWORD_FILE) when the registry asks who it is,
// PROA_REGISTRY_CA_FILE when its certificate is signed by an authority of your own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

var errUsage = errors.New("Say what to do: build, push REGISTRY, or unpack run|build|builder.")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch what, rest := args[0], args[1:]; {
	case what == "build" && len(rest) == 0:
		return each(ctx, func(i image) (string, error) { return i.place, nil })
	case what == "push" && len(rest) == 1:
		to, err := newRegistry(rest[0])
		if err != nil {
			return err
		}
		return each(ctx, func(i image) (string, error) { return to.push(ctx, i) })
	case what == "unpack" && len(rest) == 1:
		images, err := assemble(ctx)
		if err != nil {
			return err
		}
		for _, i := range images {
			if i.name == rest[0] {
				root, err := i.unpack(ctx)
				fmt.Println(root)
				return err
			}
		}
	}
	return errUsage
}

// each assembles the images and prints a line for each.
func each(ctx context.Context, do func(image) (string, error)) error {
	images, err := assemble(ctx)
	if err != nil {
		return err
	}
	for _, i := range images {
		line, err := do(i)
		if err != nil {
			return err
		}
		fmt.Println(i.name, line)
	}
	return nil
}

// say tells of a step that takes its time. What programs read goes to the standard output, this does not.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
