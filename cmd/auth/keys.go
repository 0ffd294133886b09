package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/grant"
	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/seal"
)

func keys(ctx context.Context, args []string) error {
	var d database
	if err := env.Load(&d, os.Getenv); err != nil {
		return fmt.Errorf("%w\nRun: auth help", err)
	}
	s, box, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	who := auth.Who{Name: "auth keys"}
	k := &grant.Keys{Store: s, Box: box, Log: slog.Default(), Now: time.Now}
	switch {
	case len(args) == 1 && args[0] == "list":
		return listKeys(ctx, k)
	case len(args) == 1 && args[0] == "rotate":
		return rotateKey(ctx, k, who, grant.Lead)
	case len(args) == 2 && args[0] == "rotate" && args[1] == "--now":
		return rotateKey(ctx, k, who, 0)
	case len(args) == 2 && args[0] == "remove":
		if err := s.RemoveKey(ctx, who, args[1], time.Now()); err != nil {
			return err
		}
		fmt.Printf("The key %s is withdrawn. What it signed is refused within a minute.\n", args[1])
		return nil
	}
	return fmt.Errorf("use: auth keys list, auth keys rotate [--now], auth keys remove KID")
}

func rotateKey(ctx context.Context, k *grant.Keys, who auth.Who, lead time.Duration) error {
	key, err := k.NewKey(time.Now().Add(lead))
	if err != nil {
		return err
	}
	if err := k.Store.RotateKey(ctx, who, key); err != nil {
		return err
	}
	fmt.Printf("The key %s is published and signs from %s. The keys before it stay published until all their tokens have expired.\n",
		key.ID, key.SignsFrom.UTC().Format(time.RFC3339))
	return nil
}

func listKeys(ctx context.Context, k *grant.Keys) error {
	list, err := k.Store.Keys(ctx, time.Now())
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "KEY\tSIGNS FROM\tPUBLISHED UNTIL")
	for _, key := range list {
		until := "-"
		if key.Gone != nil {
			until = key.Gone.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", key.ID, key.SignsFrom.UTC().Format(time.RFC3339), until)
	}
	return w.Flush()
}

// keyset works on standard input and output, so that a keyset never stands in a command's arguments.
func keyset(command string) error {
	change := map[string]func([]byte) ([]byte, error){"rotate": seal.Rotate, "prune": seal.Prune, "new": func([]byte) ([]byte, error) { return seal.Generate() }}[command]
	if change == nil {
		return fmt.Errorf("use: auth keyset new, or: auth keyset rotate < keyset, or: auth keyset prune < keyset")
	}
	var before []byte
	if command != "new" {
		var err error
		if before, err = io.ReadAll(io.LimitReader(os.Stdin, 1<<20)); err != nil {
			return err
		}
	}
	after, err := change(before)
	if err != nil {
		return err
	}
	fmt.Println(string(after))
	return nil
}
