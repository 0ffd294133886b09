package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	stackID = "io.proa.stacks.bookworm"
	user    = 2000 // deploy/stack/build.sh makes this user
	path0   = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// recipes says what the images consist of.
func recipes(ctx context.Context, cache cache) ([]recipe, error) {
	house, err := house()
	if err != nil {
		return nil, err
	}
	stack, err := stackLayer(house)
	if err != nil {
		return nil, err
	}
	lifecycle, err := lifecycleLayer(ctx, house)
	if err != nil {
		return nil, err
	}
	packs, err := readBuildpacks(filepath.Join(house, "buildpacks"))
	if err != nil {
		return nil, err
	}
	runs, builds := []layer{stack}, []layer{stack, toolchainLayer(), stdLayer()}
	builders := append(slices.Clone(builds), lifecycle)
	for _, p := range packs {
		builders = append(builders, p.layer())
	}
	builders = append(builders, orderLayer(packs))
	all := []recipe{
		{name: "run", layers: runs, settings: func([]v1.Layer) (v1.Config, error) { return baseSettings(), nil }},
		{name: "build", layers: builds, settings: func([]v1.Layer) (v1.Config, error) { return buildSettings(), nil }},
		{name: "builder", layers: builders, settings: func(made []v1.Layer) (v1.Config, error) {
			return builderSettings(packs, made[len(builds)+1:])
		}},
	}
	for _, r := range all {
		for n := range r.layers {
			r.layers[n].cache = cache
		}
	}
	return all, nil
}

// house finds the root of the checkout.
func house() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "deploy", "stack", "build.sh")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("This is not a checkout of Proa. Run this inside one: go run ./deploy/image build")
		}
		dir = filepath.Dir(dir)
	}
}

// baseSettings are those that all images have.
func baseSettings() v1.Config {
	return v1.Config{
		User: fmt.Sprintf("%d:%d", user, user),
		Env:  []string{"PATH=" + path0, "LANG=C.UTF-8", "HOME=/home/vcap", "JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64"},
		Labels: map[string]string{
			"io.buildpacks.stack.id":            stackID, // for platforms that do not know targets yet
			"io.buildpacks.base.id":             stackID,
			"io.buildpacks.base.distro.name":    "debian",
			"io.buildpacks.base.distro.version": "12",
			"io.buildpacks.base.maintainer":     "The Proa authors",
			"io.buildpacks.base.description":    "Debian 12 with a Java 17 runtime",
		},
	}
}

func buildSettings() v1.Config {
	c := baseSettings()
	c.Env[0] = "PATH=/usr/local/go/bin:" + path0
	c.Env = append(c.Env,
		"CNB_STACK_ID="+stackID, "CNB_USER_ID="+strconv.Itoa(user), "CNB_GROUP_ID="+strconv.Itoa(user),
		"CNB_TARGET_OS=linux", "CNB_TARGET_ARCH=amd64", "CNB_TARGET_DISTRO_NAME=debian", "CNB_TARGET_DISTRO_VERSION=12")
	c.Labels["io.buildpacks.base.description"] = "Debian 12 with a Java 17 runtime and Go " + goVersion
	return c
}

func stackLayer(house string) (layer, error) {
	script := filepath.Join(house, "deploy", "stack", "build.sh")
	text, err := os.ReadFile(script)
	return layer{
		name: "stack", about: "deploy/stack/build.sh", from: []string{string(text)},
		write: func(ctx context.Context, a *archive) error {
			room, err := os.MkdirTemp("", "proa-stack-")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(room) }()
			root := filepath.Join(room, "root")
			cmd := exec.CommandContext(ctx, script, root) //nolint:gosec // a script of this checkout
			cmd.Stderr = os.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("deploy/stack/build.sh: %w", err)
			}
			return a.system(root)
		},
	}, err
}
