package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// An image is an OCI layout in the cache.
type image struct {
	name  string
	print string // fingerprint of everything it is made of
	place string // the layout
	cache cache
}

// A recipe says what an image consists of. Settings are made from the finished layers, because the builder's labels
// name their digests.
type recipe struct {
	name     string
	layers   []layer
	settings func([]v1.Layer) (v1.Config, error)
}

// assemble makes what is missing of the images.
func assemble(ctx context.Context) ([]image, error) {
	cache, err := openCache()
	if err != nil {
		return nil, err
	}
	recipes, err := recipes(ctx, cache)
	if err != nil {
		return nil, err
	}
	unlock, err := cache.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock() //nolint:errcheck // the process holds nothing else of it
	images := make([]image, len(recipes))
	for n, r := range recipes {
		if images[n], err = r.assemble(ctx, cache); err != nil {
			return nil, fmt.Errorf("image %s: %w", r.name, err)
		}
	}
	return images, nil
}

func (r recipe) assemble(ctx context.Context, cache cache) (image, error) {
	i := image{name: r.name, print: r.fingerprint(), cache: cache}
	place, err := cache.make(r.name+"-"+i.print, func(at string) error {
		say("Assembling the image %s.", r.name)
		made, err := r.image(ctx)
		if err != nil {
			return err
		}
		to, err := layout.Write(at, empty.Index)
		if err != nil {
			return err
		}
		if err := r.share(ctx, to); err != nil {
			return err
		}
		return to.AppendImage(made)
	})
	i.place = place
	return i, err
}

func (r recipe) fingerprint() string {
	parts := []string{r.name}
	for _, l := range r.layers {
		parts = append(parts, l.name, l.print())
	}
	for _, name := range []string{"image.go", "recipe.go", "builder.go"} {
		parts = append(parts, source(name))
	}
	return fingerprint(parts...)
}

func (r recipe) image(ctx context.Context) (v1.Image, error) {
	var additions []mutate.Addendum
	var layers []v1.Layer
	for _, l := range r.layers {
		made, err := l.stored(ctx)
		if err != nil {
			return nil, err
		}
		layers = append(layers, made)
		additions = append(additions, mutate.Addendum{Layer: made, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: l.about}})
	}
	settings, err := r.settings(layers)
	if err != nil {
		return nil, err
	}
	// Of Docker's media types, as the empty image is: the lifecycle puts layers of these types over any run image, and the
	// app's image should be of one kind throughout.
	img, err := mutate.Append(empty.Image, additions...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	// Without a platform containerd takes the image for one of another machine.
	config.OS, config.Architecture, config.Created, config.Config = "linux", "amd64", v1.Time{Time: epoch}, settings
	return mutate.ConfigFile(img, config)
}

// share puts the layers into the layout as further names of the files in the cache, so that three images do not keep three
// copies of Debian.
func (r recipe) share(ctx context.Context, to layout.Path) error {
	for _, l := range r.layers {
		made, err := l.stored(ctx)
		if err != nil {
			return err
		}
		blob := filepath.Join(string(to), "blobs", made.Hashed.Digest.Algorithm, made.Hashed.Digest.Hex)
		if err := os.MkdirAll(filepath.Dir(blob), 0o755); err != nil { //nolint:gosec // images are no secret
			return err
		}
		if err := os.Link(made.file, blob); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// open reads the image from its layout.
func (i image) open() (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(i.place)
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(list.Manifests) != 1 {
		return nil, fmt.Errorf("%s holds %d images instead of one: delete it, and run this again", i.place, len(list.Manifests))
	}
	return index.Image(list.Manifests[0].Digest)
}

// unpack gives the image's root filesystem as a directory. Such directories are large: those of the same name that nobody
// asked for in the last hour are deleted.
func (i image) unpack(ctx context.Context) (string, error) {
	unlock, err := i.cache.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock() //nolint:errcheck // the process holds nothing else of it
	root, err := i.cache.make("roots/"+i.name+"-"+i.print, func(at string) error {
		if os.Getuid() != 0 {
			return errors.New("Unpacking a root filesystem with its owners needs root. Run this again as root.")
		}
		say("Unpacking the image %s.", i.name)
		img, err := i.open()
		if err != nil {
			return err
		}
		layers, err := img.Layers()
		if err != nil {
			return err
		}
		if err := os.Mkdir(at, 0o755); err != nil { //nolint:gosec // a root directory is open to all
			return err
		}
		// One over the other: layers of ours only ever add.
		for _, l := range layers {
			content, err := l.Uncompressed()
			if err != nil {
				return err
			}
			tar := exec.CommandContext(ctx, "tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", at) //nolint:gosec // a directory of the cache
			tar.Stdin, tar.Stderr = content, os.Stderr
			if err := errors.Join(tar.Run(), content.Close()); err != nil {
				return fmt.Errorf("unpack: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	now := time.Now()
	return root, errors.Join(os.Chtimes(root, now, now), i.cache.prune("roots/"+i.name+"-*", now.Add(-time.Hour)))
}
