package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
)

// resolve finds the buildpacks that an app asks for in the builder, as id@version. Without a version it is the last one. For
// an image there is an empty place, and the image's name beside it.
func resolve(builder bits.Builder, asked []string) (found, images []string, failure *platform.StagingFailure) {
	for _, name := range asked {
		match := inBuilder(builder, name)
		image, isImage := imageOf(name)
		switch {
		case match != "":
		case isImage:
			images = append(images, image)
		case strings.Contains(name, "://"):
			return nil, nil, &platform.StagingFailure{Code: "StagingError", Detail: fmt.Sprintf(
				"The buildpack %q is neither an image nor one of the builder's. Name an image as host/path:tag, or one of these: %s.", name, list(builder))}
		default:
			return nil, nil, &platform.StagingFailure{Code: "StagingError", Detail: fmt.Sprintf("The builder has no buildpack %q. It has: %s.", name, list(builder))}
		}
		found = append(found, match)
	}
	return found, images, nil
}

func inBuilder(builder bits.Builder, name string) (match string) {
	id, version, _ := strings.Cut(name, "@")
	for _, b := range builder.Buildpacks {
		if b.ID == id && (version == "" || b.Version == version) {
			match = b.ID + "@" + b.Version
		}
	}
	return match
}

// imageOf tells a reference to an image from the id of a buildpack: it says so, has a digest, or begins with a host.
func imageOf(name string) (image string, is bool) {
	if image, is = strings.CutPrefix(name, "docker://"); is || strings.Contains(name, "://") {
		return image, is
	}
	host, _, path := strings.Cut(name, "/")
	return name, strings.Contains(name, "@sha256:") || path && strings.ContainsAny(host, ".:")
}

// buildpacks puts the buildpacks that an app asks for into a staging. Those in images of their own need a builder of their own.
func (c *Controller) buildpacks(ctx context.Context, b *platform.Staging, builder bits.Builder, asked []string) (*platform.StagingFailure, error) {
	found, images, failure := resolve(builder, asked)
	b.Buildpacks = found
	if failure != nil || len(images) == 0 {
		return failure, nil
	}
	image, ids, err := c.Registry.CustomBuilder(ctx, b.AppGUID, builder, images)
	if err != nil {
		return blame(err)
	}
	b.BuildImage = image
	for i := range found {
		if found[i] == "" {
			found[i], ids = ids[0], ids[1:]
		}
	}
	return nil, nil
}

// blame tells what ends a build from an error that may be gone when it is tried again.
func blame(err error) (*platform.StagingFailure, error) {
	f := fault.From(err)
	if f.Kind == fault.KindInternal || f.Kind == fault.KindUnavailable || f.Kind == fault.KindTooMany {
		return nil, err
	}
	return &platform.StagingFailure{Code: "StagingError", Detail: f.Detail}, nil
}

func list(builder bits.Builder) string {
	var names []string
	for _, b := range builder.Buildpacks {
		names = append(names, b.ID+"@"+b.Version)
	}
	return strings.Join(names, ", ")
}
