package bits

import (
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/proa-dev/proa/kit/fault"
)

// SourceDir is where an app's source is in the image of a package.
const SourceDir = "/source"

// A Packer makes images of uploads.
type Packer struct {
	Registry *Registry
	Base     string // the image that the source is put over: one with cp, such as a stack's run image
	Owner    int    // user and group that the source belongs to; 0 means 2000, the user of our stack
	Limits   Limits
	Dir      string // where layers are written down before they are pushed; none is the machine's for such files
}

// A Package is source in the registry.
type Package struct {
	Image  string // by digest: what the kubelet fetches
	Digest string
	Size   int64 // of the source in the registry
}

// Upload keeps the source in a zip archive as an image: the base with one layer, SourceDir. The kubelet fetches it, so that
// no container of a staging needs an account at the registry, and the base is on the node already. The same content is the
// same image; of changed content only the layer is sent.
//
// Memory does not grow with the upload, apart from the list of its entries (100 MB at the limits).
func (p *Packer) Upload(ctx context.Context, app string, zip io.ReaderAt, size int64) (Package, error) {
	repo, err := p.Registry.repository("packages", app)
	if err != nil {
		return Package{}, err
	}
	tree, err := readTree(zip, size, p.Limits)
	if err != nil {
		return Package{}, err
	}
	owner := p.Owner
	if owner == 0 {
		owner = 2000
	}
	source, err := spool(p.Dir, "source", func(w io.Writer) error { return tree.writeTar(ctx, w, SourceDir[1:], owner) })
	if err != nil {
		return Package{}, err
	}
	defer source.close()
	ref, err := p.Registry.over(ctx, p.Base, source, repo)
	if err != nil {
		return Package{}, err
	}
	return Package{Image: ref.Name(), Digest: ref.DigestStr(), Size: source.size}, nil
}

// over publishes an image that the operator named with one more layer.
func (r *Registry) over(ctx context.Context, base string, l *layer, to name.Repository) (name.Digest, error) {
	ctx, cancel := context.WithTimeout(ctx, timeToUpload(l.size))
	defer cancel()
	from, err := name.ParseReference(base)
	if err != nil {
		return name.Digest{}, fmt.Errorf("base image %q: %w", base, err)
	}
	below, _, err := look(from, r.options(ctx, from.Context()))
	if err = said(err); fault.Is(err, fault.KindNotFound) {
		return name.Digest{}, fault.Unavailable("The registry does not have the stack's image %s. Tell your operator.", shown(base)).Because(err)
	}
	if err != nil {
		return name.Digest{}, fmt.Errorf("look at %s: %w", base, err)
	}
	image, err := addLayer(below, l)
	if err != nil {
		return name.Digest{}, said(err)
	}
	ref, err := r.publish(ctx, to, image)
	if err != nil {
		return ref, fmt.Errorf("push to %s: %w", to, err)
	}
	return ref, nil
}
