package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress is a bar that fills as bytes go by. Without a terminal it is one line at the start.
type progress struct {
	e           *Env
	label       string
	total, done int64
	drawn       time.Time
}

func (e *Env) progress(label string, total int64) *progress {
	p := &progress{e: e, label: label, total: total}
	if !e.OutTTY {
		fmt.Fprintf(e.Out, "%s %s...\n", label, size(total))
		return p
	}
	p.draw()
	return p
}

const redraw = 100 * time.Millisecond

// Write counts; a progress stands behind an io.TeeReader.
func (p *progress) Write(b []byte) (int, error) {
	p.done = min(p.done+int64(len(b)), p.total)
	if now := p.e.Now(); p.e.OutTTY && (now.Sub(p.drawn) >= redraw || p.done == p.total) {
		p.drawn = now
		p.draw()
	}
	return len(b), nil
}

func (p *progress) through(r io.Reader) io.Reader { return io.TeeReader(r, p) }

func (p *progress) draw() {
	fmt.Fprintf(p.e.Out, "\r%s\x1b[K", p.line(p.e.Width()))
}

// line is the bar, as wide as it may be; on a very narrow terminal only the share remains.
func (p *progress) line(columns int) string {
	share := 1.0
	if p.total > 0 {
		share = float64(p.done) / float64(p.total)
	}
	percent := fmt.Sprintf("%3d%%", int(share*100))
	text := fmt.Sprintf("%s of %s", size(p.done), size(p.total))
	room := min(columns-len(p.label)-len(percent)-18, 40)
	switch {
	case room >= 10:
		full := int(share * float64(room))
		return fmt.Sprintf("%s [%s%s] %s %s", p.label, strings.Repeat("=", full), strings.Repeat(" ", room-full), percent, text)
	case columns > len(p.label)+len(percent)+1:
		return p.label + " " + percent
	}
	return percent
}

func (p *progress) end() {
	if p.e.OutTTY {
		fmt.Fprintln(p.e.Out)
	}
}
