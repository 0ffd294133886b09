package ssh

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/proa-dev/proa/platform/launch"
)

// An output is the stdout and stderr of a command on their way to the client. It finds the mark on stderr that says how much
// stdout there is, and calls taken when the client was sent all of it.
type output struct {
	out, errs io.Writer
	mark      []byte
	taken     func()

	mu   sync.Mutex // Exec may write once more after it has returned
	held []byte     // of stderr: what may be the beginning of a mark
	sent int64      // of stdout
	all  int64      // of stdout; -1 until it is known
}

func newOutput(out, errs io.Writer, id string, taken func()) *output {
	return &output{out: out, errs: errs, mark: []byte(launch.EndMark(id)), taken: taken, all: -1}
}

// whole tells whether the mark was seen, and whether everything before it came.
func (o *output) whole() (seen, complete bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all >= 0, o.all >= 0 && o.sent >= o.all
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.out.Write(b)
	o.mu.Lock()
	o.sent += int64(n)
	done := o.all >= 0 && o.sent >= o.all
	o.mu.Unlock()
	if done {
		o.taken()
	}
	return n, err
}

type outputErrs output

func (o *outputErrs) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := slices.Concat(o.held, b)
	o.held = nil
	if at := bytes.Index(text, o.mark); at >= 0 {
		end := at + len(o.mark) + launch.EndCount + 1
		if len(text) < end {
			text, o.held = text[:at], text[at:]
		} else {
			o.all, _ = strconv.ParseInt(string(text[at+len(o.mark):end-1]), 10, 64) // a mark that launch did not write ends it
			text = slices.Concat(text[:at], text[end:])
			if o.sent >= o.all {
				o.taken()
			}
		}
	} else {
		for n := min(len(text), len(o.mark)-1); n > 0; n-- {
			if bytes.HasPrefix(o.mark, text[len(text)-n:]) {
				text, o.held = text[:len(text)-n], text[len(text)-n:]
				break
			}
		}
	}
	if _, err := o.errs.Write(text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// flush passes on what was no mark after all.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.errs.Write(o.held) // the client may have gone
	o.held = nil
}
