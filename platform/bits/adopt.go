package bits

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

const maxAdopted = 8 << 30 // bytes of all layers

// Adopt makes a droplet of an image that DockerImage found: the same with our programs in one more layer, below the platform's prefix.
// It answers the reference by digest. The app goes on when the image is gone from where it was.
func (r *Registry) Adopt(ctx context.Context, app string, found Docker, source platform.DockerSource, programs Programs) (string, error) {
	repo, err := r.repository("droplets", app)
	if err != nil {
		return "", err
	}
	ref, err := name.NewDigest(found.Image)
	if err != nil {
		return "", fmt.Errorf("image %q: %w", found.Image, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeToUpload(maxAdopted))
	defer cancel()
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(sealed{r.toUsersLayers(ref)}), remote.WithUserAgent("proa")}
	if source.Username != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: source.Username, Password: source.Password}))
	}
	image, _, err := look(ref, options)
	if err != nil {
		return "", notHad(source.Image, err)
	}
	var d Droplet
	if err := d.weigh(ref.Context(), image); err != nil {
		return "", err
	}
	if d.Size > maxAdopted {
		return "", fault.Unprocessable("The image %s is larger than %s. Use a smaller one.", shown(source.Image), inUnits(maxAdopted))
	}
	added, err := spool("", "programs", programs.write)
	if err != nil {
		return "", err
	}
	defer added.close()
	over, err := addLayer(image, added)
	if err != nil {
		return "", notHad(source.Image, err)
	}
	to, err := r.publish(ctx, repo, over)
	if err != nil {
		return "", fmt.Errorf("adopt %s: %w", found.Image, err)
	}
	return to.Name(), nil
}

// toUsersLayers is toUsersRegistry without a limit for an answer: by the digest in its name, all of it is known before.
func (r *Registry) toUsersLayers(ref name.Reference) http.RoundTripper {
	host, _ := r.place()
	switch {
	case r.Public != nil:
		return r.Public
	case strings.EqualFold(ref.Context().RegistryStr(), host):
		return r.trip()
	}
	return publicOnly
}
