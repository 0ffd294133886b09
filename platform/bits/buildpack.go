package bits

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/proa-dev/proa/kit/fault"
)

const (
	maxImages     = 10      // of buildpacks, for one app
	maxBuildpacks = 1 << 30 // bytes of their layers
	crateVersion  = "1"     // of the rules in crate.go: with others, builders are made again
)

// CustomBuilder is the builder with the buildpacks of images that a user names, in the app's place below the platform's
// prefix. It also answers what each image stands for, as ID@version. What is in them is a stranger's: only phases without
// credentials may run it. The same builder and images are put together once.
func (r *Registry) CustomBuilder(ctx context.Context, app string, builder Builder, images []string) (image string, ids []string, err error) {
	repo, err := r.repository("builders", app)
	if err != nil {
		return "", nil, err
	}
	if len(images) > maxImages {
		return "", nil, fault.Unprocessable("The app names more than %d images with buildpacks. Put several buildpacks into one image.", maxImages)
	}
	ctx, cancel := context.WithTimeout(ctx, timeToUpload(maxBuildpacks))
	defer cancel()
	all, err := r.buildpackages(ctx, builder, images)
	if err != nil {
		return "", nil, err
	}
	key := sha256.New()
	fmt.Fprintln(key, crateVersion, builder.Image)
	for _, p := range all {
		ids = append(ids, p.ID+"@"+p.Version)
		fmt.Fprintln(key, p.digest)
	}
	tag := repo.Tag(sum(key).Hex)
	there, err := remote.Head(tag, r.options(ctx, repo)...)
	if err == nil {
		return repo.Digest(there.Digest.String()).Name(), ids, nil
	}
	if err := said(err); !fault.Is(err, fault.KindNotFound) {
		return "", nil, err
	}
	added, err := spool("", "buildpacks", func(w io.Writer) error { return r.pack(ctx, w, all) })
	if err != nil {
		return "", nil, err
	}
	defer added.close()
	ref, err := r.custom(ctx, builder, added, tag)
	if err != nil {
		return "", nil, fmt.Errorf("builder of app %s: %w", app, err)
	}
	return ref.Name(), ids, nil
}

func (r *Registry) custom(ctx context.Context, builder Builder, added *layer, tag name.Tag) (name.Digest, error) {
	from, err := name.NewDigest(builder.Image)
	if err != nil {
		return name.Digest{}, err
	}
	below, _, err := look(from, r.options(ctx, from.Context()))
	if err != nil {
		return name.Digest{}, fault.Unavailable("The registry does not have the builder any more. Try again in a while; if it stays, tell your operator.").Because(err)
	}
	over, err := addLayer(below, added)
	if err != nil {
		return name.Digest{}, said(err)
	}
	return r.publishAs(ctx, tag, over)
}

// A buildpackage is an image with a buildpack, and with those that it consists of.
type buildpackage struct {
	Buildpack
	image  string // as the user names it
	repo   name.Repository
	digest v1.Hash
	layers []v1.Descriptor
	homes  map[string]bool // directories of its buildpacks; false: one with that ID and version is there already
}

// home is where the lifecycle looks for a buildpack.
func home(id, version string) string {
	return buildpackDir + "/" + strings.ReplaceAll(id, "/", "_") + "/" + version
}

// buildpackages finds the images. Where several have a part in common, or have it in common with the builder, the first's is used.
func (r *Registry) buildpackages(ctx context.Context, builder Builder, images []string) ([]buildpackage, error) {
	taken := map[string]bool{}
	for _, b := range builder.Buildpacks {
		taken[home(b.ID, b.Version)] = true
	}
	var all []buildpackage
	for _, image := range images {
		p, err := r.buildpackage(ctx, image)
		if err != nil {
			return nil, err
		}
		if taken[home(p.ID, p.Version)] {
			return nil, fault.Unprocessable("The image %s holds the buildpack %s@%s, which is there already. Name that one, or give yours another version.", shown(image), p.ID, p.Version)
		}
		for at := range p.homes {
			p.homes[at] = !taken[at]
			taken[at] = true
		}
		all = append(all, p)
	}
	return all, nil
}

func (r *Registry) buildpackage(ctx context.Context, image string) (buildpackage, error) {
	p := buildpackage{image: image, homes: map[string]bool{}}
	repo, found, file, err := r.lookAtUsers(ctx, image, nil)
	if err != nil {
		return p, err
	}
	if err := p.read(file); err != nil {
		return p, err
	}
	manifest, err := found.Manifest()
	if err != nil {
		return p, notHad(image, err)
	}
	p.repo, p.layers = repo, manifest.Layers
	size := int64(0)
	for _, l := range p.layers {
		if !l.MediaType.IsDistributable() || !l.MediaType.IsLayer() || l.Size < 0 || l.Size > maxBuildpacks {
			return p, fault.Unprocessable("The image %s has a layer that is larger than %s or is kept elsewhere. Make it again with: pack buildpack package.", shown(image), inUnits(maxBuildpacks))
		}
		size += l.Size
	}
	if size > maxBuildpacks {
		return p, fault.Unprocessable("The image %s is larger than %s. Use a smaller buildpack.", shown(image), inUnits(maxBuildpacks))
	}
	p.digest, err = found.Digest()
	return p, said(err)
}

// What the lifecycle takes for an ID and a version, of a length that a directory's name can have. Neither can be ".." this way.
var (
	buildpackID      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]{0,199}$`)
	buildpackVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,99}$`)
)

func (p *buildpackage) read(file *v1.ConfigFile) error {
	const about, contents = "io.buildpacks.buildpackage.metadata", "io.buildpacks.buildpack.layers"
	if file.Config.Labels[about] == "" {
		return fault.Unprocessable("The image %s holds no buildpack: it lacks the label %s. Make it with: pack buildpack package.", shown(p.image), about)
	}
	var parts map[string]map[string]struct{} // by ID and version
	if err := readLabel(file, about, &p.Buildpack); err != nil {
		return err
	}
	if err := readLabel(file, contents, &parts); err != nil {
		return err
	}
	for id, versions := range parts {
		for version := range versions {
			if !buildpackID.MatchString(id) || !buildpackVersion.MatchString(version) || len(p.homes) >= maxList {
				return fault.Unprocessable("The image %s names the buildpack %s, which is not how one is named, or more than %d of them. Use another image.", shown(p.image), shown(id+"@"+version), maxList)
			}
			p.homes[home(id, version)] = true
		}
	}
	if _, named := parts[p.ID][p.Version]; !named {
		return fault.Unprocessable("The image %s says that it is the buildpack %s, but its label %s does not name that. Make it again with: pack buildpack package.", shown(p.image), shown(p.ID+"@"+p.Version), contents)
	}
	return nil
}
