package main

import (
	"context"
	"fmt"
)

// No engine does what a push does. So the second push of an app stands beside the first, which finds no cache.
var pushAgain = figure{
	name:  pushName,
	about: "push of a small Go app after one line was changed: upload, stage and start, beside the first push; needs a running Proa",
	run:   measurePush,
}

const (
	pushName   = "platform.push_again"
	pushRounds = 3
)

func measurePush(ctx context.Context, _ *bench) ([]line, error) {
	var lines []line
	err := withProa(ctx, pushName, func(p *proa) error {
		app, err := p.createApp(ctx)
		if err != nil {
			return err
		}
		say("%s: a first push, then %d more", pushName, pushRounds)
		first, err := p.push(ctx, app, "first")
		if err != nil {
			return err
		}
		var upload, stage, start, sum []float64
		for n := range pushRounds {
			again, err := p.push(ctx, app, fmt.Sprintf("change %d", n))
			if err != nil {
				return err
			}
			upload, stage, start, sum = append(upload, again.upload), append(stage, again.stage), append(start, again.start), append(sum, again.sum())
		}
		lines = []line{
			{name: pushName, ours: quantity{median(sum), "s"}, bare: quantity{first.sum(), "s, first push"},
				notes: []string{fmt.Sprintf("medians of %d pushes; the start is a restart of what runs, until the new instance runs", pushRounds)}},
			{name: pushName + ".upload", ours: quantity{median(upload), "s"}, bare: quantity{first.upload, "s, first push"}},
			{name: pushName + ".stage", ours: quantity{median(stage), "s"}, bare: quantity{first.stage, "s, first push"}},
			{name: pushName + ".start", ours: quantity{median(start), "s"}, bare: quantity{first.start, "s, first push"}},
		}
		return nil
	})
	return lines, err
}
