package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// imageName is what an image is called that nodes import. No registry has that host, so none is ever asked for it.
func imageName(what string) string { return "proa.invalid/" + what + ":up" }

// packImages puts the programs that run in pods into images of one file each.
func (c *Cluster) packImages(ctx context.Context, root string) error {
	pause := c.at("pause")
	if _, err := output(ctx, []string{"CGO_ENABLED=0"}, "go", "build", "-C", root, "-trimpath", "-ldflags=-s -w", "-o", pause, "./engines/pause"); err != nil {
		return err
	}
	c.Images = map[string]string{}
	for what, program := range map[string]string{
		"pause":   pause,
		"coredns": c.engine("coredns", "coredns"),
		"policy":  c.engine("policy", "cmd"),
	} {
		c.Images[what] = c.at("images", what+".tar")
		if err := pack(c.Images[what], imageName(what), program); err != nil {
			return fmt.Errorf("pack %s: %w", what, err)
		}
	}
	return nil
}

// pack writes an image that holds one static program and runs it.
func pack(file, tag, program string) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "program", Mode: 0o755, Size: int64(len(data))}); err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	// It is read once, from the same disk: compressing would only cost time.
	added, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layer.Bytes())), nil
	}, tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, added)
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, config64(image))
	if err != nil {
		return err
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return tarball.WriteToFile(file, ref, image)
}

// config64 says for which machine the image is (containerd passes over one that does not say) and what it runs.
func config64(image v1.Image) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		config = &v1.ConfigFile{}
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Entrypoint = []string{"/program"}
	return config
}
