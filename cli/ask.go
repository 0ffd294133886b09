package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ask reads a line from a person.
func (s *session) ask(ctx context.Context, label string) (string, error) {
	fmt.Fprintf(s.Err, "%s: ", s.bold(label))
	if s.lines == nil {
		s.lines = bufio.NewReader(s.In)
	}
	text, err := patiently(ctx, func() (string, error) { return s.lines.ReadString('\n') })
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil && (!errors.Is(err, io.EOF) || text == "") {
		fmt.Fprintln(s.Err)
		return "", usage("No answer was given for %q.", label)
	}
	return strings.TrimSpace(text), nil
}

func (s *session) askHidden(ctx context.Context, label string) (string, error) {
	fmt.Fprintf(s.Err, "%s: ", s.bold(label))
	text, err := s.Hidden(ctx)
	fmt.Fprintln(s.Err)
	return text, err
}

// patiently reads what may never come, until the context ends. The reader is left behind then: the program is about to end too.
func patiently(ctx context.Context, read func() (string, error)) (string, error) {
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := read()
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// confirm refuses what cannot be undone unless a person, or the option, says so.
func (s *session) confirm(ctx context.Context, force bool, question string) error {
	if force {
		return nil
	}
	if !s.InTTY {
		return usage("%s Nobody can be asked here: repeat the command with --force.", question)
	}
	answer, err := s.ask(ctx, question+" [y/N]")
	if err != nil {
		return err
	}
	if a := strings.ToLower(answer); a != "y" && a != "yes" {
		fmt.Fprintln(s.Err, "Nothing was changed.")
		return quiet(ExitFailed)
	}
	return nil
}

// choose lets a person pick one of several places; an empty answer picks none.
func (s *session) choose(ctx context.Context, noun string, places []Place) (Place, error) {
	fmt.Fprintf(s.Err, "\nChoose %s:\n", noun)
	for i, p := range places {
		fmt.Fprintf(s.Err, "%3d. %s\n", i+1, clean(p.Name))
	}
	for {
		answer, err := s.ask(ctx, "Number or name (empty for none)")
		if err != nil || answer == "" {
			return Place{}, err
		}
		for _, p := range places {
			if p.Name == answer {
				return p, nil
			}
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(places) {
			return places[n-1], nil
		}
		fmt.Fprintf(s.Err, "%q is not in the list.\n", answer)
	}
}
