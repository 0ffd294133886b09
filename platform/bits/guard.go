package bits

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// maxDirectory bounds the list at the end of an archive: 100,000 entries with names of some 250 bytes.
const maxDirectory = 32 << 20

var (
	errManyEntries = errors.New("the archive lists too many entries")
	errLongList    = errors.New("the archive's list of entries is too long")
)

var (
	entryMark = []byte("PK\x01\x02") // begins each entry of the list
	endMark   = []byte("PK\x06\x06") // begins the record that says how many there are, where two bytes are too few for it
)

// A guard stands between the zip reader and an upload. The reader keeps the whole list of entries in memory, reserves room
// for as many as the archive claims, and reads on while there are more than that. So the guard looks at what it reads.
type guard struct {
	in      io.ReaderAt
	size    int64
	max     int   // entries
	listing bool  // the list is being read
	read    int64 // bytes while listing
	entries int
	tail    [3]byte // of the last read, for a mark that begins there
	end     int64   // where the last read ended
	failed  error   // of the upload's storage, which is no fault of the archive
}

func (g *guard) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= g.size {
		return 0, io.EOF // an archive may claim any place for anything
	}
	n, err := g.in.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		g.failed = err
	}
	if g.listing {
		if refused := g.look(p[:n], off); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

func (g *guard) look(p []byte, off int64) error {
	if g.read += int64(len(p)); g.read > maxDirectory {
		return errLongList
	}
	if len(p) >= 40 && bytes.HasPrefix(p, endMark) && binary.LittleEndian.Uint64(p[32:]) > uint64(g.max) {
		return errManyEntries
	}
	g.entries += bytes.Count(p, entryMark)
	if off == g.end && len(p) > 0 {
		g.entries += bytes.Count(append(g.tail[:len(g.tail):len(g.tail)], p[:min(3, len(p))]...), entryMark)
	}
	g.tail, g.end = [3]byte{}, off+int64(len(p))
	copy(g.tail[:], p[max(0, len(p)-3):])
	if g.entries > g.max {
		return errManyEntries
	}
	return nil
}
