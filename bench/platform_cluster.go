package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/store"
)

// clusterConfig is what make cluster-up writes to .run/cluster.env.
type clusterConfig struct {
	bits.Settings

	Gateway string `env:"PROA_GATEWAY_HTTP" required:"true" help:"Where the gateway listens."`
	Domain  string `env:"PROA_APPS_DOMAIN" required:"true" help:"Domain that leads to it."`
}

// controlled is a controller with a database of its own, on a cluster that runs already, and one app that runs there.
type controlled struct {
	*store.Store

	at           clusterConfig
	database     string
	metrics      string // address
	installation string
	space        platform.Space
	app          platform.App
	process      string
}

// withController starts it, and deletes what it made on the cluster afterwards. Without a cluster it says what to do and uses nothing.
func (b *bench) withController(ctx context.Context, figure string, use func(context.Context, *controlled) error) error {
	if os.Getenv("KUBECONFIG") == "" || os.Getenv("PROA_REGISTRY") == "" {
		say("%s is passed over: it needs a cluster. Start one with: make cluster-up && . .run/cluster.env, then run this again.", figure)
		return nil
	}
	c := &controlled{installation: "bench-" + strings.ToLower(rand.Text()[:10])}
	if err := env.Load(&c.at, os.Getenv); err != nil {
		return err
	}
	if err := c.at.Complete(); err != nil {
		return err
	}
	controller, err := b.build(ctx, "cmd/controller")
	if err != nil {
		return err
	}
	for _, room := range []string{"cmd/launcher", "cmd/sftp", "cmd/controller/testdata/traffic"} {
		if err := b.buildStatic(ctx, room); err != nil {
			return err
		}
	}
	if c.metrics, err = freeAddr(ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if _, err := kubectl(ctx, nil, "delete", "namespaces", "--wait=false", "-l", "proa.dev/installation="+c.installation); err != nil {
			say("%v", err)
		}
	}()
	return b.withDatabase(ctx, func(database string) error { return b.startController(ctx, c, controller, database, use) })
}

func (b *bench) startController(ctx context.Context, c *controlled, path, database string, use func(context.Context, *controlled) error) error {
	keyset, err := seal.Generate()
	if err != nil {
		return err
	}
	box, err := seal.New(keyset)
	if err != nil {
		return err
	}
	c.database = database
	if c.Store, err = store.Open(ctx, database, box); err != nil {
		return err
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.at.Host())
	if err != nil {
		return err
	}
	p := program{path: path, ready: "http://" + c.metrics + "/readyz", env: append(os.Environ(),
		"PROA_CONTROLLER_DATABASE_URL="+database, "PROA_CONTROLLER_KEYSET="+string(keyset), "PROA_CONTROLLER_METRICS_LISTEN="+c.metrics,
		"PROA_INSTALLATION="+c.installation, "PROA_LAUNCHER_FILE="+filepath.Join(b.dir, "launcher"), "PROA_SFTP_FILE="+filepath.Join(b.dir, "sftp"), "PROA_GATEWAY_CIDRS="+host+"/32")}
	return b.withProcess(ctx, p, func(ctx context.Context, _ int) error {
		if err := c.run(ctx, filepath.Join(b.dir, "traffic")); err != nil {
			return fmt.Errorf("run an app: %w", err)
		}
		return use(ctx, c)
	})
}

// buildStatic compiles a program for a container.
func (b *bench) buildStatic(ctx context.Context, room string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(b.dir, filepath.Base(room)), filepath.Join(b.root, room)) //nolint:gosec // the arguments are ours
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", room, err, out)
	}
	return nil
}

// run stages a program, and runs it as an app with one instance.
func (c *controlled) run(ctx context.Context, program string) error {
	noted := platform.Metadata{Labels: map[string]string{}, Annotations: map[string]string{}}
	org, err := c.CreateOrg(ctx, operator, platform.Org{Name: "bench", Metadata: noted})
	if err != nil {
		return err
	}
	if c.space, err = c.CreateSpace(ctx, operator, platform.Space{OrgGUID: org.GUID, Name: "bench", Metadata: noted}); err != nil {
		return err
	}
	if c.app, err = c.CreateApp(ctx, operator, platform.App{SpaceGUID: c.space.GUID, Name: "traffic", Metadata: noted, Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack}}); err != nil {
		return err
	}
	pkg, err := c.upload(ctx, program)
	if err != nil {
		return err
	}
	build, err := c.CreateBuild(ctx, operator, platform.Build{PackageGUID: pkg, MemoryMB: 512, DiskMB: 512})
	if err != nil {
		return err
	}
	if err := await(ctx, func() (bool, error) {
		build, err = c.Build(ctx, operator, build.GUID)
		if build.State == platform.BuildFailed {
			err = errors.New(build.Error)
		}
		return build.State == platform.BuildStaged, err
	}); err != nil {
		return err
	}
	if c.app, err = c.AssignDroplet(ctx, operator, c.app.GUID, build.DropletGUID); err != nil {
		return err
	}
	return c.begin(ctx)
}

func (c *controlled) begin(ctx context.Context) error {
	if _, err := c.StartApp(ctx, operator, c.app.GUID, store.Settings{}); err != nil {
		return err
	}
	web, err := c.ProcessOf(ctx, operator, c.app.GUID, platform.WebProcess)
	if err != nil {
		return err
	}
	c.process = web.GUID
	return await(ctx, func() (bool, error) {
		all, err := c.Instances(ctx, []string{web.GUID})
		return len(all[web.GUID]) == 1 && all[web.GUID][0].Ready, err
	})
}

// upload makes a package of a program.
func (c *controlled) upload(ctx context.Context, program string) (pkg string, err error) {
	registry, _, err := c.at.Open()
	if err != nil {
		return "", err
	}
	p, err := c.CreatePackage(ctx, operator, platform.Package{AppGUID: c.app.GUID, Type: platform.PackageBits})
	if err != nil {
		return "", err
	}
	if p, err = c.BeginUpload(ctx, operator, p.GUID); err != nil {
		return "", err
	}
	packed, err := pack(program)
	if err != nil {
		return "", err
	}
	packer := &bits.Packer{Registry: registry, Base: c.at.RunImage}
	up, err := packer.Upload(ctx, c.app.GUID, packed, packed.Size())
	if err != nil {
		return "", err
	}
	p.Image, p.Size, p.State = up.Image, up.Size, platform.PackageReady
	_, err = c.EndUpload(ctx, p)
	return p.GUID, err
}

// pack is a zip with the program and how to start it.
func pack(program string) (*bytes.Reader, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	z := zip.NewWriter(&text)
	for name, content := range map[string][]byte{"Procfile": []byte("web: exec ./traffic $PORT\n"), "traffic": content} {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o755)
		f, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(content); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return bytes.NewReader(text.Bytes()), nil
}
