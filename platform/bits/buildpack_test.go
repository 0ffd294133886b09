package bits

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// known goes to the registry with an account, as if it asked for none.
type known struct {
	http.RoundTripper
	password string
}

func (k known) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.SetBasicAuth("proa", k.password)
	return k.RoundTripper.RoundTrip(req)
}

// open is a registry where users' images need no account.
func open(t testing.TB) (*Registry, *traffic) {
	r, seen := here(t)
	r.Public = known{seen.inner, r.Password}
	return r, seen
}

type labels map[string]string

// says are the labels of an image with buildpacks, named ID@version. The first is what it stands for.
func says(ids ...string) labels {
	id, version, _ := strings.Cut(ids[0], "@")
	l := labels{"io.buildpacks.buildpackage.metadata": fmt.Sprintf(`{"id":%q,"version":%q,"stacks":[{"id":"*"}]}`, id, version)}
	var parts []string
	for _, part := range ids {
		id, version, _ := strings.Cut(part, "@")
		parts = append(parts, fmt.Sprintf(`%q:{%q:{"api":"0.10","layerDiffID":"sha256:0"}}`, id, version))
	}
	l["io.buildpacks.buildpack.layers"] = "{" + strings.Join(parts, ",") + "}"
	return l
}

// putBuildpack pushes an image with one layer, whose files hold their own names.
func putBuildpack(t testing.TB, r *Registry, l labels, entries ...tar.Header) string {
	t.Helper()
	made, err := spool(t.TempDir(), "buildpack", func(w io.Writer) error {
		out := tar.NewWriter(w)
		for _, h := range entries {
			if h.Typeflag == tar.TypeReg || h.Typeflag == 0 {
				h.Size = int64(len(h.Name))
			}
			if err := out.WriteHeader(&h); err != nil {
				return err
			}
			if h.Size > 0 {
				if _, err := io.WriteString(out, h.Name); err != nil {
					return err
				}
			}
		}
		return out.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	made.media = types.OCILayer
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: made})
	if err != nil {
		t.Fatal(err)
	}
	return putLabelled(t, r, image, l)
}

func putLabelled(t testing.TB, r *Registry, image v1.Image, l labels) string {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.Config.Labels = l
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(theEngine(t).address + "/team/" + newApp())
	if err := errors.Join(err, remote.Write(ref, image, r.options(t.Context(), ref.Context())...)); err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}

func dir(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o700} }
func reg(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

// aBuilder is one with the buildpack proa/go@1.0.
func aBuilder(t testing.TB, r *Registry) Builder {
	t.Helper()
	image := putImage(t, r, "proa/builder-"+newApp(), v1.Config{User: "2000:2000", Labels: labels{"io.buildpacks.builder.metadata": `{"buildpacks":[{"id":"proa/go","version":"1.0"}]}`}}, types.DockerManifestSchema2)
	b, err := r.Builder(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCustomBuilder(t *testing.T) {
	r, seen := open(t)
	builder, app := aBuilder(t, r), newApp()
	tool := "/cnb/buildpacks/team_tool/0.1/"
	first := putBuildpack(t, r, says("team/tool@0.1", "proa/go@1.0", "team/part@2"),
		dir("/cnb"), dir("/cnb/buildpacks"), dir("/cnb/buildpacks/team_tool"), dir(tool), reg(tool+"buildpack.toml"),
		tar.Header{Typeflag: tar.TypeReg, Name: tool + "bin/main", Mode: 0o6700, Uid: 7, Gid: 7, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"}},
		link(tool+"bin/build", "main"), link(tool+"bin/top", "../buildpack.toml"),
		reg("/cnb/buildpacks/proa_go/1.0/buildpack.toml"), reg("/cnb/buildpacks/team_part/2/buildpack.toml"))
	second := putBuildpack(t, r, says("team/other@3", "team/part@2"), reg("cnb/buildpacks/team_other/3/buildpack.toml"), reg("cnb/buildpacks/team_part/2/evil"))
	seen.since()
	image, ids, err := r.CustomBuilder(t.Context(), app, builder, []string{second, first})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ids, []string{"team/other@3", "team/tool@0.1"}) || !strings.HasPrefix(image, r.Prefix+"/builders/"+app+"@sha256:") {
		t.Errorf("it is %s with %v", image, ids)
	}
	if got := seen.since(); got != "2 blobs, 1 mounts, 1 manifests" {
		t.Errorf("sent were %s", got)
	}
	want := []string{
		"cnb/buildpacks/team_other/ 755", "cnb/buildpacks/team_other/3/ 755", "cnb/buildpacks/team_other/3/buildpack.toml 644",
		"cnb/buildpacks/team_part/ 755", "cnb/buildpacks/team_part/2/ 755", "cnb/buildpacks/team_part/2/evil 644",
		"cnb/buildpacks/team_tool/ 755", "cnb/buildpacks/team_tool/0.1/ 755", "cnb/buildpacks/team_tool/0.1/buildpack.toml 644",
		"cnb/buildpacks/team_tool/0.1/bin/ 755", "cnb/buildpacks/team_tool/0.1/bin/main 755",
		"cnb/buildpacks/team_tool/0.1/bin/build 777 main", "cnb/buildpacks/team_tool/0.1/bin/top 777 ../buildpack.toml",
	}
	if got := lastLayer(t, r, image); !slices.Equal(got, want) {
		t.Errorf("it holds\n%s", strings.Join(got, "\n"))
	}
	if again, _, err := r.CustomBuilder(t.Context(), app, builder, []string{second, first}); err != nil || again != image {
		t.Errorf("again it is %s: %v", again, err)
	}
	if got := seen.since(); got != "0 blobs, 0 mounts, 0 manifests" {
		t.Errorf("sent again were %s", got)
	}
	_, _, err = r.CustomBuilder(t.Context(), app, builder, slices.Repeat([]string{first}, 2))
	expect(t, err, "holds the buildpack team/tool@0.1, which is there already")
	_, _, err = r.CustomBuilder(t.Context(), app, builder, slices.Repeat([]string{first}, 11))
	expect(t, err, "more than 10 images")
	r.Public = nil
	_, _, err = r.CustomBuilder(t.Context(), app, builder, []string{first})
	expect(t, err, "needs another account")
	_, _, err = r.CustomBuilder(t.Context(), app, builder, []string{image})
	expect(t, err, "the platform's own images")
	_, _, err = r.CustomBuilder(t.Context(), app, builder, []string{"169.254.169.254/team/tool"})
	expect(t, err, "could not be asked")
}

// lastLayer lists what an image's last layer holds, and that all of it is root's and has nothing else.
func lastLayer(t testing.TB, r *Registry, image string) (all []string) {
	t.Helper()
	ref, err := name.NewDigest(image)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Image(ref, r.options(t.Context(), ref.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := found.Layers()
	if err != nil {
		t.Fatal(err)
	}
	text, err := layers[len(layers)-1].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = text.Close() }()
	in := tar.NewReader(text)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(epoch) || len(h.PAXRecords) > 0 {
			t.Errorf("%s is of %d:%d, at %s, with %v", h.Name, h.Uid, h.Gid, h.ModTime, h.PAXRecords)
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %o %s", h.Name, h.Mode, h.Linkname)))
	}
}

func TestHostileBuildpacks(t *testing.T) {
	r, seen := open(t)
	builder := aBuilder(t, r)
	const at = "/cnb/buildpacks/team_x/1/"
	honest, toml := says("team/x@1"), reg(at+"buildpack.toml")
	outside := "is not in the directory of a buildpack"
	for what, c := range map[string]struct {
		labels  labels
		entries []tar.Header
		says    string
	}{
		"lifecycle":             {honest, []tar.Header{toml, reg("/cnb/lifecycle/exporter")}, `its entry "/cnb/lifecycle/exporter" ` + outside},
		"lifecycle by dots":     {honest, []tar.Header{toml, reg(at + "../../../lifecycle/exporter")}, "not one in a buildpack"},
		"absolute":              {honest, []tar.Header{toml, reg("/etc/passwd")}, outside},
		"directory outside":     {honest, []tar.Header{toml, dir("/etc")}, outside},
		"another buildpack":     {honest, []tar.Header{toml, reg("/cnb/buildpacks/proa_go/1.0/bin/build")}, outside},
		"another version":       {honest, []tar.Header{toml, reg("/cnb/buildpacks/team_x/2/bin/build")}, outside},
		"order":                 {honest, []tar.Header{toml, reg("/cnb/order.toml")}, outside},
		"above":                 {honest, []tar.Header{toml, link("/cnb/buildpacks", "/tmp")}, outside},
		"itself":                {honest, []tar.Header{link("/cnb/buildpacks/team_x/1", "/tmp")}, outside},
		"its parent":            {honest, []tar.Header{link("/cnb/buildpacks/team_x", "/tmp")}, outside},
		"whiteout":              {honest, []tar.Header{toml, reg(at + ".wh..wh..opq")}, "not one in a buildpack"},
		"link to root":          {honest, []tar.Header{toml, link(at+"bin", "/cnb/lifecycle")}, "is a link that leads out"},
		"link up":               {honest, []tar.Header{toml, link(at+"bin", "../1")}, "is a link that leads out"},
		"through a link":        {honest, []tar.Header{toml, dir(at + "a"), link(at+"b", "a"), reg(at + "b/c")}, "no directory"},
		"link over a directory": {honest, []tar.Header{toml, reg(at + "b/c"), link(at+"b", "a")}, "twice"},
		"twice":                 {honest, []tar.Header{toml, toml}, "twice"},
		"hard link":             {honest, []tar.Header{toml, {Typeflag: tar.TypeLink, Name: at + "x", Linkname: "etc/shadow"}}, "neither a file"},
		"device":                {honest, []tar.Header{toml, {Typeflag: tar.TypeChar, Name: at + "x"}}, "neither a file"},
		"lies about its ID":     {honest, []tar.Header{reg("/cnb/buildpacks/team_y/1/buildpack.toml")}, outside},
		"holds nothing":         {honest, nil, `the buildpack team/x@1, but does not hold it`},
		"only a link":           {honest, []tar.Header{link(at+"buildpack.toml", "x")}, "does not hold it"},
		"no label":              {nil, []tar.Header{toml}, "holds no buildpack"},
		"no JSON":               {labels{"io.buildpacks.buildpackage.metadata": "{"}, []tar.Header{toml}, "not the JSON"},
		"labels at odds":        {labels{"io.buildpacks.buildpackage.metadata": `{"id":"team/z","version":"1"}`, "io.buildpacks.buildpack.layers": honest["io.buildpacks.buildpack.layers"]}, []tar.Header{toml}, `"team/z@1", but its label`},
		"the builder's":         {says("proa/go@1.0"), []tar.Header{reg("/cnb/buildpacks/proa_go/1.0/buildpack.toml")}, "is there already"},
		"the builder's, nearly": {says("proa_go@1.0"), []tar.Header{reg("/cnb/buildpacks/proa_go/1.0/buildpack.toml")}, "is there already"},
		"dots for an ID":        {says("..@lifecycle"), []tar.Header{reg("/cnb/lifecycle/buildpack.toml")}, "not how one is named"},
		"path for a version":    {says("team/x@1/../.."), []tar.Header{toml}, "not how one is named"},
		"order in an ID":        {says("x\"\nid=\"y@1"), []tar.Header{toml}, "not how one is named"},
	} {
		t.Run(what, func(t *testing.T) {
			image := putBuildpack(t, r, c.labels, c.entries...)
			seen.since()
			_, _, err := r.CustomBuilder(t.Context(), newApp(), builder, []string{image})
			expect(t, err, c.says)
			if got := seen.since(); got != "0 blobs, 0 mounts, 0 manifests" {
				t.Errorf("sent were %s", got)
			}
		})
	}
}

// TestBuildpackBombs are small, and large once they are unpacked.
func TestBuildpackBombs(t *testing.T) {
	r, _ := open(t)
	builder := aBuilder(t, r)
	for what, c := range map[string]struct {
		write func(w io.Writer) error
		says  string
	}{
		"a file": {func(w io.Writer) error {
			return tar.NewWriter(w).WriteHeader(&tar.Header{Name: "cnb/buildpacks/team_x/1/big", Typeflag: tar.TypeReg, Size: 3 << 30, Mode: 0o644})
		}, "unpack to more than 2 GB"},
		"many": {func(w io.Writer) error {
			out := tar.NewWriter(w)
			for i := range maxCrated + 1 {
				if err := out.WriteHeader(&tar.Header{Name: fmt.Sprintf("cnb/buildpacks/team_x/1/%d", i), Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
					return err
				}
			}
			return out.Close()
		}, "more than 100000 files"},
		"cut off": {func(w io.Writer) error {
			return tar.NewWriter(w).WriteHeader(&tar.Header{Name: "cnb/buildpacks/team_x/1/cut", Typeflag: tar.TypeReg, Size: 10, Mode: 0o644})
		}, "could not be read to its end"},
		"no tar": {func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("no tar", 1000))
			return err
		}, "could not be read to its end"},
	} {
		t.Run(what, func(t *testing.T) {
			made, err := spool(t.TempDir(), "bomb", c.write)
			if err != nil {
				t.Fatal(err)
			}
			defer made.close()
			image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: made})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = r.CustomBuilder(t.Context(), newApp(), builder, []string{putLabelled(t, r, image, says("team/x@1"))})
			expect(t, err, c.says)
		})
	}
}

// TestBuildpackEndless has a layer that goes on after its archive has ended.
func TestBuildpackEndless(t *testing.T) {
	r, _ := open(t)
	made, err := spool(t.TempDir(), "bomb", func(w io.Writer) error {
		_, err := w.Write(make([]byte, 2<<20))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: made})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.buildpackage(t.Context(), putLabelled(t, r, image, says("team/x@1")))
	if err != nil {
		t.Fatal(err)
	}
	c := &crate{out: tar.NewWriter(io.Discard), kinds: map[string]byte{}, left: 1 << 20, read: 3 << 20}
	if err := r.unpack(t.Context(), c, p, p.layers[0]); err != nil || c.read != 1<<20 {
		t.Errorf("%d bytes are left: %v", c.read, err)
	}
	expect(t, r.unpack(t.Context(), c, p, p.layers[0]), "unpacks to far too much")
}
