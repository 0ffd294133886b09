package bits

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// epoch is the time of everything in a layer, so that the same content is the same layer. The lifecycle has the same.
var epoch = time.Date(1980, time.January, 1, 0, 0, 1, 0, time.UTC)

// writeTar writes the tree below a directory, all of it owned by one user. Modes are 0755 for directories and for what its
// owner may execute, 0644 for the rest: nothing of setuid, setgid or sticky stays.
func (t *tree) writeTar(ctx context.Context, w io.Writer, root string, owner int) error {
	out := tar.NewWriter(w)
	buffer := make([]byte, 64<<10)
	if err := out.WriteHeader(header(root, fs.ModeDir, owner)); err != nil {
		return err
	}
	for _, e := range t.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := header(root+"/"+e.name, e.kind, owner)
		var err error
		switch e.kind {
		case fs.ModeDir:
			err = out.WriteHeader(h)
		case fs.ModeSymlink:
			err = t.writeLink(ctx, out, h, e)
		default:
			err = t.writeFile(ctx, out, h, e, buffer)
		}
		if err != nil {
			return err
		}
	}
	return out.Close()
}

func header(name string, kind fs.FileMode, owner int) *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Uid: owner, Gid: owner, ModTime: epoch, Format: tar.FormatPAX}
	switch kind {
	case fs.ModeDir:
		h.Typeflag, h.Mode, h.Name = tar.TypeDir, 0o755, name+"/"
	case fs.ModeSymlink:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
	}
	return h
}

func (t *tree) writeLink(ctx context.Context, out *tar.Writer, h *tar.Header, e entry) error {
	c, err := t.open(ctx, e)
	if err != nil {
		return err
	}
	defer c.in.Close()
	target, err := io.ReadAll(io.LimitReader(c, maxName+1))
	if err != nil {
		return t.broken(e, err)
	}
	if err := checkLink(e.name, string(target)); err != nil {
		return err
	}
	h.Linkname = string(target)
	return out.WriteHeader(h)
}

func (t *tree) writeFile(ctx context.Context, out *tar.Writer, h *tar.Header, e entry, buffer []byte) error {
	h.Size = int64(e.file.UncompressedSize64)
	if e.file.Mode()&0o100 != 0 {
		h.Mode = 0o755
	}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	c, err := t.open(ctx, e)
	if err != nil {
		return err
	}
	defer c.in.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, c, buffer) // reads to the end, where the checksum is
	if c.failed != nil {
		return t.broken(e, c.failed)
	}
	return err
}

// content is an entry's, until the caller has gone. It remembers what failed in reading, which is the archive's fault;
// writing is ours.
type content struct {
	ctx    context.Context
	in     io.ReadCloser
	failed error
}

func (t *tree) open(ctx context.Context, e entry) (*content, error) {
	in, err := e.file.Open()
	if err != nil {
		return nil, t.broken(e, err)
	}
	return &content{ctx: ctx, in: in}, nil
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err == nil {
		err = c.ctx.Err()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.failed = err
	}
	return n, err
}

// broken says what is wrong with an entry that cannot be read as the archive says it can.
func (t *tree) broken(e entry, err error) error {
	switch {
	case t.guard.failed != nil:
		return fmt.Errorf("read the upload: %w", t.guard.failed)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, zip.ErrChecksum):
		return refuse(e.file.Name, "is damaged: its checksum is wrong. Push again").Because(err)
	case errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(e.file.Name, "has another size than the archive says. Make the archive again").Because(err)
	}
	return refuse(e.file.Name, "is damaged and cannot be unpacked. Push again").Because(err)
}
