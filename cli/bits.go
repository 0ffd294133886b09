package cli

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// bits is what is uploaded of an app: the content of a directory or of an archive.
type bits struct {
	items []item
	close func() error
}

// item is one entry of the zip.
type item struct {
	name     string // with slashes; a directory ends in one
	mode     fs.FileMode
	modified time.Time
	open     func() (io.ReadCloser, error) // nil for a directory
}

// gather lists what is to be uploaded from a directory, or from a .jar, .war or .zip.
func gather(place string) (*bits, error) {
	info, err := os.Stat(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage("There is nothing at %s. Check -p, or path in the manifest.", place)
	}
	if err != nil {
		return nil, err
	}
	var b *bits
	if info.IsDir() {
		b, err = gatherDirectory(place)
	} else {
		b, err = gatherArchive(place)
	}
	if err != nil {
		return nil, err
	}
	for _, i := range b.items {
		if i.open != nil {
			return b, nil
		}
	}
	return nil, errors.Join(usage("There is nothing to upload in %s. Check -p, and the ignore files there.", place), b.close())
}

func gatherDirectory(root string) (*bits, error) {
	b := &bits{close: func() error { return nil }}
	rules := parseIgnore(alwaysIgnored)
	for _, name := range ignoreFiles {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		rules = append(rules, parseIgnore(string(text))...)
	}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == root {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		if rules.decide(name, d.IsDir()) { // its parents were walked into, so they are not left out
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if i, ok := fileItem(file, name, info); ok {
			b.items = append(b.items, i)
		}
		return nil
	})
	return b, err
}

// fileItem is the entry of a file, directory or link; a socket or a device cannot be uploaded.
func fileItem(file, name string, info fs.FileInfo) (item, bool) {
	i := item{name: name, mode: info.Mode(), modified: info.ModTime()}
	switch {
	case info.IsDir():
		i.name += "/"
	case info.Mode()&fs.ModeSymlink != 0:
		i.open = func() (io.ReadCloser, error) {
			target, err := os.Readlink(file)
			return io.NopCloser(strings.NewReader(filepath.ToSlash(target))), err
		}
	case info.Mode().IsRegular():
		i.open = func() (io.ReadCloser, error) { return os.Open(file) }
	default:
		return i, false
	}
	return i, true
}

const unixCreator = 3

func gatherArchive(file string) (*bits, error) {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, usage("%s is neither a directory nor a zip, jar or war file (%v).", file, err)
	}
	b := &bits{close: archive.Close}
	rules := parseIgnore(alwaysIgnored)
	for _, name := range ignoreFiles {
		if text, err := fs.ReadFile(archive, name); err == nil {
			rules = append(rules, parseIgnore(string(text))...)
		}
	}
	for _, f := range archive.File {
		name := strings.TrimSuffix(f.Name, "/")
		if name == "" || path.IsAbs(name) || strings.Contains(name, `\`) || !fs.ValidPath(path.Clean(name)) {
			return nil, errors.Join(usage("%s holds an entry with the name %q, which would lie outside of the app.", file, f.Name), archive.Close())
		}
		if rules.ignores(name, f.FileInfo().IsDir()) {
			continue
		}
		b.items = append(b.items, archiveItem(f))
	}
	return b, nil
}

// archiveItem keeps the mode that an entry has on Unix, and lets the owner read, write and run it: other tools note no mode at all.
func archiveItem(f *zip.File) item {
	i := item{name: f.Name, mode: 0o744, modified: f.Modified, open: f.Open}
	switch {
	case f.FileInfo().IsDir():
		i.mode, i.open = fs.ModeDir|0o755, nil
	case f.CreatorVersion>>8 == unixCreator:
		i.mode = f.Mode()&(fs.ModeSymlink|fs.ModePerm) | 0o744
	}
	return i
}

// zip writes the entries one after the other; nothing is held in memory.
func (b *bits) zip(w io.Writer) error {
	z := zip.NewWriter(w)
	for _, i := range b.items {
		if err := i.write(z); err != nil {
			return fmt.Errorf("pack %s: %w", i.name, err)
		}
	}
	return z.Close()
}

func (i item) write(z *zip.Writer) error {
	header := &zip.FileHeader{Name: i.name, Modified: i.modified, Method: zip.Deflate}
	header.SetMode(i.mode)
	if i.open == nil {
		header.Method = zip.Store
	}
	entry, err := z.CreateHeader(header)
	if err != nil || i.open == nil {
		return err
	}
	content, err := i.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, content)
	return errors.Join(err, content.Close())
}
