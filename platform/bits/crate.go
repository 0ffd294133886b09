package bits

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/proa-dev/proa/kit/fault"
)

const (
	buildpackDir = "cnb/buildpacks"
	maxUnpacked  = 2 << 30 // bytes of all files of an app's own buildpacks
	maxCrated    = 100_000 // files and directories
)

// A crate is a layer with buildpacks of strangers. Their layers are not taken over but written anew, file by file: so there
// is nothing but files, directories and links within the directories of the buildpacks that an image says it holds, all of
// it root's, each name once, and none of it below a link.
type crate struct {
	out   *tar.Writer
	kinds map[string]byte // of what is in it
	names int64           // bytes
	left  int64           // bytes of files that may still come
	read  int64           // bytes of archives that may still be read, with what is not wanted of them
}

// pack writes the buildpacks into one layer.
func (r *Registry) pack(ctx context.Context, w io.Writer, all []buildpackage) error {
	c := &crate{out: tar.NewWriter(w), kinds: map[string]byte{}, left: maxUnpacked, read: 2 * maxUnpacked}
	for _, p := range all {
		for _, l := range p.layers {
			if err := r.unpack(ctx, c, p, l); err != nil {
				return err
			}
		}
		if c.kinds[home(p.ID, p.Version)+"/buildpack.toml"] != tar.TypeReg {
			return fault.Unprocessable("The image %s says that it is the buildpack %s@%s, but does not hold it. Make it again with: pack buildpack package.", shown(p.image), p.ID, p.Version)
		}
	}
	return c.out.Close()
}

func (r *Registry) unpack(ctx context.Context, c *crate, p buildpackage, l v1.Descriptor) error {
	ref := p.repo.Digest(l.Digest.String())
	blob, err := remote.Layer(ref, remote.WithContext(ctx), remote.WithTransport(sealed{r.toUsersLayers(ref)}), remote.WithUserAgent("proa"))
	if err != nil {
		return notHad(p.image, err)
	}
	packed, err := blob.Compressed() // which is held to its digest when it ends
	if err != nil {
		return notHad(p.image, err)
	}
	defer func() { _ = packed.Close() }()
	z, err := gzip.NewReader(io.LimitReader(packed, l.Size))
	if err != nil {
		return p.unreadable(err)
	}
	plain := &io.LimitedReader{R: z, N: c.read}
	defer func() { c.read = plain.N }()
	if err := c.addAll(ctx, p, plain); err != nil {
		return err
	}
	if _, err := packed.Read(make([]byte, 1)); plain.N <= 0 || !errors.Is(err, io.EOF) {
		return p.unreadable(err)
	}
	return nil
}

// addAll reads an archive, and what follows it.
func (c *crate) addAll(ctx context.Context, p buildpackage, plain io.Reader) error {
	all := &content{ctx: ctx, in: io.NopCloser(plain)}
	in := tar.NewReader(all)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p.unreadable(err)
		}
		if err := c.add(ctx, p, h, in); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return p.unreadable(err)
	}
	return nil
}

func (p *buildpackage) unreadable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Unprocessable("A layer of the image %s could not be read to its end, unpacks to far too much, or is not a gzipped tar. Try again, or make the image again.", shown(p.image)).Because(err)
}

// refuse says which entry breaks which rule.
func (p *buildpackage) refuse(h *tar.Header, rule string) *fault.Error {
	return fault.Unprocessable("The image %s cannot be used as a buildpack: its entry %s %s.", shown(p.image), shown(h.Name), rule)
}

func (c *crate) add(ctx context.Context, p buildpackage, h *tar.Header, in io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := cleanName("./" + strings.TrimPrefix(h.Name, "/"))
	if err != nil {
		return p.refuse(h, "has a name that is not one in a buildpack").Because(err)
	}
	at, wanted, err := p.place(name, h)
	if err != nil || !wanted {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		return c.directory(p, h, name)
	}
	if err := c.directory(p, h, path.Dir(name)); err != nil {
		return err
	}
	if _, there := c.kinds[name]; there {
		return p.refuse(h, "is there twice")
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return c.file(ctx, p, h, name, in)
	case tar.TypeSymlink:
		if err := checkLink(strings.TrimPrefix(name, at+"/"), h.Linkname); err != nil {
			return p.refuse(h, "is a link that leads out of the buildpack, or goes down and up again").Because(err)
		}
		link := header(name, fs.ModeSymlink, 0)
		link.Linkname = h.Linkname
		return c.put(p, link, name)
	}
	return p.refuse(h, "is neither a file nor a directory nor a symbolic link")
}

// place finds the buildpack that an entry belongs to. Directories above it are not wanted: the builder has them.
func (p *buildpackage) place(name string, h *tar.Header) (at string, wanted bool, err error) {
	above := name == "." || name == path.Dir(buildpackDir) || name == buildpackDir || path.Dir(name) == buildpackDir
	if above && h.Typeflag == tar.TypeDir {
		return "", false, nil
	}
	steps := strings.SplitN(name, "/", 5)
	at = path.Join(steps[:min(4, len(steps))]...)
	wanted, named := p.homes[at]
	if !named || name == at && h.Typeflag != tar.TypeDir {
		return "", false, p.refuse(h, "is not in the directory of a buildpack that the image's labels name")
	}
	return at, wanted, nil
}

// directory makes a directory and those above it, unless they are there.
func (c *crate) directory(p buildpackage, h *tar.Header, name string) error {
	kind, there := c.kinds[name]
	switch {
	case name == buildpackDir || there && kind == tar.TypeDir:
		return nil
	case there:
		return p.refuse(h, "is below or in place of something that is no directory")
	}
	if err := c.directory(p, h, path.Dir(name)); err != nil {
		return err
	}
	return c.put(p, header(name, fs.ModeDir, 0), name)
}

func (c *crate) file(ctx context.Context, p buildpackage, h *tar.Header, name string, in io.Reader) error {
	if c.left -= h.Size; c.left < 0 {
		return fault.Unprocessable("The buildpacks of the app, and with them the image %s, unpack to more than %s. Use smaller ones.", shown(p.image), inUnits(maxUnpacked))
	}
	file := header(name, 0, 0)
	file.Size = h.Size
	if h.Mode&0o100 != 0 {
		file.Mode = 0o755
	}
	if err := c.put(p, file, name); err != nil {
		return err
	}
	from := &content{ctx: ctx, in: io.NopCloser(in)}
	_, err := io.Copy(struct{ io.Writer }{c.out}, from)
	if from.failed != nil {
		return p.unreadable(from.failed)
	}
	return err
}

func (c *crate) put(p buildpackage, h *tar.Header, name string) error {
	c.kinds[name] = h.Typeflag
	if c.names += int64(len(name)); len(c.kinds) > maxCrated || c.names > maxDirectory {
		return fault.Unprocessable("The buildpacks of the app, and with them the image %s, hold more than %d files, or names too long. Use smaller ones.", shown(p.image), maxCrated)
	}
	return c.out.WriteHeader(h)
}
