package bits

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proa-dev/proa/kit/fault"
)

// putImage pushes a small image with these settings, and answers its name.
func putImage(t testing.TB, r *Registry, path string, config v1.Config, kind types.MediaType) string {
	t.Helper()
	layer := types.DockerLayer
	if kind == types.OCIManifestSchema1 {
		layer = types.OCILayer
	}
	l, err := spool(t.TempDir(), "base", func(w io.Writer) error {
		out := tar.NewWriter(w)
		return errors.Join(out.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeDir, Mode: 0o755}), out.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.media = layer
	image, err := mutate.Append(mutate.MediaType(empty.Image, kind), mutate.Addendum{Layer: l})
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", Config: config, RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{l.diffID}}})
	if err != nil {
		t.Fatal(err)
	}
	if kind == types.OCIManifestSchema1 {
		image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	}
	ref, err := name.NewTag(theEngine(t).address + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, r.options(t.Context(), ref.Context())...); err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}

func packer(t testing.TB, kind types.MediaType) (*Packer, *traffic) {
	t.Helper()
	r, seen := here(t)
	base := putImage(t, r, "base/"+newApp(), v1.Config{User: "2000", Env: []string{"HOME=/home/vcap"}, Labels: map[string]string{"io.buildpacks.stack.id": "tiny"}}, kind)
	seen.since()
	return &Packer{Registry: r, Base: base, Dir: t.TempDir()}, seen
}

func upload(t testing.TB, p *Packer, app string, archive []byte) Package {
	t.Helper()
	made, err := p.Upload(t.Context(), app, bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func get(t testing.TB, r *Registry, image string) (v1.Image, *v1.ConfigFile) {
	t.Helper()
	ref, err := name.NewDigest(image)
	if err != nil {
		t.Fatal(err)
	}
	found, config, err := look(ref, r.options(t.Context(), ref.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return found, config
}

func TestUpload(t *testing.T) {
	for _, kind := range []types.MediaType{types.DockerManifestSchema2, types.OCIManifestSchema1} {
		t.Run(string(kind), func(t *testing.T) {
			p, seen := packer(t, kind)
			app, big := newApp(), strings.Repeat("x", 1<<20)
			first := upload(t, p, app, zipOf(t, member{name: "a", content: "one"}, member{name: "b/c", content: big}))
			if got := seen.since(); got != "2 blobs, 1 mounts, 1 manifests" { // the layer and the settings
				t.Errorf("a first upload sends %s", got)
			}
			image, config := get(t, p.Registry, first.Image)
			layers, err := image.Layers()
			if err != nil || len(layers) != 2 || len(config.RootFS.DiffIDs) != 2 || config.Config.User != "2000" {
				t.Fatalf("the image has %d layers and the settings %+v: %v", len(layers), config, err)
			}
			if media, err := layers[1].MediaType(); err != nil || strings.Contains(string(media), "docker") != strings.Contains(string(kind), "docker") {
				t.Errorf("a layer of %s in an image of %s: %v", media, kind, err)
			}
			stream, err := layers[1].Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(stream)
			if err != nil {
				t.Fatal(err)
			}
			if got := list(t, text); len(got) != 4 || got[1] != "0 644 source/a one" {
				t.Errorf("the layer holds %d entries", len(got))
			}
			again := upload(t, p, app, zipOf(t, member{name: "b/c", content: big}, member{name: "a", content: "one"}))
			if got := seen.since(); got != "0 blobs, 0 mounts, 0 manifests" || again != first {
				t.Errorf("the same content sends %s, and is %+v after %+v", got, again, first)
			}
			changed := upload(t, p, app, zipOf(t, member{name: "a", content: "two"}, member{name: "b/c", content: big}))
			if got := seen.since(); got != "2 blobs, 0 mounts, 1 manifests" || changed.Image == first.Image {
				t.Errorf("a changed line sends %s", got)
			}
			if left, err := os.ReadDir(p.Dir); err != nil || len(left) != 0 {
				t.Errorf("files are left: %v %v", left, err)
			}
		})
	}
}

func TestUploadEnds(t *testing.T) {
	p, seen := packer(t, types.DockerManifestSchema2)
	archive := zipOf(t, member{name: "a", content: "A"})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Upload(gone, newApp(), bytes.NewReader(archive), int64(len(archive))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the caller has gone", err)
	}
	if _, err := p.Upload(t.Context(), "../droplets/x", bytes.NewReader(archive), int64(len(archive))); err == nil {
		t.Error("an app's guid must not be a path")
	}
	bad := zipOf(t, member{name: "../a", content: "A"})
	_, err := p.Upload(t.Context(), newApp(), bytes.NewReader(bad), int64(len(bad)))
	expect(t, err, "leads out")
	if got := seen.since(); got != "0 blobs, 0 mounts, 0 manifests" {
		t.Errorf("refused uploads send %s", got)
	}
}

func TestUploadsHoldNoMemory(t *testing.T) {
	p, _ := packer(t, types.DockerManifestSchema2)
	archive := noise(t, 20, 1, func(*zip.FileHeader) {})
	used := peak(func() { upload(t, p, newApp(), archive) })
	if used > 12<<20 {
		t.Errorf("an upload of %d MB takes %d MB of memory", len(archive)>>20, used>>20)
	}
}

// noise is an archive with so many files of a megabyte, of which a part does not compress.
func noise(t testing.TB, files, part int, raw func(*zip.FileHeader)) []byte {
	t.Helper()
	random := rand.NewChaCha8([32]byte{})
	content := make([]byte, 1<<20)
	var members []member
	for n := range files {
		_, _ = random.Read(content[:len(content)/part])
		members = append(members, member{name: "f/" + strings.Repeat("n", n+1), content: string(content), raw: raw})
	}
	return zipOf(t, members...)
}

func BenchmarkUpload(b *testing.B) {
	p, _ := packer(b, types.DockerManifestSchema2)
	archive := noise(b, 200, 2, nil)
	b.SetBytes(200 << 20)
	for b.Loop() {
		upload(b, p, newApp(), archive)
	}
}

func BenchmarkLayer(b *testing.B) {
	archive := noise(b, 200, 2, nil)
	b.SetBytes(200 << 20)
	for b.Loop() {
		tree, err := readTree(bytes.NewReader(archive), int64(len(archive)), Limits{})
		if err != nil {
			b.Fatal(err)
		}
		l, err := spool(b.TempDir(), "", func(w io.Writer) error { return tree.writeTar(b.Context(), w, "source", 2000) })
		if err != nil {
			b.Fatal(err)
		}
		l.close()
	}
}

func TestRunImage(t *testing.T) {
	for _, kind := range []types.MediaType{types.DockerManifestSchema2, types.OCIManifestSchema1} {
		t.Run(string(kind), func(t *testing.T) {
			p, seen := packer(t, kind)
			programs := ours(t, p.Base)
			image, err := p.Registry.RunImage(t.Context(), p.Base, programs)
			if err != nil {
				t.Fatal(err)
			}
			if got := seen.since(); got != "2 blobs, 1 mounts, 1 manifests" {
				t.Errorf("making it sends %s", got)
			}
			if err := os.Chtimes(programs.Launcher, time.Now(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			again, err := p.Registry.RunImage(t.Context(), p.Base, programs)
			if got := seen.since(); err != nil || again != image || got != "0 blobs, 0 mounts, 0 manifests" {
				t.Errorf("again it is %s after %s, and sends %s: %v", again, image, got, err)
			}
			made, config := get(t, p.Registry, image)
			if c := config.Config; c.User != "2000" || c.Labels["io.buildpacks.stack.id"] != "tiny" || !slices.Equal(c.Env, []string{"HOME=/home/vcap"}) || config.OS != "linux" {
				t.Errorf("the settings became %+v", config)
			}
			layers, err := made.Layers()
			if err != nil {
				t.Fatal(err)
			}
			stream, err := layers[1].Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			r := tar.NewReader(stream)
			_, _ = r.Next()
			for _, path := range []string{LauncherPath, SFTPPath} {
				h, err := r.Next()
				if err != nil || "/"+h.Name != path || h.Mode != 0o755 || h.Uid != 0 {
					t.Errorf("the program is %+v: %v", h, err)
				}
				if content, err := io.ReadAll(r); err != nil || string(content) != "#!"+path[1:]+p.Base {
					t.Errorf("%s holds %q, %v", path, content, err)
				}
			}
		})
	}
}

// ours are programs that nobody else has.
func ours(t *testing.T, mark string) Programs {
	t.Helper()
	dir := t.TempDir()
	p := Programs{Launcher: filepath.Join(dir, "launcher"), SFTP: filepath.Join(dir, "sftp")}
	for file, path := range map[string]string{p.Launcher: LauncherPath, p.SFTP: SFTPPath} {
		if err := os.WriteFile(file, []byte("#!"+path[1:]+mark), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestRunImageNeedsItsParts(t *testing.T) {
	p, _ := packer(t, types.DockerManifestSchema2)
	for _, wrong := range []Programs{{}, {Launcher: t.TempDir(), SFTP: ours(t, "").SFTP}, {Launcher: ours(t, "").Launcher}} {
		if _, err := p.Registry.RunImage(t.Context(), p.Base, wrong); err == nil {
			t.Errorf("%+v are no programs", wrong)
		}
	}
	_, err := p.Registry.RunImage(t.Context(), p.Base+"-none", ours(t, ""))
	if !fault.Is(err, fault.KindUnavailable) || !strings.Contains(fault.From(err).Detail, "does not have the stack's image") {
		t.Errorf("got %v", err)
	}
}

func TestCopyAndDelete(t *testing.T) {
	p, seen := packer(t, types.DockerManifestSchema2)
	r := p.Registry
	made := upload(t, p, newApp(), zipOf(t, member{name: "a", content: "A"}))
	seen.since()
	copied, err := r.Copy(t.Context(), made.Image, newApp())
	if err != nil {
		t.Fatal(err)
	}
	if got := seen.since(); got != "0 blobs, 3 mounts, 1 manifests" {
		t.Errorf("a copy sends %s", got)
	}
	for range 2 {
		if err := r.Delete(t.Context(), made.Image); err != nil {
			t.Fatal(err)
		}
	}
	get(t, r, copied)
	if _, err := r.Copy(t.Context(), made.Image, newApp()); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("a deleted image can be copied: %v", err)
	}
	for _, image := range []string{copied[:strings.Index(copied, "@")], "example.org/a@" + made.Digest, strings.Replace(copied, "/proa/", "/other/", 1)} {
		if err := r.Delete(t.Context(), image); err == nil {
			t.Errorf("%s must not be deleted", image)
		}
	}
}
