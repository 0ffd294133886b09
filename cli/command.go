package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A command is one word after proa.
type command struct {
	name     string
	args     string // such as "APP [PATH]": what stands in brackets may be left out
	group    string
	short    string // one line, without a full stop
	long     string
	examples []string
	needs    need
	verbatim int                                // after so many arguments nothing is an option any more
	surplus  func(args, rest []string) *problem // what to say about more arguments than there may be; the rest is as it was typed
	setup    func(*flags) action
}

// action is what a command does.
type action func(ctx context.Context, s *session, args []string) error

// need is what must have happened before a command makes sense. Each includes those before it.
type need int

const (
	nothing need = iota
	anAPI
	aLogin
	anOrg
	aSpace
)

// Run does what the command line says and gives the exit code.
func Run(ctx context.Context, e *Env, args []string) int {
	return e.report(ctx, dispatch(ctx, e, args))
}

func dispatch(ctx context.Context, e *Env, args []string) error {
	if len(args) == 0 {
		e.overview()
		return nil
	}
	switch args[0] {
	case "-h", "-help", "--help":
		args = append([]string{"help"}, args[1:]...)
	case "-v", "-version", "--version":
		args = []string{"version"}
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	f := newFlags(c.name)
	run := c.setup(f)
	f.add(setter{isSwitch: true, set: func(string) error { f.asked = true; return nil }}, "help,h", "", "show this page")
	plain, err := f.parse(args[1:], c.verbatim)
	if f.asked {
		e.page(c)
		return nil
	}
	if most := len(strings.Fields(c.args)); c.surplus != nil && len(plain) > most {
		return c.surplus(plain, args[1+slices.Index(args[1:], plain[most]):])
	}
	if err == nil {
		err = c.count(plain)
	}
	if err != nil {
		return err
	}
	s, err := newSession(e, f)
	if err != nil {
		return err
	}
	if err := s.have(c.needs); err != nil {
		return err
	}
	return run(ctx, s, plain)
}

func find(name string) (command, error) {
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	p := usage("There is no command %q.", name)
	p.next = "proa help    # lists all commands"
	if near := nearest(name, names); near != "" {
		p.says += " Did you mean " + near + "?"
		p.next = "proa " + near + " --help"
	}
	return command{}, p
}

// count refuses too few and too many arguments.
func (c command) count(args []string) error {
	words := strings.Fields(c.args)
	least := 0
	for _, w := range words {
		if !strings.HasPrefix(w, "[") {
			least++
		}
	}
	var p *problem
	switch {
	case len(args) < least:
		p = usage("%s is missing.", words[len(args)])
	case len(args) > len(words):
		p = usage("%q is one argument too many.", args[len(words)])
	default:
		return nil
	}
	p.next = c.usage() + "    # --help shows more"
	return p
}

func (c command) usage() string {
	return strings.TrimSpace(fmt.Sprintf("proa %s %s", c.name, c.args))
}
