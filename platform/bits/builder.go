package bits

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A Buildpack is one of a builder's.
type Buildpack struct {
	ID, Version, Name, Homepage string
}

// A Builder is what apps are staged with.
type Builder struct {
	Image      string // by digest
	Stack      string
	RunImage   string // that it names; the operator may mean another
	Lifecycle  string // version
	Buildpacks []Buildpack
	Order      [][]string // of IDs: the first group that fits is used
}

// Has tells whether the builder has a buildpack, named as ID or ID@version.
func (b Builder) Has(buildpack string) bool {
	id, version, _ := strings.Cut(buildpack, "@")
	return slices.ContainsFunc(b.Buildpacks, func(p Buildpack) bool { return p.ID == id && (version == "" || p.Version == version) })
}

// Builder reads a builder image.
func (r *Registry) Builder(ctx context.Context, image string) (Builder, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return Builder{}, fmt.Errorf("builder %q: %w", image, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, config, err := look(ref, r.options(ctx, ref.Context()))
	if err != nil {
		return Builder{}, fmt.Errorf("builder %s: %w", image, said(err))
	}
	digest, err := found.Digest()
	if err != nil {
		return Builder{}, said(err)
	}
	b := Builder{Image: ref.Context().Digest(digest.String()).Name()}
	err = b.read(config)
	return b, err
}

func (b *Builder) read(config *v1.ConfigFile) error {
	type image struct {
		Image string `json:"image"`
	}
	var about struct {
		Buildpacks []Buildpack `json:"buildpacks"`
		Images     []image     `json:"images"`
		Stack      struct {
			RunImage image `json:"runImage"`
		} `json:"stack"`
		Lifecycle struct {
			Version string `json:"version"`
		} `json:"lifecycle"`
	}
	var places map[string]map[string]Buildpack // by ID and version
	var order []struct {
		Group []Buildpack `json:"group"`
	}
	for label, into := range map[string]any{
		"io.buildpacks.builder.metadata": &about, "io.buildpacks.buildpack.layers": &places, "io.buildpacks.buildpack.order": &order,
	} {
		if err := readLabel(config, label, into); err != nil {
			return err
		}
	}
	labels := config.Config.Labels
	if _, found := labels["io.buildpacks.builder.metadata"]; !found {
		return fmt.Errorf("builder %s: it lacks the label io.buildpacks.builder.metadata: name an image that is a builder", b.Image)
	}
	b.Stack = cmp.Or(labels["io.buildpacks.stack.id"], labels["io.buildpacks.base.id"])
	b.Lifecycle, b.RunImage = about.Lifecycle.Version, about.Stack.RunImage.Image
	if len(about.Images) > 0 {
		b.RunImage = about.Images[0].Image
	}
	for _, p := range about.Buildpacks {
		at := places[p.ID][p.Version]
		p.Name, p.Homepage = cmp.Or(p.Name, at.Name), cmp.Or(p.Homepage, at.Homepage)
		b.Buildpacks = append(b.Buildpacks, p)
	}
	slices.SortFunc(b.Buildpacks, func(x, y Buildpack) int {
		return cmp.Or(strings.Compare(x.ID, y.ID), strings.Compare(x.Version, y.Version))
	})
	for _, g := range order {
		var ids []string
		for _, p := range g.Group {
			ids = append(ids, p.ID)
		}
		b.Order = append(b.Order, ids)
	}
	return b.check()
}

func (b *Builder) check() error {
	if len(b.Buildpacks) > maxList {
		return fmt.Errorf("builder %s: it has more than %d buildpacks", b.Image, maxList)
	}
	for _, p := range b.Buildpacks {
		if err := plain("buildpack", maxText, p.ID, p.Version, p.Name, p.Homepage); err != nil {
			return err
		}
	}
	return plain("stack", maxName, b.Stack, b.Lifecycle, b.RunImage)
}
