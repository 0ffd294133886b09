package bits

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

// zeros is a deflate stream of so many megabytes of zeros, made by repeating a whole block.
func zeros(t testing.TB, megabytes int) string {
	t.Helper()
	var one bytes.Buffer
	w, err := flate.NewWriter(&one, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	all := bytes.Repeat(one.Bytes(), megabytes)
	return string(append(all, 1, 0, 0, 0xff, 0xff)) // an empty last block
}

func TestBombsAreRefusedSoonAndWithoutMuchMemory(t *testing.T) {
	gigabytes := zeros(t, 10<<10) // in 45 MB
	claim := func(size uint64) func(*zip.FileHeader) {
		return func(h *zip.FileHeader) { h.Method, h.UncompressedSize64 = zip.Deflate, size }
	}
	one, many := zeros(t, 1), make([]member, 700)
	for n := range many {
		many[n] = member{name: fmt.Sprint(n), content: one, raw: claim(16 << 20)}
	}
	for name, c := range map[string]struct {
		archive []byte
		says    string
	}{
		"honest":      {zipOf(t, member{name: "bomb", content: gigabytes, raw: claim(10 << 30)}), "unpacks to more than 4 GB"},
		"ratio":       {zipOf(t, member{name: "bomb", content: gigabytes, raw: claim(4 << 30)}), "more than 200 times"},
		"lying":       {zipOf(t, member{name: "bomb", content: gigabytes, raw: claim(1 << 20)}), "another size"},
		"in parts":    {zipOf(t, many...), "unpacks to more than 4 GB"},
		"too short":   {zipOf(t, member{name: "bomb", content: one, raw: claim(2 << 20)}), "another size"},
		"overlapping": {overlapping(t, 1000), "overlap"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			since := time.Now()
			used := peak(func() { _, err = unzip(c.archive, Limits{}) })
			expect(t, err, c.says)
			if took := time.Since(since); took > 2*time.Second || used > 32<<20 {
				t.Errorf("took %v and %d MB", took, used>>20)
			}
		})
	}
}

// overlapping is an archive whose many entries are all the same bytes of it.
func overlapping(t testing.TB, count int) []byte {
	t.Helper()
	archive := zipOf(t, member{name: "0000", content: zeros(t, 10), raw: func(h *zip.FileHeader) { h.Method, h.UncompressedSize64 = zip.Deflate, 10<<20 }})
	start := bytes.LastIndex(archive, entryMark)
	end := bytes.LastIndex(archive, []byte("PK\x05\x06"))
	one, last := bytes.Clone(archive[start:end]), bytes.Clone(archive[end:])
	all := bytes.Clone(archive[:start])
	for n := range count {
		copy(one[46:50], fmt.Sprintf("%04d", n))
		all = append(all, one...)
	}
	return append(all, endOf(last, count, count*len(one))...)
}

func endOf(end []byte, entries, size int) []byte {
	binary.LittleEndian.PutUint16(end[8:], uint16(entries))
	binary.LittleEndian.PutUint16(end[10:], uint16(entries))
	binary.LittleEndian.PutUint32(end[12:], uint32(size))
	return end
}

func TestLongLists(t *testing.T) {
	entry := func(name string) []byte {
		header := make([]byte, 46, 46+len(name))
		copy(header, entryMark)
		binary.LittleEndian.PutUint16(header[28:], uint16(len(name)))
		return append(header, name...)
	}
	end := func(entries, size int) []byte {
		return endOf(append([]byte("PK\x05\x06"), make([]byte, 18)...), entries, size)
	}
	// Its end says one, which is all that the reader compares: the last 16 bits.
	short := bytes.Repeat(entry("a"), 2<<16+1)
	// One entry, 64 KB long.
	long := bytes.Repeat(entry(string(make([]byte, 65000))), 1000)
	// An end of the larger kind that claims a great many, in an archive with room for them: 512 MB of nothing before it.
	const room = 1 << 29
	claims := append([]byte("PK\x06\x06"), make([]byte, 52)...)
	binary.LittleEndian.PutUint64(claims[32:], 30<<20)
	locator := append([]byte("PK\x06\x07"), make([]byte, 16)...)
	binary.LittleEndian.PutUint64(locator[8:], room)
	binary.LittleEndian.PutUint32(locator[16:], 1)
	claims = append(append(claims, locator...), end(0xffff, 0xffff)...)
	for name, c := range map[string]struct {
		archive late
		says    string
	}{
		"entries": {late{0, append(short, end(1, len(short))...)}, "more than 100000 files"},
		"names":   {late{0, append(long, end(1000, len(long))...)}, "larger than 32 MB"},
		"claim":   {late{room, claims}, "more than 100000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			used := peak(func() { _, err = readTree(c.archive, c.archive.zeros+int64(len(c.archive.rest)), Limits{}) })
			expect(t, err, c.says)
			if used > 100<<20 {
				t.Errorf("took %d MB", used>>20)
			}
		})
	}
}

// late is a file that begins with many zeros.
type late struct {
	zeros int64
	rest  []byte
}

func (l late) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	before := int(min(max(0, l.zeros-off), int64(len(p))))
	n, err := bytes.NewReader(l.rest).ReadAt(p[before:], max(0, off-l.zeros))
	return before + n, err
}

func TestImpliedDirectoriesCount(t *testing.T) {
	deep := ""
	for range 60 {
		deep += "d/"
	}
	archive := zipOf(t, member{name: deep + "a", content: "A"}, member{name: "x/" + deep + "b", content: "B"})
	if _, err := unzip(archive, Limits{Entries: 123}); err != nil {
		t.Error(err)
	}
	_, err := unzip(archive, Limits{Entries: 122})
	expect(t, err, "more than 122 files and directories")
}
