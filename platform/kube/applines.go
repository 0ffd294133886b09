package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/proa-dev/proa/platform/launch"
)

// AppLine is a line that an app wrote. A line longer than 64 KiB comes in pieces, all with the time of the first.
type AppLine struct {
	At      int64 // nanoseconds since 1970
	Sidecar string
	Text    []byte
}

// appLines takes a log of Kubernetes apart: TIME, a space, and what was written.
type appLines struct {
	from       io.Reader
	buf        []byte // what was read and not yet taken is from start to end
	start, end int

	last   AppLine // the line before; what follows belongs to it if it is not finished
	open   bool
	second [len(secondLayout)]byte // the last one that was read, because the next line is usually of the same
	unix   int64
	marks  map[string]string // sidecars by what their lines begin with
	full   bool              // the last read left no room
	scant  int               // reads in a row that needed little
}

const (
	minRead  = 4 << 10
	maxRead  = 128 << 10
	maxScant = 50 // reads

	secondLayout = "2006-01-02T15:04:05"
	maxStamp     = len("2006-01-02T15:04:05.000000000+00:00")
	maxMarks     = 64 // a container has no more sidecars; whoever forges more is read more slowly
)

func (r *appLines) each(take func(AppLine) bool, idle func()) error {
	for {
		rest := r.buf[r.start:r.end]
		n := bytes.IndexByte(rest, '\n')
		whole := n >= 0
		if !whole && len(rest) >= maxStamp+maxLine {
			n = maxStamp + maxLine
		}
		if n > maxStamp+maxLine { // so that a long line is cut at the same places, however it arrives
			n, whole = maxStamp+maxLine, false
		}
		if n >= 0 {
			if more, err := r.line(rest[:n], whole, take); !more || err != nil {
				return err
			}
			r.start += n
			if whole {
				r.start++
			}
			continue
		}
		if r.last.At > 0 { // before the first line it is not known that there is a log
			idle()
		}
		err := r.fill()
		if errors.Is(err, io.EOF) {
			if r.start < r.end { // whoever wrote it died in the middle of it
				_, err := r.line(r.buf[r.start:r.end], true, take)
				return err
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fill reads what there is. The buffer is small as long as little comes.
func (r *appLines) fill() error {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	switch {
	case len(r.buf) == 0:
		r.buf = make([]byte, minRead)
	case r.full && len(r.buf) < maxRead:
		r.resize(min(4*len(r.buf), maxRead))
	case r.scant > maxScant && r.end == 0 && len(r.buf) > minRead:
		r.resize(minRead)
	}
	n, err := r.from.Read(r.buf[r.end:])
	r.end += n
	if r.full = r.end == len(r.buf); r.end < minRead/2 {
		r.scant++
	} else {
		r.scant = 0
	}
	if n > 0 {
		return nil // and the error comes again
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

func (r *appLines) resize(size int) {
	old := r.buf[:r.end]
	r.buf = make([]byte, size)
	copy(r.buf, old)
}

// line takes one line, or a piece of one.
func (r *appLines) line(raw []byte, whole bool, take func(AppLine) bool) (more bool, err error) {
	if r.open {
		r.last.Text = raw
	} else {
		at, text, ok := r.stamp(raw)
		if !ok {
			return false, fmt.Errorf("%w: the node says: %.200q", ErrNoLog, raw)
		}
		r.last.At = max(r.last.At, at)
		r.last.Sidecar, r.last.Text = r.mark(text)
	}
	r.open = !whole
	return take(r.last), nil
}

// stamp reads the time of a line. That is most of the work on a short line, so it is done by hand where it is written as usual.
func (r *appLines) stamp(line []byte) (at int64, text []byte, ok bool) {
	const nano, zone = len(secondLayout) + 1, len(secondLayout) + 10
	if len(line) <= zone+1 || line[nano-1] != '.' || line[zone] != 'Z' || line[zone+1] != ' ' {
		return slowStamp(line)
	}
	if !bytes.Equal(line[:nano-1], r.second[:]) {
		t, err := time.Parse(secondLayout, string(line[:nano-1]))
		if err != nil {
			return 0, nil, false
		}
		copy(r.second[:], line)
		r.unix = t.Unix()
	}
	n := int64(0)
	for _, digit := range line[nano:zone] {
		if digit < '0' || digit > '9' {
			return 0, nil, false
		}
		n = n*10 + int64(digit-'0')
	}
	return r.unix*int64(time.Second) + n, line[zone+2:], true
}

func slowStamp(line []byte) (at int64, text []byte, ok bool) {
	end := bytes.IndexByte(line[:min(len(line), maxStamp+1)], ' ')
	if end < 0 {
		return 0, nil, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(line[:end]))
	return t.UnixNano(), line[end+1:], err == nil
}

// mark takes the mark of a sidecar off.
func (r *appLines) mark(line []byte) (sidecar string, text []byte) {
	if !bytes.HasPrefix(line, []byte(launch.MarkStart)) {
		return "", line
	}
	end := bytes.IndexByte(line, launch.MarkEnd[0]) + 1
	if name, known := r.marks[string(line[:end])]; known {
		return name, line[end:]
	}
	sidecar, text = launch.Parse(line)
	if sidecar != "" && len(r.marks) < maxMarks {
		if r.marks == nil {
			r.marks = map[string]string{}
		}
		r.marks[launch.Mark(sidecar)] = sidecar
	}
	return sidecar, text
}
