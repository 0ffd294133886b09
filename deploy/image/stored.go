package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// stored is a layer whose digests are kept beside it: to compute them takes seconds for Debian, and images are assembled
// again whenever a buildpack changes.
type stored struct {
	file   string
	Hashed struct {
		Digest, DiffID v1.Hash
		Size           int64
	}
}

// stored gives the layer, made if need be.
func (l layer) stored(ctx context.Context) (*stored, error) {
	file, err := l.file(ctx)
	if err != nil {
		return nil, err
	}
	s := &stored{file: file}
	beside, err := l.cache.file(strings.TrimPrefix(file, string(l.cache)+"/")+".json", func(w io.Writer) error {
		made, err := tarball.LayerFromFile(file)
		if err != nil {
			return err
		}
		if s.Hashed.Digest, err = made.Digest(); err != nil {
			return err
		}
		if s.Hashed.DiffID, err = made.DiffID(); err != nil {
			return err
		}
		if s.Hashed.Size, err = made.Size(); err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(s.Hashed)
	})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(beside)
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(text, &s.Hashed)
}

func (s *stored) Digest() (v1.Hash, error)            { return s.Hashed.Digest, nil }
func (s *stored) DiffID() (v1.Hash, error)            { return s.Hashed.DiffID, nil }
func (s *stored) Size() (int64, error)                { return s.Hashed.Size, nil }
func (s *stored) MediaType() (types.MediaType, error) { return types.DockerLayer, nil }
func (s *stored) Compressed() (io.ReadCloser, error)  { return os.Open(s.file) }

func (s *stored) Uncompressed() (io.ReadCloser, error) {
	l, err := tarball.LayerFromFile(s.file)
	if err != nil {
		return nil, err
	}
	return l.Uncompressed()
}
