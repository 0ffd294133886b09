package launch

import (
	"fmt"
	"os/exec"
	"strings"
)

// argv is the program to run and its arguments, the zeroth included.
//
// The CNB launcher sets up the buildpacks' environment, runs their exec.d programs and then becomes the process, so that
// the pid stays the same. It takes `launcher 'line'` as a line for bash, `launcher -- program arg` as a program, and its
// own name as the type of one of the image's processes.
func (c *Config) argv(p Process) (program string, argv []string, err error) {
	switch {
	case c.Launcher != "" && p.Command != "":
		return c.Launcher, []string{c.Launcher, p.Command}, nil
	case c.Launcher != "" && len(p.Args) > 0:
		return c.Launcher, append([]string{c.Launcher, "--"}, p.Args...), nil
	case c.Launcher != "":
		return c.Launcher, []string{c.Process}, nil
	case p.Command != "":
		return "/bin/sh", []string{"sh", "-c", p.Command}, nil
	}
	program, err = exec.LookPath(p.Args[0])
	if err != nil {
		return "", nil, fmt.Errorf("find %s: %w", p.Args[0], err)
	}
	return program, p.Args, nil
}

// environ is the container's environment with that of the process in place of what has the same name. The configuration
// itself stays out: it holds the environments of the others.
func environ(container []string, own map[string]string) []string {
	var env []string
	for _, pair := range container {
		name, _, _ := strings.Cut(pair, "=")
		if _, replaced := own[name]; !replaced && name != EnvConfig {
			env = append(env, pair)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}
