package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// The longest line that is kept whole; a longer one passes in pieces. Also what a stream holds back at most.
const maxLine = 64 << 10

// How long a dead process's output may take on its way out. Its pipes are at their end by then, unless somebody who is
// not our child holds one, or nobody reads our own output.
const drainTime = 4 * time.Second

// A sink is our stdout or stderr. Whole lines go in under its lock, so that no line holds bytes of two processes.
type sink struct {
	mu   sync.Mutex
	file *os.File
	open *stream // whose unfinished line stands at the end: a piece of a long one, or its last
}

// sinks are our stdout and stderr; one, where both are the same file.
func sinks() (out, err *sink) {
	out = &sink{file: os.Stdout}
	a, errA := os.Stdout.Stat()
	b, errB := os.Stderr.Stat()
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return out, out
	}
	return out, &sink{file: os.Stderr}
}

// write ends another's unfinished line first. What cannot be written is gone, as it would be without us; a process
// must not stand still because nobody listens.
func (k *sink) write(from *stream, text []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open != nil && k.open != from {
		_, _ = k.file.WriteString("\n")
	}
	_, _ = k.file.Write(text)
	k.open = nil
	if text[len(text)-1] != '\n' {
		k.open = from
	}
}

// A stream is the stdout or stderr of one process.
type stream struct {
	pipe *os.File
	to   *sink
	mark string // of a sidecar
	out  []byte // marked lines on their way
}

// newStream gives the end that the process writes to; it must be closed once the process has it. That end blocks, as
// programs expect of their stdout; ours does not, so that a deadline can end a read.
func newStream(to *sink, mark string) (*stream, int, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("make a pipe: %w", err)
	}
	if err := syscall.SetNonblock(ends[0], true); err != nil {
		return nil, 0, errors.Join(err, syscall.Close(ends[0]), syscall.Close(ends[1]))
	}
	return &stream{pipe: os.NewFile(uintptr(ends[0]), "output"), to: to, mark: mark}, ends[1], nil
}

// pass hands on everything until the last holder of the other end is gone, or the deadline of the pipe. It writes what
// whole lines it has at once, and holds back an unfinished one until it ends or is too long.
func (s *stream) pass() {
	defer func() { _ = s.pipe.Close() }()
	held := make([]byte, 0, maxLine)
	for {
		n, err := s.pipe.Read(held[len(held):cap(held)])
		held = held[:len(held)+n]
		whole := bytes.LastIndexByte(held[len(held)-n:], '\n') + 1
		if whole > 0 {
			whole += len(held) - n
		}
		if err != nil || whole == 0 && len(held) == cap(held) {
			whole = len(held)
		}
		if whole > 0 {
			s.emit(held[:whole])
			held = held[:copy(held, held[whole:])]
		}
		if err != nil {
			return
		}
	}
}

// emit leaves the main process's bytes as they are. A sidecar's line, or piece of one, gets its mark and an end. Marks
// can make much out of little, so they leave in portions.
func (s *stream) emit(text []byte) {
	if s.mark == "" {
		s.to.write(s, text)
		return
	}
	for line := range bytes.Lines(text) {
		s.out = append(append(s.out, s.mark...), line...)
		if line[len(line)-1] != '\n' {
			s.out = append(s.out, '\n')
		}
		if len(s.out) > maxLine {
			s.flush()
		}
	}
	s.flush()
}

func (s *stream) flush() {
	if len(s.out) > 0 {
		s.to.write(s, s.out)
		s.out = s.out[:0]
	}
}

// drain waits until the streams have passed everything on, but not forever.
func drain(streams []*stream, passing *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		passing.Wait()
		close(done)
	}()
	for _, s := range streams {
		_ = s.pipe.SetReadDeadline(time.Now().Add(drainTime / 2)) // closed already: at its end
	}
	select {
	case <-done:
	case <-time.After(drainTime):
	}
}
