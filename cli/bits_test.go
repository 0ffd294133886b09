package cli

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func packed(t *testing.T, place string) map[string]*zip.File {
	t.Helper()
	file, err := pack(place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	data, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*zip.File{}
	for _, f := range archive.File {
		all[f.Name] = f
	}
	return all
}

func content(t *testing.T, f *zip.File) string {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPackDirectory(t *testing.T) {
	root := files(t, map[string]string{"bin/run*": "go", "data/a.txt": "a", "data/skip/b.txt": "b", ".cfignore": "skip/\n*.tmp", ".proaignore": "!keep.tmp", "x.tmp": "", "keep.tmp": "k", ".git/HEAD": "", "manifest.yml": ""})
	if err := os.Symlink("bin/run", filepath.Join(root, "start")); err != nil {
		t.Fatal(err)
	}
	got := packed(t, root)
	want := map[string]fs.FileMode{"bin/": fs.ModeDir | 0o755, "bin/run": 0o755, "data/": fs.ModeDir | 0o755, "data/a.txt": 0o644, "keep.tmp": 0o644, "start": fs.ModeSymlink}
	for name, mode := range want {
		if f := got[name]; f == nil || f.Mode().Type() != mode.Type() || mode.Perm() != 0 && f.Mode().Perm() != mode.Perm() {
			t.Errorf("%s was packed as %v, want mode %v", name, f, mode)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries were packed, want %d: %v", len(got), len(want), got)
	}
	if link := content(t, got["start"]); link != "bin/run" {
		t.Errorf("the link leads to %q", link)
	}
}

func TestPackArchive(t *testing.T) {
	write := func(name string, entries ...*zip.FileHeader) string {
		file := filepath.Join(t.TempDir(), name)
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		for _, h := range entries {
			e, err := z.CreateHeader(h)
			if err != nil {
				t.Fatal(err)
			}
			if h.Name[len(h.Name)-1] != '/' {
				if _, err := e.Write([]byte("content of " + h.Name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return file
	}
	sidecar := &zip.FileHeader{Name: "sidecar", Method: zip.Deflate}
	sidecar.SetMode(0o755)
	jar := write("app.jar", &zip.FileHeader{Name: "META-INF/"}, &zip.FileHeader{Name: "META-INF/MANIFEST.MF"}, sidecar)
	got := packed(t, jar)
	if len(got) != 3 || got["sidecar"].Mode().Perm() != 0o755 || got["META-INF/MANIFEST.MF"].Mode().Perm() != 0o744 {
		t.Errorf("got %v", got)
	}
	if text := content(t, got["META-INF/MANIFEST.MF"]); text != "content of META-INF/MANIFEST.MF" {
		t.Errorf("got %q", text)
	}
	for _, name := range []string{"../evil", "/etc/passwd", `..\evil`} {
		if _, err := gather(write("bad.zip", &zip.FileHeader{Name: name})); err == nil {
			t.Errorf("an archive with the entry %q was taken", name)
		}
	}
	if _, err := gather(filepath.Join(files(t, map[string]string{"text.jar": "not a zip"}), "text.jar")); err == nil {
		t.Error("a text was taken for an archive")
	}
}
