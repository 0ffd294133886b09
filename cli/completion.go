package cli

import (
	"context"
	"fmt"
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

func bash() string {
	var b, names strings.Builder
	b.WriteString("_proa() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words=\n  if [ \"$COMP_CWORD\" -gt 1 ]; then\n    case ${COMP_WORDS[1]} in\n")
	for _, c := range commands() {
		fmt.Fprintf(&names, "%s ", c.name)
		var options []string
		for _, o := range optionsOf(c) {
			options = append(options, o.names...)
		}
		fmt.Fprintf(&b, "      %s) words=%q ;;\n", c.name, strings.Join(options, " "))
	}
	fmt.Fprintf(&b, "    esac\n    [[ $cur == -* ]] || { COMPREPLY=($(compgen -f -- \"$cur\")); return; }\n  else\n    words=%q\n  fi\n", strings.TrimSpace(names.String()))
	b.WriteString("  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o filenames -F _proa proa\n")
	return b.String()
}

func zsh() string {
	quote := strings.NewReplacer("'", `'\''`, ":", `\:`).Replace
	var b strings.Builder
	b.WriteString("#compdef proa\n_proa() {\n  local -a words_\n  if (( CURRENT == 2 )); then\n    words_=(\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "      '%s:%s'\n", c.name, quote(c.short))
	}
	b.WriteString("    )\n    _describe command words_\n    return\n  fi\n  case $words[2] in\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "    %s) words_=(", c.name)
		for _, o := range optionsOf(c) {
			for _, name := range o.names {
				fmt.Fprintf(&b, " '%s:%s'", name, quote(o.help))
			}
		}
		b.WriteString(" ) ;;\n")
	}
	b.WriteString("  esac\n  if [[ $PREFIX == -* ]]; then _describe option words_; else _files; fi\n}\n" +
		"if [ \"$funcstack[1]\" = _proa ]; then _proa \"$@\"; else compdef _proa proa; fi\n")
	return b.String()
}

func fish() string {
	quote := strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "complete -c proa -n __fish_use_subcommand -f -a %s -d '%s'\n", c.name, quote(c.short))
		for _, o := range optionsOf(c) {
			fmt.Fprintf(&b, "complete -c proa -n '__fish_seen_subcommand_from %s'", c.name)
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
