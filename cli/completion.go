package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// completionCommand is a function because it lists all commands, itself among them.
func completionCommand() command {
	return command{
		name: "completion", args: "SHELL", group: "Other", short: "Print what makes the Tab key know proa, for bash, zsh or fish",
		examples: []string{
			"proa completion bash > ~/.local/share/bash-completion/completions/proa",
			`proa completion zsh > "${fpath[1]}/_proa"`,
			"proa completion fish > ~/.config/fish/completions/proa.fish",
		},
		setup: func(*flags) action {
			return func(_ context.Context, s *session, args []string) error {
				write := map[string]func() string{"bash": bash, "zsh": zsh, "fish": fish}[args[0]]
				if write == nil {
					return usage("There is no completion for %q: choose bash, zsh or fish.", args[0])
				}
				fmt.Fprint(s.Out, write())
				return nil
			}
		},
	}
}

// optionsOf are the options of a command, with help.
func optionsOf(c command) []option {
	f := newFlags(c.name)
	c.setup(f)
	return append(f.shown, option{names: []string{"--help"}, help: "show help"})
}

// next are the words that may follow some words in the names of commands, each with what to say of it.
func next(words string) []option {
	var all []option
	for _, c := range commands() {
		rest, begins := strings.CutPrefix(c.name+" ", words)
		word, more, _ := strings.Cut(rest, " ")
		if !begins || slices.ContainsFunc(all, func(o option) bool { return o.names[0] == word }) {
			continue
		}
		help := c.short
		if more != "" {
			help = c.group
		}
		all = append(all, option{names: []string{word}, help: help})
	}
	return all
}

// families are the beginnings of names that go on, each with a space behind it.
func families() []string {
	var all []string
	for _, c := range commands() {
		words := strings.Fields(c.name)
		for n := 1; n < len(words); n++ {
			if begin := strings.Join(words[:n], " ") + " "; !slices.Contains(all, begin) {
				all = append(all, begin)
			}
		}
	}
	return all
}

func namesOf(options []option) string {
	var all []string
	for _, o := range options {
		all = append(all, o.names...)
	}
	return strings.Join(all, " ")
}

func bash() string {
	var b strings.Builder
	b.WriteString("_proa() {\n  local cur=${COMP_WORDS[COMP_CWORD]} before=\"${COMP_WORDS[*]:1:COMP_CWORD-1} \" words= command=\n  case $before in\n")
	fmt.Fprintf(&b, "    ' ') command=1 words=%q ;;\n", namesOf(next("")))
	for _, begin := range families() {
		fmt.Fprintf(&b, "    %q) command=1 words=%q ;;\n", begin, namesOf(next(begin)))
	}
	for _, c := range commands() {
		fmt.Fprintf(&b, "    %q*) words=%q ;;\n", c.name+" ", namesOf(optionsOf(c)))
	}
	b.WriteString("  esac\n  [[ $cur == -* || -n $command ]] || { COMPREPLY=($(compgen -f -- \"$cur\")); return; }\n")
	b.WriteString("  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o filenames -F _proa proa\n")
	return b.String()
}

func zsh() string {
	quote := strings.NewReplacer("'", `'\''`, ":", `\:`).Replace
	var b strings.Builder
	described := func(options []option) {
		b.WriteString("words_=(")
		for _, o := range options {
			for _, name := range o.names {
				fmt.Fprintf(&b, " '%s:%s'", name, quote(o.help))
			}
		}
		b.WriteString(" )")
	}
	b.WriteString("#compdef proa\n_proa() {\n  local -a words_\n  case \"${(j: :)words[2,CURRENT-1]} \" in\n")
	for _, begin := range append([]string{" "}, families()...) {
		fmt.Fprintf(&b, "    %q) ", begin)
		described(next(strings.TrimLeft(begin, " ")))
		b.WriteString("; _describe command words_; return ;;\n")
	}
	for _, c := range commands() {
		fmt.Fprintf(&b, "    %q*) ", c.name+" ")
		described(optionsOf(c))
		b.WriteString(" ;;\n")
	}
	b.WriteString("  esac\n  if [[ $PREFIX == -* ]]; then _describe option words_; else _files; fi\n}\n" +
		"if [ \"$funcstack[1]\" = _proa ]; then _proa \"$@\"; else compdef _proa proa; fi\n")
	return b.String()
}

// fishSeen is the condition that these words were typed.
func fishSeen(words string) string {
	return "__fish_seen_subcommand_from " + strings.Join(strings.Fields(words), "; and __fish_seen_subcommand_from ")
}

func fish() string {
	quote := strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace
	var b strings.Builder
	for _, o := range next("") {
		fmt.Fprintf(&b, "complete -c proa -n __fish_use_subcommand -f -a %s -d '%s'\n", o.names[0], quote(o.help))
	}
	for _, begin := range families() {
		words := next(begin)
		for _, o := range words {
			fmt.Fprintf(&b, "complete -c proa -n '%s; and not __fish_seen_subcommand_from %s' -f -a %s -d '%s'\n", fishSeen(begin), namesOf(words), o.names[0], quote(o.help))
		}
	}
	for _, c := range commands() {
		for _, o := range optionsOf(c) {
			fmt.Fprintf(&b, "complete -c proa -n '%s'", fishSeen(c.name))
			for _, name := range o.names {
				if bare, long := strings.CutPrefix(name, "--"); long {
					fmt.Fprintf(&b, " -l %s", bare)
				} else {
					fmt.Fprintf(&b, " -s %s", strings.TrimPrefix(name, "-"))
				}
			}
			if o.value != "" {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d '%s'\n", quote(o.help))
		}
	}
	return b.String()
}
