package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/proa-dev/proa/kit/env"
)

// A registry is where images are pushed to.
type registry struct {
	address string
	options []remote.Option
}

func newRegistry(address string) (registry, error) {
	var config struct {
		Username string     `env:"PROA_REGISTRY_USERNAME" help:"Name to give to the registry."`
		Password env.Secret `env:"PROA_REGISTRY_PASSWORD" help:"Password of that name."`
	}
	if err := env.Load(&config, os.Getenv); err != nil {
		return registry{}, err
	}
	trip, err := trusting(os.Getenv("PROA_REGISTRY_CA_FILE"))
	if err != nil {
		return registry{}, err
	}
	options := []remote.Option{remote.WithTransport(trip)}
	if config.Username != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: config.Username, Password: string(config.Password)}))
	}
	return registry{address: address, options: options}, nil
}

// trusting is a transport that trusts the authority in the file, besides those the machine trusts.
func trusting(caFile string) (http.RoundTripper, error) {
	trip := remote.DefaultTransport.(*http.Transport).Clone()
	if caFile == "" {
		return trip, nil
	}
	text, err := os.ReadFile(caFile) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("PROA_REGISTRY_CA_FILE must name a file that can be read: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("PROA_REGISTRY_CA_FILE must name a file with certificates in PEM form, and %s holds none", caFile)
	}
	trip.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return trip, nil
}

// push sends what the registry does not have yet, and gives the reference of what it has then.
func (r registry) push(ctx context.Context, i image) (string, error) {
	repository, err := name.NewRepository(r.address + "/proa/" + i.name)
	if err != nil {
		return "", fmt.Errorf("%s is no registry's address: %w. Give host:port.", r.address, err)
	}
	img, err := i.open()
	if err != nil {
		return "", err
	}
	digest, err := img.Digest()
	if err != nil {
		return "", err
	}
	options := append([]remote.Option{remote.WithContext(ctx)}, r.options...)
	for _, tag := range []string{i.print, "latest"} {
		if err := pushTag(repository.Tag(tag), img, digest, options); err != nil {
			return "", fmt.Errorf("Could not push %s: %w", repository.Tag(tag), err)
		}
	}
	return repository.Digest(digest.String()).Name(), nil
}

func pushTag(tag name.Tag, img v1.Image, digest v1.Hash, options []remote.Option) error {
	there, err := remote.Head(tag, options...)
	if err == nil && there.Digest == digest {
		return nil
	}
	if refused := new(transport.Error); err != nil && (!errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound) {
		return err
	}
	say("Pushing %s.", tag)
	return remote.Write(tag, img, options...)
}
