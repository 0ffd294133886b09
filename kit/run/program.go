package run

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/proa-dev/proa/kit/env"
)

// Program is a server of the house as it is called from a shell: it serves, shows its help, and may have commands of its own.
type Program struct {
	Name   string
	Usage  string // what help shows above the settings
	Config any    // an empty configuration, for help
	Serve  func(context.Context) error
	Other  func(context.Context, []string) (known bool, err error) // its further commands; may be nil
}

// Main runs the command that the arguments name, and ends the process with a sentence where it fails.
func (p Program) Main() {
	if err := p.dispatch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, p.Name+": "+err.Error())
		os.Exit(1)
	}
}

func (p Program) dispatch(args []string) error {
	ctx, stop := Signals(context.Background())
	defer stop()
	command := strings.Join(args, " ")
	switch command {
	case "", "serve":
		return p.Serve(ctx)
	case "help", "--help", "-h":
		fmt.Print(p.Usage)
		env.Help(os.Stdout, p.Config)
		return nil
	case "help --markdown":
		env.Markdown(os.Stdout, p.Config)
		return nil
	}
	if p.Other != nil {
		if known, err := p.Other(ctx, args); known {
			return err
		}
	}
	return fmt.Errorf("%q is not a command. Run: %s help", command, p.Name)
}
