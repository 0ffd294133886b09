package bits

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

// A Droplet is what staging made, as the image tells. The buildpacks that wrote it down may be a tenant's own.
type Droplet struct {
	Image      string // by digest
	Digest     string
	Size       int64 // of all layers in the registry
	Stack      string
	RunImage   string
	Processes  []platform.DropletProcess
	Buildpacks []platform.DropletBuildpack
	Config     Config
}

// Droplet reads an image below the platform's prefix, by tag or by digest.
func (r *Registry) Droplet(ctx context.Context, image string) (Droplet, error) {
	ref, err := name.ParseReference(image)
	if err == nil && !r.ours(ref.Context()) {
		err = fmt.Errorf("it is not below %s", r.Prefix)
	}
	if err != nil {
		return Droplet{}, fmt.Errorf("droplet %q: %w", image, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, config, err := look(ref, r.options(ctx, ref.Context()))
	if err != nil {
		return Droplet{}, said(err)
	}
	d := Droplet{}
	if err := d.weigh(ref.Context(), found); err != nil {
		return Droplet{}, err
	}
	if err := d.read(config); err != nil {
		return Droplet{}, err
	}
	return d, nil
}

func (d *Droplet) weigh(repo name.Repository, image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return said(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return said(err)
	}
	d.Digest, d.Image = digest.String(), repo.Digest(digest.String()).Name()
	for _, l := range manifest.Layers {
		d.Size += max(0, l.Size)
	}
	return nil
}

// words is a command: one word, or with later versions of the lifecycle a list of them.
type words []string

func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}

type builtProcess struct {
	Type    string   `json:"type"`
	Command words    `json:"command"`
	Args    []string `json:"args"`
	Default bool     `json:"default"`
}

func (d *Droplet) read(config *v1.ConfigFile) error {
	var built struct {
		Processes  []builtProcess              `json:"processes"`
		Buildpacks []platform.DropletBuildpack `json:"buildpacks"`
		Default    string                      `json:"buildpack-default-process-type"`
	}
	type image struct {
		Image     string `json:"image"`
		Reference string `json:"reference"`
	}
	var on struct {
		RunImage image `json:"runImage"`
		Stack    struct {
			RunImage image `json:"runImage"`
		} `json:"stack"`
	}
	if err := readLabel(config, "io.buildpacks.build.metadata", &built); err != nil {
		return err
	}
	if err := readLabel(config, "io.buildpacks.lifecycle.metadata", &on); err != nil {
		return err
	}
	labels := config.Config.Labels
	d.Stack = cmp.Or(labels["io.buildpacks.stack.id"], labels["io.buildpacks.base.id"])
	d.RunImage = cmp.Or(on.RunImage.Image, on.Stack.RunImage.Image, on.RunImage.Reference)
	d.Buildpacks = built.Buildpacks
	if err := d.check(); err != nil {
		return err
	}
	var err error
	if d.Processes, err = processes(built.Processes, built.Default); err != nil {
		return err
	}
	d.Config, err = readConfig(config)
	return err
}

func (d *Droplet) check() error {
	var names []string
	for _, b := range d.Buildpacks {
		names = append(names, b.ID+"@"+b.Version)
	}
	if err := plain("buildpack", 2*maxText, names...); err != nil {
		return err
	}
	return plain("stack", maxName, d.Stack, d.RunImage)
}

// processType is what the buildpacks' specification allows, within what a label of Kubernetes can hold.
var processType = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

func processes(built []builtProcess, first string) ([]platform.DropletProcess, error) {
	if len(built) > maxList {
		return nil, fault.Unprocessable("The buildpacks made more than %d process types. Use other buildpacks.", maxList)
	}
	all, seen := make([]platform.DropletProcess, 0, len(built)), map[string]bool{}
	for _, b := range built {
		if !processType.MatchString(b.Type) || seen[b.Type] {
			return nil, fault.Unprocessable("The buildpacks made the process type %s, which must be 1 to 63 letters, digits, \".\", \"_\" and \"-\", and be there once. Rename it.", shown(b.Type))
		}
		seen[b.Type] = true
		line := slices.Concat(b.Command, b.Args)
		if err := plain("process "+b.Type, maxLine, line...); err != nil {
			return nil, err
		}
		if len(line) == 0 || line[0] == "" {
			return nil, fault.Unprocessable("The buildpacks made the process type %s without a command. Use other buildpacks.", shown(b.Type))
		}
		all = append(all, platform.DropletProcess{Type: b.Type, Command: line[0], Args: line[1:], Default: b.Default || b.Type == first})
	}
	return all, nil
}
