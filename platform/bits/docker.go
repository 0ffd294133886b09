package bits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/proa-dev/proa/kit/fault"
)

// A Docker is an image that somebody else built.
type Docker struct {
	Image  string // by digest
	Digest string
	Config Config
}

// DockerImage finds an image that a user names, with the user's account if there is one.
func (r *Registry) DockerImage(ctx context.Context, image, username, password string) (Docker, error) {
	var account authn.Authenticator
	if username != "" {
		account = &authn.Basic{Username: username, Password: password}
	}
	repo, found, file, err := r.lookAtUsers(ctx, image, account)
	if err != nil {
		return Docker{}, err
	}
	digest, err := found.Digest()
	if err != nil {
		return Docker{}, notHad(image, err)
	}
	config, err := readConfig(file)
	if err != nil {
		return Docker{}, err
	}
	// What the library calls index.docker.io is docker.io to everybody else.
	at := strings.Replace(repo.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
	return Docker{Image: at + "@" + digest.String(), Digest: digest.String(), Config: config}, nil
}

// lookAtUsers looks at an image that a user names, with the user's account or none. The platform's own images are not to be
// had this way: they are other people's apps, and the kubelet has the key to all of them.
func (r *Registry) lookAtUsers(ctx context.Context, image string, account authn.Authenticator) (name.Repository, v1.Image, *v1.ConfigFile, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return name.Repository{}, nil, nil, fault.Unprocessable("%s is not the name of an image. Give it as host/path:tag.", shown(image)).Because(err)
	}
	repo := ref.Context()
	if r.ours(repo) {
		return repo, nil, nil, fault.Unprocessable("%s is a place of the platform's own images. Use an image from elsewhere.", shown(image))
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(sealed{r.toUsersRegistry(ref)}), remote.WithUserAgent("proa")}
	if account != nil {
		options = append(options, remote.WithAuth(account))
	}
	found, file, err := look(ref, options)
	if err != nil {
		return repo, nil, nil, notHad(image, err)
	}
	return repo, found, file, nil
}

// notHad says why a user's image is not to be had. Which of several reasons it is, a registry often keeps to itself.
func notHad(image string, err error) error {
	var refused *transport.Error
	switch {
	case errors.Is(err, context.Canceled) || errors.As(err, new(*fault.Error)):
		return err
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden || refused.StatusCode == http.StatusNotFound):
		return fault.Unprocessable("The image %s does not exist, or needs another account. Check its name, the user name and the password.", shown(image)).Because(err)
	}
	return fault.Unprocessable("The registry of the image %s could not be asked for it. Check the name, and try again.", shown(image)).Because(err)
}

// toUsersRegistry is the way to a registry that a user names: to public addresses, unless it is the host that the platform's
// own is on.
func (r *Registry) toUsersRegistry(ref name.Reference) http.RoundTripper {
	host, _ := r.place()
	switch {
	case r.Public != nil:
		return r.Public
	case strings.EqualFold(ref.Context().RegistryStr(), host):
		return short{r.trip()}
	}
	return short{publicOnly}
}

var publicOnly = func() *http.Transport {
	t := way(net.Dialer{Timeout: dialTime, Control: toPublic}, nil)
	t.Proxy = nil // a proxy would dial for us, and to anywhere
	return t
}()

// inside are nets that look public and may lead inside: a carrier's, a bench's, and IPv6 that stands for any IPv4.
var inside = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
}

// toPublic keeps users from reaching into the network that the platform is in. It sees the address after names are resolved,
// for redirects too.
func toPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(inside, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return fmt.Errorf("%s is not a public address", ip)
	}
	return nil
}

// short reads no answer to its end that is longer than any image's description.
type short struct{ http.RoundTripper }

func (s short) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxConfig+1), resp.Body}
	return resp, nil
}
