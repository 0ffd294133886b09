package bits

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/proa-dev/proa/kit/fault"
)

// A disk is a file system as the kernel walks it, without one.
type disk map[string]string // targets of links by their place, and "" for anything else

var errOut = errors.New("out of the directory")

// walk follows a path from a directory, through links, and tells where it ends. Whatever does not exist is a directory.
func (d disk) walk(from, to string, hops int) (string, error) {
	at := from
	for step := range strings.SplitSeq(to, "/") {
		switch step {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", errOut
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, step)
		if target := d[next]; target != "" {
			if hops == 0 {
				return at, nil // the kernel gives up, too
			}
			if target[0] == '/' {
				return "", errOut
			}
			var err error
			if next, err = d.walk(at, target, hops-1); err != nil {
				return "", err
			}
		}
		at = next
	}
	return at, nil
}

// unpack does what the simplest of unpackers would, and fails where it would touch anything outside of source.
func unpack(t *testing.T, layer []byte) {
	d := disk{}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the layer cannot be read: %v", err)
		}
		if h.Mode&^0o777 != 0 || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeSymlink {
			t.Fatalf("%q has mode %o and type %c", h.Name, h.Mode, h.Typeflag)
		}
		name, inside := strings.CutPrefix(h.Name, "source/")
		if !inside {
			t.Fatalf("%q is outside", h.Name)
		}
		place, err := d.walk(".", name, 40)
		if err != nil || place != path.Clean(name) {
			t.Fatalf("%q would be written to %q: %v", name, place, err)
		}
		d[place] = h.Linkname
	}
	for place, target := range d {
		if target == "" {
			continue
		}
		if _, err := d.walk(path.Dir(place), target, 40); err != nil {
			t.Fatalf("the link %q to %q leads out", place, target)
		}
	}
}

func FuzzZip(f *testing.F) {
	f.Add(zipOf(f, member{name: "a/b", content: "B"}, member{name: "a/l", content: "../a/b", mode: fs.ModeSymlink | 0o777}))
	f.Add(zipOf(f, member{name: "d", content: ".", mode: fs.ModeSymlink | 0o777}, member{name: "e", content: "d/d/f", mode: fs.ModeSymlink | 0o777}))
	f.Add(zipOf(f, member{name: "../up", content: "x"}, member{name: "s", mode: fs.ModeSocket}))
	f.Add(overlapping(f, 3))
	f.Fuzz(func(t *testing.T, archive []byte) {
		layer, err := unzip(archive, Limits{Unpacked: 1 << 20, Entries: 1000})
		if err != nil {
			if !fault.Is(err, fault.KindUnprocessable) {
				t.Fatalf("not a sentence: %v", err)
			}
			return
		}
		unpack(t, layer)
	})
}

// FuzzNames goes for the rules themselves: one entry and two links.
func FuzzNames(f *testing.F) {
	f.Add("a/b", "a/c", "b", "d", "a/c/..")
	f.Add("x", "x/y", "..", "z", "x/../..")
	f.Fuzz(func(t *testing.T, name, one, target, other, otherTarget string) {
		for _, s := range []string{name, one, target, other, otherTarget} {
			if len(s) > 10_000 {
				return
			}
		}
		layer, err := unzip(zipOf(t,
			member{name: one, content: target, mode: fs.ModeSymlink | 0o777},
			member{name: other, content: otherTarget, mode: fs.ModeSymlink | 0o777},
			member{name: name, content: "x"}), Limits{})
		if err == nil {
			unpack(t, layer)
		}
	})
}
