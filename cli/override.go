package cli

import (
	"go.yaml.in/yaml/v3"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// overrides are the options of push that become part of the manifest.
type overrides struct {
	memory, disk, command, stack *string
	check, endpoint              *string
	image, imageUser             *string
	instances, timeout           **int
	buildpacks                   *[]string
	noRoute, randomRoute         *bool
}

func overrideFlags(f *flags) *overrides {
	return &overrides{
		memory: f.text("memory,m", "SIZE", "memory of each instance, such as 512M or 1G"), disk: f.text("disk,k", "SIZE", "disk of each instance, such as 1G"),
		instances: f.number("instances,i", "NUMBER", "how many instances"), command: f.text("start-command,c", "COMMAND", "what starts the app; null for what staging finds"),
		buildpacks: f.list("buildpack,b", "NAME", "buildpack to stage with; may be repeated; null for whichever fits"), stack: f.text("stack,s", "STACK", "root filesystem to run on"),
		check:    f.text("health-check-type,u", "TYPE", "port, http or process"),
		endpoint: f.text("endpoint", "PATH", "path that an http health check asks"), timeout: f.number("app-start-timeout,t", "SECONDS", "time for an instance to become healthy"),
		image:     f.text("docker-image,o", "IMAGE", "run this image instead of uploading something"),
		imageUser: f.text("docker-username", "NAME", "who may pull it; the password is in PROA_DOCKER_PASSWORD"),
		noRoute:   f.on("no-route", "map no route"), randomRoute: f.on("random-route", "map a route with a name that nobody has"),
	}
}

// check refuses what cannot be meant, before anything is changed.
func (o *overrides) refuse(path string) error {
	for _, size := range []string{*o.memory, *o.disk} {
		if size != "" {
			if _, err := megabytes(size); err != nil {
				return err
			}
		}
	}
	switch {
	case *o.noRoute && *o.randomRoute:
		return usage("--no-route and --random-route exclude each other.")
	case *o.image != "" && (path != "" || len(*o.buildpacks) > 0 || *o.stack != ""):
		return usage("--docker-image brings everything along: leave out -p, -b and -s.")
	case *o.imageUser != "" && *o.image == "":
		return usage("--docker-username needs --docker-image.")
	case *o.check != "" && *o.check != "port" && *o.check != "http" && *o.check != "process":
		return usage("A health check is of type port, http or process, not %q.", *o.check)
	case *o.endpoint != "" && *o.check != "http":
		return usage("--endpoint needs -u http.")
	}
	return nil
}

// given tells whether there is any: they are about one app.
func (o *overrides) given() bool {
	return *o.memory != "" || *o.disk != "" || *o.command != "" || *o.stack != "" || *o.check != "" || *o.endpoint != "" || *o.image != "" ||
		*o.instances != nil || *o.timeout != nil || len(*o.buildpacks) > 0 || *o.noRoute || *o.randomRoute
}

// setting is a value for a key in the entry of an app, or of one of its processes.
type setting struct {
	in    *yaml.Node
	key   string
	given bool
	value any
}

func write(settings []setting) error {
	for _, s := range settings {
		if s.given {
			if err := setValue(s.in, s.key, s.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// webOf is where options about a process go: into the process web of an app, if it lists one, and otherwise into the app itself.
func webOf(a *yaml.Node) *yaml.Node {
	if processes := valueOf(a, "processes"); processes != nil {
		for _, p := range processes.Content {
			if textOf(p, "type") == "web" {
				return p
			}
		}
	}
	return a
}

// resize writes how many instances there are, and how large, into the entry of an app.
func (o *overrides) resize(a *yaml.Node) error {
	web, disk, otherDisk := webOf(a), "disk-quota", "disk_quota"
	if web != a {
		disk, otherDisk = otherDisk, disk
	}
	var instances any
	if *o.instances != nil {
		instances = **o.instances
	}
	if *o.disk != "" {
		dropKey(web, otherDisk)
	}
	return write([]setting{{web, "memory", *o.memory != "", *o.memory}, {web, disk, *o.disk != "", *o.disk}, {web, "instances", instances != nil, instances}})
}

// sizes puts into the options of a deployment what resize would write.
func (o *overrides) sizes(d *v3.DeploymentOptions) error {
	d.WebInstances = *o.instances
	for text, into := range map[*string]**int{o.memory: &d.MemoryMB, o.disk: &d.DiskMB} {
		if *text == "" {
			continue
		}
		mb, err := megabytes(*text)
		if err != nil {
			return err
		}
		*into = &mb
	}
	return nil
}

// apply writes the other options into the entry of an app.
func (o *overrides) apply(a *yaml.Node) error {
	web := webOf(a)
	var timeout any
	if *o.timeout != nil {
		timeout = **o.timeout
	}
	var command any = *o.command
	if *o.command == "null" || *o.command == "default" {
		command = nil
	}
	packs := buildpacks(*o.buildpacks)
	if packs == nil {
		packs = []string{}
	}
	docker := map[string]string{"image": *o.image}
	if *o.imageUser != "" {
		docker["username"] = *o.imageUser
	}
	return write([]setting{
		{web, "command", *o.command != "", command}, {web, "health-check-type", *o.check != "", *o.check},
		{web, "health-check-http-endpoint", *o.endpoint != "", *o.endpoint}, {web, "timeout", timeout != nil, timeout},
		{a, "buildpacks", len(*o.buildpacks) > 0, packs}, {a, "stack", *o.stack != "", *o.stack}, {a, "docker", *o.image != "", docker},
		{a, "no-route", *o.noRoute, true}, {a, "random-route", *o.randomRoute, true},
	})
}
