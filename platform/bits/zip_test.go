package bits

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// A member is an entry of an archive, as anybody could write it.
type member struct {
	name, content string
	mode          fs.FileMode
	raw           func(*zip.FileHeader) // changes the header after all else is set: content is written as it is, stored
}

func zipOf(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: time.Now()}
		if m.mode == 0 {
			m.mode = 0o644
		}
		h.SetMode(m.mode)
		create := w.CreateHeader
		if m.raw != nil {
			h.Method, h.CRC32 = zip.Store, crc32.ChecksumIEEE([]byte(m.content))
			h.CompressedSize64, h.UncompressedSize64 = uint64(len(m.content)), uint64(len(m.content))
			m.raw(h)
			create = w.CreateRaw
		}
		f, err := create(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, m.content); err != nil && !strings.HasSuffix(m.name, "/") {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unzip(archive []byte, limits Limits) ([]byte, error) {
	tree, err := readTree(bytes.NewReader(archive), int64(len(archive)), limits)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = tree.writeTar(context.Background(), &out, "source", 2000)
	return out.Bytes(), err
}

func list(t testing.TB, layer []byte) []string {
	t.Helper()
	var lines []string
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 2000 || h.Gid != 2000 || !h.ModTime.Equal(epoch) || h.Uname != "" {
			t.Errorf("%s belongs to %d:%d, of %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		lines = append(lines, fmt.Sprintf("%c %o %s %s", h.Typeflag, h.Mode, h.Name, string(content)+h.Linkname))
	}
}

func TestArchiveBecomesATree(t *testing.T) {
	got, err := unzip(zipOf(t,
		member{name: "./"},
		member{name: "run.sh", content: "#!", mode: 0o744},
		member{name: "lib/deep/a", content: "A", mode: 0o600},
		member{name: "lib/", mode: fs.ModeDir | 0o700},
		member{name: "lib/", mode: fs.ModeDir | 0o700},
		member{name: "bin/up", content: "../run.sh", mode: fs.ModeSymlink | 0o777},
		member{name: "bin/root", content: "../", mode: fs.ModeSymlink | 0o777},
		member{name: "dangling", content: "no/such", mode: fs.ModeSymlink | 0o777},
		member{name: "suid", content: "s", mode: fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky | 0o755},
		member{name: "Größe\n", content: "", mode: 0o666},
		member{name: "empty/", mode: fs.ModeDir | 0o777},
		member{name: strings.Repeat("n", 255) + "/" + strings.Repeat("m", 255), content: "long"},
	), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"5 755 source/ ", "0 644 source/Größe\n ", "5 755 source/bin/ ", "2 777 source/bin/root ../", "2 777 source/bin/up ../run.sh", "2 777 source/dangling no/such",
		"5 755 source/empty/ ", "5 755 source/lib/ ", "5 755 source/lib/deep/ ", "0 644 source/lib/deep/a A",
		"5 755 source/" + strings.Repeat("n", 255) + "/ ", "0 644 source/" + strings.Repeat("n", 255) + "/" + strings.Repeat("m", 255) + " long",
		"0 755 source/run.sh #!", "0 755 source/suid s",
	}
	lines := list(t, got)
	if strings.Join(lines, "|") != strings.Join(want, "|") {
		t.Errorf("got\n%q\nwant\n%q", lines, want)
	}
}

func TestSameContentIsTheSameLayer(t *testing.T) {
	one, err := unzip(zipOf(t, member{name: "a", content: "A", mode: 0o644}, member{name: "d/b", content: "B"}, member{name: "d/", mode: fs.ModeDir | 0o755}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := unzip(zipOf(t, member{name: "d/b", content: "B", mode: 0o600}, member{name: "./a", content: "A", raw: func(*zip.FileHeader) {}}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) {
		t.Error("order, times, modes beyond x and compression must not change the layer")
	}
}

func TestHostileArchives(t *testing.T) {
	file := func(name string) []member { return []member{{name: name, content: "x"}} }
	link := func(name, target string) member {
		return member{name: name, content: target, mode: fs.ModeSymlink | 0o777}
	}
	raw := func(change func(*zip.FileHeader)) []member {
		return []member{{name: "victim", content: "content", raw: change}}
	}
	ok := member{name: "ok", content: "ok"}
	for name, c := range map[string]struct {
		members []member
		says    string
	}{
		"empty":                   {nil, "holds no files"},
		"only directories":        {[]member{{name: "a/", mode: fs.ModeDir}}, "holds no files"},
		"no name":                 {file(""), "without a name"},
		"up":                      {file("../evil"), `"../evil" leads out`},
		"up inside":               {file("a/../../evil"), "leads out"},
		"up and back":             {file("a/../b"), "leads out"},
		"absolute":                {file("/etc/passwd"), `"/etc/passwd" has an absolute name`},
		"backslash":               {file(`..\evil`), `"..\\evil" has a backslash`},
		"drive":                   {file("C:/evil"), "drive letter"},
		"zero byte":               {file("a\x00b"), `"a\x00b" has a zero byte`},
		"not utf-8":               {file("a\xff"), "not UTF-8"},
		"long":                    {file(strings.Repeat("abcdefgh/", 500)), "more than 3840 bytes"},
		"long step":               {file(strings.Repeat("a", 256)), "more than 255 bytes"},
		"whiteout":                {file("a/.wh..wh..opq"), "file is deleted"},
		"root as file":            {[]member{{name: ".", content: "x"}}, "in place of the app's directory"},
		"twice":                   {[]member{{name: "a", content: "1"}, {name: "./a", content: "2"}}, `"a" is in the archive more than once`},
		"file then directory":     {[]member{{name: "a", content: "1"}, {name: "a/", mode: fs.ModeDir}}, "more than once"},
		"implied then file":       {[]member{{name: "a/b", content: "1"}, {name: "a", content: "2"}}, "more than once"},
		"below a file":            {[]member{{name: "a", content: "1"}, {name: "a/b", content: "2"}}, `is below "a", which is a file`},
		"link and file":           {[]member{link("a", "b"), {name: "a", content: "2"}}, "more than once"},
		"through a link":          {[]member{link("a", "b"), {name: "a/c", content: "2"}}, `through the symbolic link "a"`},
		"through a link, reverse": {[]member{{name: "a/c", content: "2"}, link("a", "b")}, "more than once"},
		"absolute link":           {[]member{link("a", "/etc")}, "absolute path"},
		"link out":                {[]member{link("a", "..")}, "leads out"},
		"deep link out":           {[]member{link("d/e/a", "../../../etc")}, "leads out"},
		"link down, up":           {[]member{link("d", "."), link("e", "d/..")}, "leads out"},
		"link chain":              {[]member{{name: "x/y/z", content: ""}, link("x/d", "y/z"), link("x/e", "d/../..")}, "down and up"},
		"link without target":     {[]member{link("a", "")}, "broken target"},
		"link with zero":          {[]member{link("a", "b\x00")}, "broken target"},
		"link too long":           {[]member{link("a", strings.Repeat("b", 4000))}, "more than 3840 bytes"},
		"device":                  {[]member{ok, {name: "null", mode: fs.ModeDevice | fs.ModeCharDevice | 0o666}}, `"null" is neither`},
		"pipe":                    {[]member{ok, {name: "pipe", mode: fs.ModeNamedPipe | 0o666}}, "is neither"},
		"socket":                  {[]member{ok, {name: "sock", mode: fs.ModeSocket | 0o666}}, "is neither"},
		"link and directory":      {[]member{ok, {name: "ld/", mode: fs.ModeSymlink | 0o777}}, "is neither"},
		"encrypted":               {raw(func(h *zip.FileHeader) { h.Flags |= 1 }), "is encrypted"},
		"method":                  {raw(func(h *zip.FileHeader) { h.Method = 12 }), "method 12"},
		"crc":                     {raw(func(h *zip.FileHeader) { h.CRC32++ }), "checksum is wrong"},
		"two sizes":               {raw(func(h *zip.FileHeader) { h.UncompressedSize64++ }), "has two sizes"},
		"not deflate":             {[]member{{name: "victim", content: "\xff\xff", raw: func(h *zip.FileHeader) { h.Method = zip.Deflate }}}, "damaged and cannot"},
		"beyond the end":          {raw(func(h *zip.FileHeader) { h.UncompressedSize64, h.CompressedSize64 = 1<<20, 1<<20 }), "overlap"},
		"ratio":                   {raw(func(h *zip.FileHeader) { h.Method, h.UncompressedSize64 = zip.Deflate, 17<<20 }), "more than 200 times"},
		"huge":                    {raw(func(h *zip.FileHeader) { h.Method, h.UncompressedSize64 = zip.Deflate, 1<<63 }), "unpacks to more than 4 GB"},
		"directory with content":  {[]member{ok, {name: "d/", content: "boo", mode: fs.ModeDir | 0o755, raw: func(*zip.FileHeader) {}}}, "directory with content"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unzip(zipOf(t, c.members...), Limits{})
			expect(t, err, c.says)
		})
	}
}

// expect wants a sentence that people may read.
func expect(t testing.TB, err error, says string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.KindUnprocessable || !strings.Contains(f.Detail, says) || !strings.HasSuffix(f.Detail, ".") {
		t.Fatalf("got %v, want a sentence with %q", err, says)
	}
	if len(f.Detail) > 400 || strings.ContainsFunc(f.Detail, func(r rune) bool { return r < ' ' }) {
		t.Errorf("the sentence carries too much of a name: %q", f.Detail)
	}
}

func TestNoArchive(t *testing.T) {
	whole := zipOf(t, member{name: "a", content: "A"})
	for name, upload := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "cut": whole[:len(whole)-5], "head gone": whole[20:]} {
		_, err := unzip(upload, Limits{})
		if name == "head gone" {
			expect(t, err, "")
			continue
		}
		expect(t, err, "not a zip archive")
	}
	_, err := unzip(whole, Limits{Upload: 10})
	expect(t, err, "larger than 10 bytes")
}

// failing is a disk that does not give back what was written to it.
type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, os.ErrInvalid }

func TestStorageFailureIsNotTheUsersFault(t *testing.T) {
	if _, err := readTree(failing{}, 1000, Limits{}); !errors.Is(err, os.ErrInvalid) || fault.From(err).Kind != fault.KindInternal {
		t.Fatalf("got %v", err)
	}
}

// peak runs do and tells how much more heap than before was in use while it ran.
func peak(do func()) uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	<-ended
	return most - min(most, before)
}
