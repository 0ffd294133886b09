package bits

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proa-dev/proa/kit/fault"
)

const (
	maxConfig = 4 << 20 // bytes of an image's settings, labels included
	maxLayers = 500
)

// look finds an image and its settings, which must be of a size that can be held in memory.
func look(ref name.Reference, options []remote.Option) (v1.Image, *v1.ConfigFile, error) {
	image, err := remote.Image(ref, options...)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, nil, err
	}
	if manifest.Config.Size > maxConfig || manifest.Config.Size < 0 || len(manifest.Layers) > maxLayers {
		return nil, nil, fault.Unprocessable("The image %s has more than %s of settings, or more than %d layers. Use another.", shown(ref.Name()), inUnits(maxConfig), maxLayers)
	}
	config, err := image.ConfigFile()
	return image, config, err
}

// addLayer puts a layer over an image, whose settings stay as they are.
func addLayer(base v1.Image, l *layer) (v1.Image, error) {
	kind, err := base.MediaType()
	if err != nil {
		return nil, err
	}
	if kind == types.OCIManifestSchema1 {
		l.media = types.OCILayer // an image is of one kind throughout
	}
	return mutate.Append(base, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: l.about}})
}

// publish pushes what the registry lacks of an image, and answers the reference by digest. It also gets a tag, named after
// the digest: registries may throw away what has none.
func (r *Registry) publish(ctx context.Context, repo name.Repository, image v1.Image) (name.Digest, error) {
	digest, err := image.Digest()
	if err != nil {
		return name.Digest{}, said(err)
	}
	return r.publishAs(ctx, repo.Tag(digest.Hex), image)
}

func (r *Registry) publishAs(ctx context.Context, tag name.Tag, image v1.Image) (name.Digest, error) {
	if err := remote.Write(tag, image, r.options(ctx, tag.Context())...); err != nil {
		return name.Digest{}, said(err)
	}
	digest, err := image.Digest()
	return tag.Context().Digest(digest.String()), said(err)
}

// Copy gives another app the droplet. The registry takes over the layers it has; nothing is sent.
func (r *Registry) Copy(ctx context.Context, image, app string) (string, error) {
	from, err := r.own(image)
	if err != nil {
		return "", err
	}
	repo, err := r.repository("droplets", app)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	droplet, _, err := look(from, r.options(ctx, from.Context()))
	if err != nil {
		return "", said(err)
	}
	to, err := r.publish(ctx, repo, droplet)
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", image, err)
	}
	return to.Name(), nil
}

// Delete forgets an image of the platform's own. One that is not there is forgotten already. The registry frees the layers
// when it next collects what nothing refers to.
func (r *Registry) Delete(ctx context.Context, image string) error {
	ref, err := r.own(image)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err = said(remote.Delete(ref, r.options(ctx, ref.Context())...))
	if fault.Is(err, fault.KindNotFound) {
		return nil
	}
	return err
}

// timeToUpload is what an upload of this size may take.
func timeToUpload(size int64) time.Duration {
	return uploadTime + time.Duration(size/slowestRate)*time.Second
}

func inUnits(bytes int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if bytes >= u.size && bytes%u.size == 0 {
			return fmt.Sprintf("%d %s", bytes/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}
