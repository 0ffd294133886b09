package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A command is one word after proa, or several: those that begin alike are a family, such as notify.
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
	if all := family(args); len(all) > 0 {
		e.chapter(all)
		return nil
	}
	c, rest, err := find(args)
	if err != nil {
		return err
	}
	f := newFlags(c.name)
	run := c.setup(f)
	f.add(setter{isSwitch: true, set: func(string) error { f.asked = true; return nil }}, "help,h", "", "show this page")
	plain, err := f.parse(rest, c.verbatim)
	if f.asked {
		e.page(c)
		return nil
	}
	if most := len(strings.Fields(c.args)); c.surplus != nil && len(plain) > most {
		return c.surplus(plain, rest[slices.Index(rest, plain[most]):])
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

// find gives the command that the first words name, and the words after those.
func find(words []string) (command, []string, error) {
	for _, c := range commands() {
		if n := len(strings.Fields(c.name)); len(words) >= n && strings.Join(words[:n], " ") == c.name {
			return c, words[n:], nil
		}
	}
	n := 1
	for n < len(words) && len(family(words[:n])) > 0 {
		n++
	}
	typed := strings.Join(words[:n], " ")
	p := usage("There is no command %q.", typed)
	p.next = "proa help    # lists all commands"
	if n > 1 {
		p.next = "proa " + strings.Join(words[:n-1], " ") + " --help    # lists what there is"
	}
	if near := nearest(typed, namesUpTo(n)); near != "" {
		p.says += " Did you mean " + near + "?"
		p.next = "proa " + near + " --help"
	}
	return command{}, nil, p
}

// namesUpTo are those of all commands and families, in up to so many words.
func namesUpTo(words int) []string {
	var all []string
	for _, c := range commands() {
		name := strings.Fields(c.name)
		all = append(all, strings.Join(name[:min(words, len(name))], " "))
	}
	return slices.Compact(all)
}

// family are the commands whose names go on where these words end; a wish for help may stand behind them.
func family(words []string) []command {
	if last := len(words) - 1; last > 0 && slices.Contains([]string{"-h", "-help", "--help"}, words[last]) {
		words = words[:last]
	}
	var all []command
	for _, c := range commands() {
		if strings.HasPrefix(c.name, strings.Join(words, " ")+" ") {
			all = append(all, c)
		}
	}
	return all
}

// count refuses too few and too many arguments.
func (c command) count(args []string) error {
	words := strings.Fields(c.args)
	var must []string
	for _, w := range words {
		if !strings.HasPrefix(w, "[") {
			must = append(must, w)
		}
	}
	var p *problem
	switch {
	case len(args) < len(must):
		p = usage("%s is missing.", must[len(args)])
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
