package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	v3 "github.com/proa-dev/proa/platform/v3"
)

type pushOptions struct {
	*overrides
	file, path                  *string
	noManifest, noStart, redact *bool
	vars, varsFiles             *[]string
	wait                        func() waiting
	how                         func() (deploying, error)
}

var pushCommand = command{
	name: "push", args: "[APP]", group: "Apps", short: "Upload an app, stage it and start it",
	long: "A manifest.yml in this directory, or named with -f, says what the app needs; options win over it. Without one, APP must be given. " +
		"What is uploaded is the directory or the .jar, .war or .zip that -p or the manifest names, or else this directory, without what " +
		".cfignore and .proaignore there list, as in a .gitignore. An app that has no route yet gets one: its name under the apps domain.",
	examples: []string{"proa push shop", "proa push shop -p target/shop.jar -m 1G", "proa push -f deploy/manifest.yml --var domain=example.com",
		"proa push shop --docker-image nginx:1.29", "proa push shop --strategy canary --instance-steps 10,50"},
	needs: aSpace,
	setup: func(f *flags) action { return pushFlags(f).run },
}

func pushFlags(f *flags) pushOptions {
	o := pushOptions{
		file: f.text("manifest,f", "PATH", "the manifest, or the directory it is in"), noManifest: f.on("no-manifest", "use no manifest, also if there is one"),
		path:    f.text("path,p", "PATH", "directory, .jar, .war or .zip to upload"),
		noStart: f.on("no-start", "upload only"), vars: f.list("var", "NAME=VALUE", "value of ((NAME)) in the manifest"),
		varsFiles: f.list("vars-file", "FILE", "YAML with values for the manifest"), redact: f.on("redact-env", "do not show values of environment variables"),
	}
	o.overrides = overrideFlags(f)
	o.how, o.wait = deployFlags(f, ""), waitFlags(f)
	return o
}

// pushed is an app on its way: its entry in the manifest, where its content is, and the app once it exists.
type pushed struct {
	name, place string
	image, user string
	app         v3.App
	how         deploying
}

func (o pushOptions) run(ctx context.Context, s *session, args []string) error {
	name := ""
	if len(args) == 1 {
		name = args[0]
	}
	m, err := o.manifest(s, name)
	if err != nil {
		return err
	}
	all, err := o.plan(s, m)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	s.say("Pushing app %s %s...", s.bold(join(names)), s.where())
	if m.file != "" {
		s.say("Using manifest %s", m.file)
	}
	if err := s.applyManifest(ctx, m, *o.redact); err != nil {
		return err
	}
	if err := s.findAll(ctx, all); err != nil {
		return err
	}
	for _, p := range all {
		if err := o.push(ctx, s, p); err != nil {
			return err
		}
	}
	return nil
}

// manifest is the one in the file, with the options written into it.
func (o pushOptions) manifest(s *session, name string) (*manifest, error) {
	if err := o.refuse(*o.path); err != nil {
		return nil, err
	}
	how, err := o.how()
	if err != nil {
		return nil, err
	}
	if how.strategy != "" && *o.noStart {
		return nil, usage("--no-start and --strategy exclude each other.")
	}
	v, err := s.loadVars(*o.varsFiles, *o.vars)
	if err != nil {
		return nil, err
	}
	m, file := madeUp(), ""
	if !*o.noManifest {
		if file, err = s.findManifest(*o.file); err != nil {
			return nil, err
		}
	}
	if file != "" {
		if m, err = readManifest(file, v); err != nil {
			return nil, err
		}
	} else if name == "" {
		p := usage("There is no manifest.yml here, so the app needs a name.")
		p.next = "proa push APP"
		return nil, p
	}
	if err := m.choose(name); err != nil {
		return nil, err
	}
	if len(m.apps) > 1 && (o.given() || *o.path != "") {
		return nil, usage("The manifest has %d apps: say for which one the options are, as in proa push APP.", len(m.apps))
	}
	for i, a := range m.apps {
		if err := o.apply(a); err != nil {
			return nil, err
		}
		if isTrue(a, "no-route") || isTrue(a, "random-route") {
			continue
		}
		if valueOf(a, "default-route") == nil {
			m.unasked = append(m.unasked, fmt.Sprintf("/applications/%d/default-route", i))
		}
		if err := setValue(a, "default-route", true); err != nil {
			return nil, err
		}
	}
	if how.strategy != "" { // the sizes of the instances change with the instances
		m.applied = &manifest{root: copyNode(m.root)}
	}
	for _, a := range m.apps {
		if err := o.resize(a); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// plan finds what is to be uploaded, so that a mistake in a path is met before anything is changed.
func (o pushOptions) plan(s *session, m *manifest) ([]*pushed, error) {
	var all []*pushed
	how, err := o.how()
	if err == nil && how.strategy != "" {
		err = o.sizes(&how.options)
	}
	if err != nil {
		return nil, err
	}
	for _, a := range m.apps {
		p := &pushed{name: textOf(a, "name"), place: m.place(s.Env, a), how: how}
		if docker := valueOf(a, "docker"); docker != nil && docker.Kind == yaml.MappingNode {
			p.image, p.user = textOf(docker, "image"), textOf(docker, "username")
		}
		if *o.path != "" {
			p.place = s.path(*o.path)
		}
		if p.image == "" {
			b, err := gather(p.place)
			if err != nil {
				return nil, err
			}
			if err := b.close(); err != nil {
				return nil, err
			}
		}
		if p.user != "" && s.Getenv("PROA_DOCKER_PASSWORD") == "" {
			return nil, usage("The image of app %s is pulled as %s, so PROA_DOCKER_PASSWORD must be set.", p.name, p.user)
		}
		all = append(all, p)
	}
	return all, nil
}

// findAll looks up the apps that the manifest has made.
func (s *session) findAll(ctx context.Context, all []*pushed) error {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = strings.ReplaceAll(p.name, ",", "%2C")
	}
	found := map[string]v3.App{}
	path := "/v3/apps?names=" + url.QueryEscape(strings.Join(names, ",")) + "&space_guids=" + url.QueryEscape(s.cfg.Space.GUID)
	for a, err := range v3.Each[v3.App](ctx, s.api, path) {
		if err != nil {
			return err
		}
		found[a.Name] = a
	}
	for _, p := range all {
		a, ok := found[p.name]
		if !ok {
			return fmt.Errorf("the manifest was applied, but there is no app %q", p.name)
		}
		p.app = a
	}
	return nil
}

func (o pushOptions) push(ctx context.Context, s *session, p *pushed) error {
	var pkg string
	var err error
	if p.image != "" {
		pkg, err = s.dockerPackage(ctx, p.app, p.image, p.user)
	} else {
		pkg, err = s.upload(ctx, p.app, p.place)
	}
	if err != nil {
		return err
	}
	if *o.noStart {
		if p.app.State == "STARTED" {
			if err := s.act(ctx, p.app, "stop"); err != nil {
				return err
			}
		}
		s.ok()
		s.say("\nNext: proa start %s", shell(p.app.Name))
		return nil
	}
	droplet, err := s.stage(ctx, p.app, pkg)
	if err != nil {
		return err
	}
	if err := o.launch(ctx, s, p, droplet); err != nil {
		return err
	}
	return s.printLinks(ctx, p.app)
}

// launch runs a droplet: in the place of what runs, or after it has stopped.
func (o pushOptions) launch(ctx context.Context, s *session, p *pushed, droplet string) error {
	if p.how.strategy != "" {
		ask := p.how.of(p.app)
		ask.Droplet = &v3.Ref{GUID: droplet}
		return s.deploy(ctx, p.app, ask, o.wait())
	}
	if err := s.useDroplet(ctx, p.app, droplet); err != nil {
		return err
	}
	if p.app.State == "STOPPED" {
		return s.begin(ctx, p.app, "start", o.wait())
	}
	return s.begin(ctx, p.app, "restart", o.wait())
}
