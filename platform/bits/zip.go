package bits

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
)

// Limits are how much an upload may hold. A zero means the default.
type Limits struct {
	Upload   int64 // bytes of the archive; 1 GiB
	Unpacked int64 // bytes of all files; 4 GiB
	Entries  int   // files, links and directories, with those that are only implied; 100,000
}

func (l Limits) filled() Limits {
	if l.Upload == 0 {
		l.Upload = 1 << 30
	}
	if l.Unpacked == 0 {
		l.Unpacked = 4 << 30
	}
	if l.Entries == 0 {
		l.Entries = 100_000
	}
	return l
}

// What no honest file of this size does: shrink to less than a 200th. Deflate ends near a 1000th.
const (
	bombSize  = 16 << 20
	bombRatio = 200
)

// An entry is a file, a link or a directory of the app.
type entry struct {
	name string // clean, and no other has it
	kind fs.FileMode
	file *zip.File // none: a directory that only the names of others imply
}

// A tree is what an archive unpacks to. Files are read only when the layer is written; until then this is the archive's
// word, and writing holds each file to it.
type tree struct {
	limits  Limits
	guard   *guard
	entries []entry
	at      map[string]int // index in entries
	size    int64          // of all files
	packed  int64          // of all entries in the archive
	files   int
}

// readTree reads the list of an archive, and refuses the archive if anything in it breaks a rule.
func readTree(in io.ReaderAt, size int64, limits Limits) (*tree, error) {
	limits = limits.filled()
	if size > limits.Upload {
		return nil, fault.Unprocessable("The upload is larger than %s. Leave out what the app does not need, with a .cfignore file.", inUnits(limits.Upload))
	}
	// The search for the list's end sees a part of the list twice, so the guard lets some more through than fit.
	g := &guard{in: in, size: size, max: limits.Entries + 4096, listing: true}
	archive, err := zip.NewReader(g, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are judged here
		return nil, g.unreadable(err, limits)
	}
	g.listing = false
	t := &tree{limits: limits, guard: g, at: make(map[string]int, len(archive.File))}
	for _, f := range archive.File {
		if err := t.add(f); err != nil {
			return nil, err
		}
	}
	if t.files == 0 {
		return nil, fault.Unprocessable("The archive holds no files. Push a directory with an app in it.")
	}
	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return t, nil
}

func (g *guard) unreadable(err error, limits Limits) error {
	switch {
	case g.failed != nil:
		return g.failed
	case errors.Is(err, errManyEntries):
		return tooMany(limits)
	case errors.Is(err, errLongList):
		return fault.Unprocessable("The archive's list of entries is larger than %s. Push fewer files, or shorten their names.", inUnits(maxDirectory))
	}
	return fault.Unprocessable("The upload is not a zip archive, or a part of it is missing. Push again.").Because(err)
}

func tooMany(limits Limits) error {
	return fault.Unprocessable("The archive holds more than %d files and directories. Leave out what the app does not need, with a .cfignore file.", limits.Entries)
}

func (t *tree) add(f *zip.File) error {
	name, err := cleanName(f.Name)
	if err != nil {
		return err
	}
	if err := t.weigh(f); err != nil {
		return err
	}
	kind := f.Mode().Type()
	switch kind {
	case fs.ModeDir:
		if f.UncompressedSize64 > 0 {
			return refuse(f.Name, "is a directory with content. Make the archive again")
		}
		if name == "." {
			return nil
		}
	case fs.ModeSymlink:
		if f.UncompressedSize64 > maxName {
			return refuse(f.Name, "is a symbolic link with a target of more than %d bytes. Shorten it", maxName)
		}
	case 0:
	default:
		return refuse(f.Name, "is neither a file nor a directory nor a symbolic link. Leave it out")
	}
	if name == "." {
		return refuse(f.Name, "is a file in place of the app's directory")
	}
	if err := t.addParents(name, f.Name); err != nil {
		return err
	}
	return t.put(entry{name: name, kind: kind, file: f})
}

// weigh holds an entry against the rules for content, by what the archive says of it.
func (t *tree) weigh(f *zip.File) error {
	const encrypted = 1 | 1<<6 | 1<<13
	switch {
	case f.Flags&encrypted != 0:
		return refuse(f.Name, "is encrypted. Make the archive without a password")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return refuse(f.Name, "is compressed with method %d. Make the archive with deflate", f.Method)
	case f.Method == zip.Store && f.CompressedSize64 != f.UncompressedSize64:
		return refuse(f.Name, "has two sizes. Make the archive again")
	case f.UncompressedSize64 > uint64(t.limits.Unpacked-t.size):
		return fault.Unprocessable("The archive unpacks to more than %s. Leave out what the app does not need, with a .cfignore file.", inUnits(t.limits.Unpacked))
	case f.UncompressedSize64 > bombSize && f.UncompressedSize64/bombRatio > f.CompressedSize64:
		return refuse(f.Name, "unpacks to more than %d times its size, as only archives do that are meant to do harm", bombRatio)
	case f.CompressedSize64 > uint64(t.guard.size-t.packed):
		return fault.Unprocessable("Entries of the archive overlap. Make the archive again.")
	}
	t.size += int64(f.UncompressedSize64)
	t.packed += int64(f.CompressedSize64)
	return nil
}

// addParents adds the directories above a name, the nearest first, up to one that is there.
func (t *tree) addParents(name, raw string) error {
	for {
		end := strings.LastIndexByte(name, '/')
		if end < 0 {
			return nil
		}
		name = name[:end]
		n, found := t.at[name]
		if found {
			switch t.entries[n].kind {
			case fs.ModeDir:
				return nil
			case fs.ModeSymlink:
				return refuse(raw, "would be written through the symbolic link %s", shown(name))
			}
			return refuse(raw, "is below %s, which is a file", shown(name))
		}
		if err := t.put(entry{name: name, kind: fs.ModeDir}); err != nil {
			return err
		}
	}
}

// put adds an entry under its name. A directory may be named again; anything else twice is a riddle: unpackers do not agree
// which of the two counts.
func (t *tree) put(e entry) error {
	if n, found := t.at[e.name]; found {
		if there := t.entries[n].kind; there != e.kind || e.kind != fs.ModeDir {
			return refuse(e.name, "is in the archive more than once. Make the archive again")
		}
		return nil
	}
	if len(t.entries) >= t.limits.Entries {
		return tooMany(t.limits)
	}
	if e.kind != fs.ModeDir {
		t.files++
	}
	t.at[e.name] = len(t.entries)
	t.entries = append(t.entries, e)
	return nil
}
