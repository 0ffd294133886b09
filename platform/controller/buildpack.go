package controller

import (
	"fmt"
	"strings"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
)

// resolve finds the buildpacks that an app asks for in the builder, as id@version. Without a version it is the last one.
func resolve(builder bits.Builder, asked []string) ([]string, *platform.StagingFailure) {
	var found []string
	for _, name := range asked {
		id, version, _ := strings.Cut(name, "@")
		match := ""
		for _, b := range builder.Buildpacks {
			if b.ID == id && (version == "" || b.Version == version) {
				match = b.ID + "@" + b.Version
			}
		}
		switch {
		case match != "":
			found = append(found, match)
		case isImage(name):
			return nil, &platform.StagingFailure{Code: "StagingError", Detail: fmt.Sprintf(
				"The buildpack %q is an image, and buildpacks in images of their own cannot be used yet. Use one of the builder's: %s.", name, list(builder))}
		default:
			return nil, &platform.StagingFailure{Code: "StagingError", Detail: fmt.Sprintf("The builder has no buildpack %q. It has: %s.", name, list(builder))}
		}
	}
	return found, nil
}

// isImage tells a reference to an image from the id of a buildpack: it says so, has a digest, or begins with a host.
func isImage(name string) bool {
	host, _, path := strings.Cut(name, "/")
	return strings.Contains(name, "://") || strings.Contains(name, "@sha256:") || path && strings.ContainsAny(host, ".:")
}

func list(builder bits.Builder) string {
	var names []string
	for _, b := range builder.Buildpacks {
		names = append(names, b.ID+"@"+b.Version)
	}
	return strings.Join(names, ", ")
}
