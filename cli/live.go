package cli

import (
	"fmt"
	"strings"
)

// live is a block of lines that is drawn over itself on a terminal. Elsewhere only what is new is written, as plain lines.
type live struct {
	e     *Env
	drawn int
	last  string
}

const maxLive = 20

// show draws the block; plain is the one line that stands for it where nothing can be redrawn.
func (l *live) show(lines []string, plain string) {
	if !l.e.OutTTY {
		if plain != l.last {
			fmt.Fprintln(l.e.Out, plain)
		}
		l.last = plain
		return
	}
	if len(lines) > maxLive {
		rest := fmt.Sprintf("  and %d more", len(lines)-maxLive+1)
		lines = append(lines[:maxLive-1:maxLive-1], rest)
	}
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "\r\x1b[K%s\n", clip(line, l.e.Width()))
	}
	for range l.drawn - len(lines) {
		b.WriteString("\r\x1b[K\n")
	}
	fmt.Fprint(l.e.Out, b.String())
	l.drawn = max(l.drawn, len(lines))
}

// clip cuts a line so that it does not wrap, which would spoil the next redraw. Colours take no room.
func clip(line string, columns int) string {
	if columns <= 0 || width(line) < columns {
		return line
	}
	var b strings.Builder
	left := columns - 2
	for len(line) > 0 && left > 0 {
		if at := escapes.FindStringIndex(line); len(at) == 2 && at[0] == 0 {
			b.WriteString(line[:at[1]])
			line = line[at[1]:]
			continue
		}
		r := []rune(line)[0]
		b.WriteRune(r)
		line = line[len(string(r)):]
		left--
	}
	if strings.Contains(b.String(), "\x1b") {
		return b.String() + "…\x1b[0m"
	}
	return b.String() + "…"
}
