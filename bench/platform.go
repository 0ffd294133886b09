package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/env"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// proa is a whole Proa that runs already, with a space of our own in it.
type proa struct {
	*v3.Client
	space string
}

// proaConfig is what make up writes to .run/env.
type proaConfig struct {
	API        string     `env:"PROA_API_URL" required:"true" help:"Where the API of the running Proa is."`
	Auth       string     `env:"PROA_AUTH_URL" required:"true" help:"Where its authorization server is."`
	Username   string     `env:"PROA_ADMIN_USERNAME" required:"true" help:"Its administrator."`
	Password   env.Secret `env:"PROA_ADMIN_PASSWORD" required:"true" help:"The administrator's password."`
	Kubeconfig string     `env:"KUBECONFIG" required:"true" help:"How kubectl reaches its cluster."`
}

const proaPoll = 20 * time.Millisecond

// withProa makes an organization and a space, and deletes them afterwards. Without a running Proa it says what to do and uses nothing.
func withProa(ctx context.Context, figure string, use func(*proa) error) (err error) {
	var c proaConfig
	if os.Getenv("PROA_API_URL") == "" || os.Getenv("KUBECONFIG") == "" {
		say("%s is passed over: it needs a whole Proa. Start one with: make up && . .run/env, then run this again.", figure)
		return nil
	}
	if err := env.Load(&c, os.Getenv); err != nil {
		return err
	}
	conn := &uaa.Conn{URL: c.Auth, HTTP: http.DefaultClient}
	token, err := conn.Fetch(ctx, "cf", "", url.Values{"grant_type": {auth.GrantPassword}, "username": {c.Username}, "password": {c.Password.Reveal()}})
	if err != nil {
		return fmt.Errorf("log in as the administrator: %w", err)
	}
	p := &proa{Client: &v3.Client{URL: c.API, HTTP: http.DefaultClient, Token: uaa.Static(token.Access), Poll: proaPoll}}
	var org v3.Organization
	if err := p.Call(ctx, http.MethodPost, "/v3/organizations", v3.OrganizationChange{Name: new("bench-" + strings.ToLower(rand.Text()[:8]))}, &org); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		job, deleteErr := p.Begin(ctx, http.MethodDelete, "/v3/organizations/"+org.GUID, nil)
		if deleteErr == nil {
			deleteErr = p.Finish(ctx, job)
		}
		err = errors.Join(err, deleteErr)
	}()
	in, space := v3.SpaceCreate{Name: "bench"}, v3.Space{}
	in.Relationships.Organization = v3.One(org.GUID)
	if err := p.Call(ctx, http.MethodPost, "/v3/spaces", in, &space); err != nil {
		return err
	}
	p.space = space.GUID
	return use(p)
}

// The sample is a web server in Go. Its text is the line that changes.
const (
	sampleModule = "module example.org/sample\n\ngo 1.24\n"
	sampleMain   = `package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
)

const text = %q

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, text) })
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
`
)

// pushed is how long the steps of a push took, in seconds.
type pushed struct{ upload, stage, start float64 }

func (t pushed) sum() float64 { return t.upload + t.stage + t.start }

func (p *proa) createApp(ctx context.Context) (guid string, err error) {
	in, app := v3.AppCreate{Name: "sample"}, v3.App{}
	in.Relationships.Space = v3.One(p.space)
	if err := p.Call(ctx, http.MethodPost, "/v3/apps", in, &app); err != nil {
		return "", err
	}
	scale := v3.ProcessScale{MemoryMB: new(64), DiskMB: new(256)}
	return app.GUID, p.Call(ctx, http.MethodPost, "/v3/apps/"+app.GUID+"/processes/web/actions/scale", scale, nil)
}

// push does what a push of the command line does, but for the manifest.
func (p *proa) push(ctx context.Context, app, text string) (took pushed, err error) {
	begin := time.Now()
	lap := func() float64 {
		spent := time.Since(begin).Seconds()
		begin = time.Now()
		return spent
	}
	pkg, err := p.upload(ctx, app, text)
	if err != nil {
		return took, fmt.Errorf("upload: %w", err)
	}
	took.upload = lap()
	droplet, err := p.stage(ctx, pkg)
	if err != nil {
		return took, fmt.Errorf("stage: %w", err)
	}
	took.stage = lap()
	if err := p.Call(ctx, http.MethodPatch, "/v3/apps/"+app+"/relationships/current_droplet", v3.CurrentDroplet{Data: &v3.Ref{GUID: droplet}}, nil); err != nil {
		return took, err
	}
	err = p.start(ctx, app, "restart")
	took.start = lap()
	return took, err
}

func (p *proa) upload(ctx context.Context, app, text string) (pkg string, err error) {
	in, made := v3.PackageCreate{Type: "bits"}, v3.Package{}
	in.Relationships.App = v3.One(app)
	if err := p.Call(ctx, http.MethodPost, "/v3/packages", in, &made); err != nil {
		return "", err
	}
	body, kind, err := samplePackage(text)
	if err != nil {
		return "", err
	}
	if err := p.Upload(ctx, "/v3/packages/"+made.GUID+"/upload", kind, body, int64(body.Len()), nil); err != nil {
		return "", err
	}
	return made.GUID, await(ctx, func() (bool, error) {
		err := p.Call(ctx, http.MethodGet, "/v3/packages/"+made.GUID, nil, &made)
		if made.State == "FAILED" {
			err = errors.New("the package failed")
		}
		return made.State == "READY", err
	})
}

func samplePackage(text string) (body *bytes.Buffer, contentType string, err error) {
	body = &bytes.Buffer{}
	form := multipart.NewWriter(body)
	part, err := form.CreateFormFile("bits", "package.zip")
	if err != nil {
		return nil, "", err
	}
	packed := zip.NewWriter(part)
	for name, content := range map[string]string{"go.mod": sampleModule, "main.go": fmt.Sprintf(sampleMain, text)} {
		file, err := packed.Create(name)
		if err != nil {
			return nil, "", err
		}
		if _, err := file.Write([]byte(content)); err != nil {
			return nil, "", err
		}
	}
	return body, form.FormDataContentType(), errors.Join(packed.Close(), form.Close())
}

func (p *proa) stage(ctx context.Context, pkg string) (droplet string, err error) {
	var build v3.Build
	if err := p.Call(ctx, http.MethodPost, "/v3/builds", v3.BuildCreate{Package: v3.Ref{GUID: pkg}}, &build); err != nil {
		return "", err
	}
	err = await(ctx, func() (bool, error) {
		err := p.Call(ctx, http.MethodGet, "/v3/builds/"+build.GUID, nil, &build)
		if build.State == "FAILED" && build.Error != nil {
			err = errors.New(*build.Error)
		}
		return build.State == "STAGED" && build.Droplet != nil, err
	})
	if err != nil {
		return "", err
	}
	return build.Droplet.GUID, nil
}

// start asks for a start or a restart, and waits until what was asked for runs: instances of earlier releases are not in the stats.
func (p *proa) start(ctx context.Context, app, how string) error {
	if err := p.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/actions/"+how, nil, nil); err != nil {
		return err
	}
	return p.instance(ctx, app, func(i v3.InstanceStats) bool { return i.State == "RUNNING" })
}

// routable waits until the instance may have requests.
func (p *proa) routable(ctx context.Context, app string) error {
	return p.instance(ctx, app, func(i v3.InstanceStats) bool { return i.Routable != nil && *i.Routable })
}

// instance waits until the app's only instance is as it should be.
func (p *proa) instance(ctx context.Context, app string, is func(v3.InstanceStats) bool) error {
	return await(ctx, func() (bool, error) {
		var stats v3.Stats
		err := p.Call(ctx, http.MethodGet, "/v3/apps/"+app+"/processes/web/stats", nil, &stats)
		return len(stats.Resources) == 1 && is(stats.Resources[0]), err
	})
}

// await asks again and again, for three minutes at the most.
func await(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("it was not done after three minutes")
		case <-time.After(proaPoll):
		}
	}
}
