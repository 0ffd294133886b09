// Command launcher is pid 1 of every app container.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/proa-dev/proa/platform/launch"
)

const usage = `Runs an app and its sidecars as one, as pid 1 of their container.

  launcher run [FILE]       run what FILE says, or the environment variable ` + launch.EnvConfig + `
  launcher status [SOCKET]  say how the processes of this container are, as JSON
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
	command, argument := "", ""
	switch len(args) {
	case 2:
		argument = args[1]
		fallthrough
	case 1:
		command = args[0]
	}
	switch command {
	case "run":
		return runApp(argument)
	case "status":
		return status(argument)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return 0
	}
	fmt.Fprint(os.Stderr, usage)
	return exitUsage
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
