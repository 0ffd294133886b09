// Command bench measures Proa beside the engines it stands on. Each figure is taken together with the bare engine's in the same
// run, because only their ratio means something on another machine.
//
// A figure is one file: it adds itself to the table below, drives the real program over its public protocol, and checks what it
// gets back. A wrong answer is a failed measurement, never a fast one.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/run"
)

// figures are measured in this order.
var figures = []figure{clientCredentials, walkUsers, notifyEveryone, manyApps, manyRoutes, manyServices, startOne, pushAgain, logSpeed, logStreams, routing}

// figure is something that is measured. It may take several lines to say.
type figure struct {
	name  string
	about string
	run   func(context.Context, *bench) ([]line, error)
}

// bench is what the figures share.
type bench struct {
	database string // URL of a PostgreSQL in which databases may be made
	users    int
	people   int
	routes   int
	round    time.Duration
	streams  time.Duration
	root     string // of the module
	dir      string // for what is built and written; deleted at the end
}

const minUsers = 2 * pageSize // the first page and the last are different ones

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

func measure() error {
	b := &bench{}
	list := flag.Bool("list", false, "say what can be measured")
	flag.IntVar(&b.users, "users", 1_000_000, "people in the directory that is walked through")
	flag.IntVar(&b.people, "people", 1_000_000, "people who get a mail, after a hundredth and a tenth of them")
	flag.IntVar(&b.routes, "routes", 10_000, "routes in a cluster, after 10 and a tenth of them")
	flag.DurationVar(&b.round, "round", 4*time.Second, "length of one of the rounds whose median counts")
	flag.DurationVar(&b.streams, "streams", time.Minute, "how long the log streams are open")
	flag.Usage = usage
	flag.Parse()
	chosen, err := choose(flag.Args())
	switch {
	case *list:
		for _, f := range figures {
			fmt.Printf("%-26s %s\n", f.name, f.about)
		}
		return nil
	case err != nil:
		return err
	case b.users < minUsers || b.people < minPeople || b.people > maxPeople || b.routes < minRoutes || b.routes > maxRoutes || b.round < 100*time.Millisecond:
		return fmt.Errorf("-users must be at least %d, -people %d to %d, -routes %d to %d, and -round at least 100ms", minUsers, minPeople, maxPeople, minRoutes, maxRoutes)
	}
	ctx, stop := run.Signals(context.Background())
	defer stop()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	return b.each(ctx, chosen)
}

func usage() {
	fmt.Fprint(os.Stderr, "Measures Proa beside the bare engines: bench [flag...] [FIGURE...]\n\n")
	flag.PrintDefaults()
	fmt.Fprintln(os.Stderr)
	env.Help(os.Stderr, &config{})
}

// choose finds figures by name; no name stands for all of them.
func choose(names []string) ([]figure, error) {
	if len(names) == 0 {
		return figures, nil
	}
	var chosen []figure
	for _, name := range names {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no figure %q. See what there is with: go run ./bench -list", name)
		}
		chosen = append(chosen, figures[i])
	}
	return chosen, nil
}

type config struct {
	Database env.Secret `env:"PROA_BENCH_DATABASE_URL" required:"true" help:"PostgreSQL in which databases may be made, as postgres://user:password@host/name."`
}

func (b *bench) prepare(ctx context.Context) error {
	var c config
	if err := env.Load(&c, os.Getenv); err != nil {
		return fmt.Errorf("%w (make bench sets it)", err)
	}
	b.database = c.Database.Reveal()
	if err := b.header(ctx); err != nil {
		return err
	}
	root, err := goTool(ctx, "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	b.root = root
	b.dir, err = os.MkdirTemp("", "proa-bench-")
	return err
}

func (b *bench) header(ctx context.Context) error {
	pool, err := pg.Open(ctx, b.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	var engine string
	if err := pool.QueryRow(ctx, `show server_version`).Scan(&engine); err != nil {
		return err
	}
	fmt.Printf("# %d cores, %s %s/%s, PostgreSQL %s\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, engine)
	fmt.Println(heading)
	return nil
}

// each measures what was chosen. A figure that fails does not keep the next from being measured; an interrupt does.
func (b *bench) each(ctx context.Context, chosen []figure) error {
	var problems []error
	for _, f := range chosen {
		lines, err := f.run(ctx, b)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", f.name, cmp.Or(context.Cause(ctx), err))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s could not be measured: %w", f.name, err))
			continue
		}
		for _, l := range lines {
			fmt.Println(l)
		}
	}
	return errors.Join(problems...)
}

// say tells how long work goes on, away from the figures.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "  "+format+"\n", args...) }
