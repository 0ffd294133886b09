package bits

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A layer is a compressed archive in a file that has no name any more: it goes when the layer is closed, or the process.
// It is written down before it is pushed because a registry is asked for a layer by its digest first.
type layer struct {
	file           *os.File
	about          string // for the image's history
	media          types.MediaType
	digest, diffID v1.Hash
	size           int64
}

// spool makes a layer of what write writes, in a directory; none is the machine's for such files.
func spool(dir, about string, write func(io.Writer) error) (*layer, error) {
	file, err := os.CreateTemp(dir, "proa-layer-")
	if err != nil {
		return nil, fmt.Errorf("spool a layer: %w", err)
	}
	l := &layer{file: file, about: about, media: types.DockerLayer}
	if err := errors.Join(os.Remove(file.Name()), l.fill(write)); err != nil {
		_ = file.Close()
		return nil, err
	}
	return l, nil
}

func (l *layer) fill(write func(io.Writer) error) error {
	packed, plain := sha256.New(), sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(l.file, packed), 256<<10)
	z, err := gzip.NewWriterLevel(out, gzip.BestSpeed) // unpacked once or twice, and not kept for long
	if err != nil {
		return err
	}
	in := bufio.NewWriterSize(io.MultiWriter(z, plain), 64<<10)
	if err := write(in); err != nil {
		return err
	}
	if err := errors.Join(in.Flush(), z.Close(), out.Flush()); err != nil {
		return fmt.Errorf("spool a layer: %w", err)
	}
	l.digest, l.diffID = sum(packed), sum(plain)
	l.size, err = l.file.Seek(0, io.SeekCurrent)
	return err
}

func sum(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return l.media, nil }

// Compressed can be called again and again, and at the same time: each reads from the start.
func (l *layer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(l.file, 0, l.size)), nil
}

func (l *layer) Uncompressed() (io.ReadCloser, error) {
	return gzip.NewReader(io.NewSectionReader(l.file, 0, l.size))
}

func (l *layer) close() { _ = l.file.Close() }
