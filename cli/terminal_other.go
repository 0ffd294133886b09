//go:build !linux && !darwin

package cli

import (
	"context"
	"errors"
	"os"
)

// Elsewhere everything is plain lines, and a password comes from an option or the environment.

func isTerminal(*os.File) bool { return false }

func terminalWidth(*os.File) int { return 0 }

func terminalSize(*os.File) (columns, rows int) { return 0, 0 }

func resized() (changed <-chan os.Signal, stop func()) { return nil, func() {} }

func makeRaw(*os.File) (restore func(), err error) {
	return nil, errors.New("a terminal cannot be passed on here: use proa ssh -T")
}

func readHidden(context.Context, *os.File) (string, error) {
	return "", errors.New("a password cannot be asked for here: give it as PROA_PASSWORD")
}

func lock(string) (func(), error) { return func() {}, nil }
