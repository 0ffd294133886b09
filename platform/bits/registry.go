// Package bits owns what is kept in the OCI registry: packages (the source that was pushed), droplets (what staging made of
// it) and run images (what apps run on). It judges every upload and every label as written by a stranger, because they are.
//
// Images are known by their digests. Two packages or droplets of an app with the same content are one image: whoever keeps
// the records deletes it with the last of them.
package bits

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/proa-dev/proa/kit/fault"
)

// A Registry is the one the platform keeps its images in, and the account it has there.
type Registry struct {
	Prefix    string // host:port/path that every image of the platform is below
	Username  string // none: the registry asks for no account
	Password  string
	Transport http.RoundTripper // how it and the images that the operator names are reached; nil is Trusting(nil)
	Public    http.RoundTripper // how images that users name are reached; nil reaches public addresses only
}

// String leaves the password out of whatever prints a Registry.
func (r Registry) String() string { return r.Prefix }

// LogValue leaves the password out of the log.
func (r Registry) LogValue() slog.Value { return slog.StringValue(r.Prefix) }

// How long a registry may take: to take a call, to answer a request once it has it all, to tell of an image, and for an upload a start and
// then the time at the slowest rate that is still worth waiting for.
const (
	dialTime    = 10 * time.Second
	answerTime  = 2 * time.Minute // committing a large blob copies it, in some registries
	lookTime    = time.Minute
	uploadTime  = 5 * time.Minute
	slowestRate = 1 << 20 // bytes a second
)

// Trusting is a transport that trusts the authorities in the PEM text, besides those the machine trusts.
func Trusting(pem []byte) (http.RoundTripper, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if len(pem) > 0 && !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("The registry's authority must be certificates in PEM form, and there is none in it.")
	}
	return way(net.Dialer{Timeout: dialTime}, pool), nil
}

func way(dialer net.Dialer, roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTime,
		ResponseHeaderTimeout: answerTime,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
	}
}

var machineTrust, _ = Trusting(nil) // without a text there is nothing to fail at

// sealed refuses to speak without TLS. The library tries that on its own for private addresses, password included.
type sealed struct{ http.RoundTripper }

func (s sealed) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s would be asked without TLS", req.URL.Host)
	}
	return s.RoundTripper.RoundTrip(req)
}

// options are how an image in this repository is reached. The account is for the platform's own host alone.
func (r *Registry) options(ctx context.Context, repo name.Repository) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(sealed{r.trip()}), remote.WithUserAgent("proa")}
	if host, _ := r.place(); r.Username != "" && strings.EqualFold(repo.RegistryStr(), host) {
		options = append(options, remote.WithAuth(&authn.Basic{Username: r.Username, Password: r.Password}))
	}
	return options
}

func (r *Registry) trip() http.RoundTripper {
	if r.Transport == nil {
		return machineTrust
	}
	return r.Transport
}

// place is the host of the prefix and the path after it.
func (r *Registry) place() (host, path string) {
	prefix, err := name.NewRepository(r.Prefix, name.StrictValidation)
	if err != nil {
		return "", ""
	}
	return prefix.RegistryStr(), prefix.RepositoryStr()
}

var guid = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// repository is the place of an app's images of a kind.
func (r *Registry) repository(kind, app string) (name.Repository, error) {
	if !guid.MatchString(app) {
		return name.Repository{}, fmt.Errorf("%q cannot be an app's guid", app)
	}
	return r.below(kind + "/" + app)
}

func (r *Registry) below(path string) (name.Repository, error) {
	repo, err := name.NewRepository(r.Prefix+"/"+path, name.StrictValidation)
	if err != nil {
		return repo, fmt.Errorf("%q must be host:port/path of a registry: %w", r.Prefix, err)
	}
	return repo, nil
}

// ours tells whether a repository is the platform's own.
func (r *Registry) ours(repo name.Repository) bool {
	host, path := r.place()
	return strings.EqualFold(repo.RegistryStr(), host) && strings.HasPrefix(repo.RepositoryStr()+"/", path+"/")
}

// own reads the reference of an image that the platform made.
func (r *Registry) own(image string) (name.Digest, error) {
	ref, err := name.NewDigest(image)
	if err == nil && !r.ours(ref.Context()) {
		err = errors.New("it is not below the platform's prefix")
	}
	if err != nil {
		return ref, fmt.Errorf("image %q: %w", image, err)
	}
	return ref, nil
}

// DropletName is where staging puts the droplet of a build: what the lifecycle's exporter is told.
func (r *Registry) DropletName(app, build string) (string, error) {
	repo, err := r.repository("droplets", app)
	if err != nil || !guid.MatchString(build) {
		return "", errors.Join(err, fmt.Errorf("droplet of build %q", build))
	}
	return repo.Tag(build).Name(), nil
}

// Check asks the registry whether it is there and takes the account.
func (r *Registry) Check(ctx context.Context) error {
	repo, err := r.below("stack")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	_, err = remote.Head(repo.Tag("latest"), r.options(ctx, repo)...)
	if err = said(err); fault.Is(err, fault.KindNotFound) {
		return nil
	}
	return err
}
