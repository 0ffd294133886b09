// Command proa is what people and scripts use the platform with.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/proa-dev/proa/cli"
	"github.com/proa-dev/proa/kit/run"
)

// version is set when a release is built, with -ldflags "-X main.version=1.2.3".
var version = ""

func main() {
	ctx, stop := run.Signals(context.Background())
	code := cli.Run(ctx, cli.System(name()), os.Args[1:])
	stop()
	os.Exit(code)
}

// name is the release, or what the checkout was that this was built from.
func name() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "dev"
}
