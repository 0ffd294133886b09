// Command launcher is pid 1 of every app container.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/proa-dev/proa/platform/launch"
)

const usage = `Runs an app and its sidecars as one, as pid 1 of their container.

  launcher run [FILE]       run what FILE says, or the environment variable ` + launch.EnvConfig + `
  launcher status [SOCKET]  say how the processes of this container are, as JSON

What people run beside the app:

  launcher exec [--id ID] [--term TERM] [--lang LANG] [--size COLUMNSxROWS] [--mark] [-c LINE | -- PROGRAM ARGUMENT...]
                              run a shell or a line as the app runs, or a program as it is
  launcher signal ID NAME     send a signal, such as INT, to what exec runs
  launcher hangup ID          end it, with all that it has started
  launcher dial [--id ID] HOST:PORT
                              connect stdin and stdout with an address that the app reaches
`

// Exit codes of our own, from sysexits.h; run otherwise ends with that of the app.
const (
	exitUsage       = 64
	exitUnavailable = 69
	exitConfig      = 78
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	command, rest := "", args
	if len(args) > 0 {
		command, rest = args[0], args[1:]
	}
	switch {
	case command == "run" && len(rest) <= 1:
		return runApp(strings.Join(rest, ""))
	case command == "status" && len(rest) <= 1:
		return status(strings.Join(rest, ""))
	case command == "exec":
		return session(rest)
	case command == "signal" && len(rest) == 2:
		return outcome(launch.Signal(rest[0], rest[1]))
	case command == "hangup" && len(rest) == 1:
		return outcome(launch.Hangup(rest[0]))
	case command == "dial":
		return dial(rest)
	case command == "help" || command == "-h" || command == "--help":
		fmt.Print(usage)
		return 0
	}
	fmt.Fprint(os.Stderr, usage)
	return exitUsage
}

func session(args []string) int {
	var s launch.Session
	var size string
	flags := flag.NewFlagSet("exec", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flags.StringVar(&s.ID, "id", "", "")
	flags.StringVar(&s.Term, "term", "", "")
	flags.StringVar(&s.Lang, "lang", "", "")
	flags.BoolVar(&s.Mark, "mark", false, "")
	flags.StringVar(&s.Line, "c", "", "")
	flags.StringVar(&size, "size", "", "")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if s.Line != "" && flags.NArg() > 0 {
		flags.Usage()
		return exitUsage
	}
	if columns, rows, found := strings.Cut(size, "x"); found {
		s.Columns, s.Rows = cells(columns), cells(rows)
	}
	s.Args = flags.Args()
	return launch.Exec(s)
}

// cells is 0 for what is no number: the terminal then has the size it has.
func cells(text string) uint16 {
	n, _ := strconv.ParseUint(text, 10, 16)
	return uint16(n)
}

func dial(args []string) int {
	flags := flag.NewFlagSet("dial", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flags.String("id", "", "") // for hangup, which looks for it in the command line
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return exitUsage
	}
	return outcome(launch.Dial(context.Background(), flags.Arg(0)))
}

// outcome is an exit code, and a sentence where something went wrong.
func outcome(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUnavailable
	}
	return 0
}

func runApp(file string) int {
	cfg, err := launch.Load(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "launcher:", err)
		launch.Misconfigured(launch.DefaultTerminationLog, err)
		return exitConfig
	}
	return launch.Run(cfg)
}

func status(socket string) int {
	if socket == "" {
		socket = launch.DefaultSocket
	}
	s, err := launch.Ask(context.Background(), socket)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "launcher:", err)
		return exitUnavailable
	}
	return 0
}
