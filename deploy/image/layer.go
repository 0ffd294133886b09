package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// epoch is the time of everything in an image: the same the lifecycle gives to the layers it makes.
var epoch = time.Date(1980, time.January, 1, 0, 0, 1, 0, time.UTC)

// A layer is a compressed archive in the cache.
type layer struct {
	name  string   // what the cache calls it
	about string   // for the image's history
	from  []string // all that its content depends on, besides layer.go
	write func(context.Context, *archive) error
	cache cache
}

// print is the fingerprint of the layer's recipe.
func (l layer) print() string { return fingerprint(append(l.from, source("layer.go"))...) }

// file gives the archive, made if need be.
func (l layer) file(ctx context.Context) (string, error) {
	return l.cache.file("layers/"+l.name+"-"+l.print()+".tar.gz", func(w io.Writer) error {
		since := time.Now()
		say("Making the layer %s.", l.name)
		// Layers are made and unpacked more often than they travel far.
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		a := &archive{tar: tar.NewWriter(z), dirs: map[string]bool{}}
		if err := errors.Join(l.write(ctx, a), a.tar.Close(), z.Close()); err != nil {
			return fmt.Errorf("layer %s: %w", l.name, err)
		}
		say("Made the layer %s in %.0f s.", l.name, time.Since(since).Seconds())
		return nil
	})
}

// An archive is a tar file whose bytes depend on its content alone. Names are given without a leading slash.
type archive struct {
	tar  *tar.Writer
	dirs map[string]bool
}

func (a *archive) add(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		if a.dirs[h.Name] {
			return nil
		}
		a.dirs[h.Name] = true
	}
	if parent := path.Dir(h.Name); parent != "." {
		if err := a.dir(parent, 0); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeDir {
		h.Name += "/"
	}
	h.ModTime, h.Format = epoch, tar.FormatPAX
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	_, err := io.Copy(a.tar, content)
	return err
}

func (a *archive) dir(name string, owner int) error {
	return a.add(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, Uid: owner, Gid: owner}, nil)
}

func (a *archive) text(name, content string) error {
	return a.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}, strings.NewReader(content))
}

func (a *archive) link(name, target string) error {
	return a.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (a *archive) file(name, from string, mode int64) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size()}, f)
}

// system adds a whole root filesystem as it is: owners, modes, and files of several names.
func (a *archive) system(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	seen := map[uint64]string{}
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if target, err = root.Readlink(name); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, target)
		if err != nil {
			return err
		}
		h.Name, h.Uname, h.Gname, h.AccessTime, h.ChangeTime = name, "", "", time.Time{}, time.Time{}
		if !info.Mode().IsRegular() {
			return a.add(h, nil)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			if first, found := seen[st.Ino]; found {
				h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
				return a.add(h, nil)
			}
			seen[st.Ino] = name
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return a.add(h, f)
	})
}

// files lists the files below dir, in order, by their names relative to it.
func files(dir string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}
