package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// door is where the ssh server of an installation is, and how it is told from others.
type door struct {
	address     string
	fingerprint string // empty: any is let pass
}

// sshDoor asks the API where its ssh server is.
func (s *session) sshDoor(ctx context.Context, anybody bool) (door, error) {
	var root v3.Root
	open := *s.api
	open.Token = nil
	if err := open.Call(ctx, http.MethodGet, "/", nil, &root); err != nil {
		return door{}, err
	}
	link := root.Links["app_ssh"]
	if link == nil || link.Href == "" {
		return door{}, failed("ask the operator of "+s.cfg.API+" for an ssh server", "There is no ssh in this installation.")
	}
	d := door{address: strings.TrimPrefix(link.Href, "ssh://")}
	d.fingerprint, _ = link.Meta["host_key_fingerprint"].(string)
	switch {
	case anybody:
		d.fingerprint = ""
		s.warn("Who answers is not checked: you may be talking to somebody else.")
	case d.fingerprint == "":
		return door{}, failed("proa ssh -k    # does not check who answers", "The API does not say how to tell its ssh server from another.")
	}
	return d, nil
}

const (
	lengthHex    = 64 // of a SHA-256
	lengthBase64 = 43 // without padding
)

// check holds the key of a server against the fingerprint that the API gave.
func (d door) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	sum := sha256.Sum256(key.Marshal())
	var is string
	switch want := d.fingerprint; {
	case want == "":
		return nil
	case len(want) == lengthHex:
		is = hex.EncodeToString(sum[:])
		d.fingerprint = strings.ToLower(want)
	case len(want) == lengthBase64:
		is = base64.RawStdEncoding.EncodeToString(sum[:])
	default:
		return failed("proa ssh -k    # does not check who answers", "The API gives the fingerprint %q, which is no SHA-256.", want)
	}
	if is != d.fingerprint {
		return failed("tell the operator; proa ssh -k goes on without this check", "The server at %s is not the one that the API speaks of: the key's fingerprint is %s, and should be %s.", d.address, is, d.fingerprint)
	}
	return nil
}

const knockTimeout = 30 * time.Second

// dialSSH logs in. A code is good once, so there is one try.
func (s *session) dialSSH(ctx context.Context, d door, a v3.App, user string) (*ssh.Client, error) {
	code, err := s.sshCode(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, knockTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, &problem{says: fmt.Sprintf("The ssh server at %s cannot be reached.\n(%v)", d.address, err), next: "try again; if it stays so, ask the operator", code: ExitUnavailable, cause: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	var said banner
	shaken, channels, requests, err := ssh.NewClientConn(conn, d.address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.Password(code)}, HostKeyCallback: d.check, BannerCallback: said.add, ClientVersion: "SSH-2.0-proa",
	})
	if !stop() && err == nil { // the time was over in the same moment
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, s.notLetIn(ctx, d, a, said, err)
	}
	for _, line := range said {
		fmt.Fprintln(s.Err, line)
	}
	return ssh.NewClient(shaken, channels, requests), nil
}

// banner is what a server says before it lets anybody in, or does not.
type banner []string

const maxBanner = 100 // lines

func (b *banner) add(text string) error {
	for line := range strings.Lines(text) {
		if len(*b) < maxBanner {
			*b = append(*b, clean(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}

// notLetIn says why a login failed: as the API knows it of the app, or in the server's own words.
func (s *session) notLetIn(ctx context.Context, d door, a v3.App, said banner, err error) error {
	var p *problem
	switch {
	case errors.As(err, &p): // not the server we want
		return p
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case !strings.Contains(err.Error(), "unable to authenticate"):
		return &problem{says: fmt.Sprintf("The ssh server at %s does not answer as one.\n(%v)", d.address, err), next: "try again; if it stays so, ask the operator", code: ExitUnavailable, cause: err}
	}
	can, asked := s.sshEnabled(ctx, a)
	if asked == nil {
		if p := s.sshRefused(a, can); p != nil {
			return p
		}
	}
	says := strings.TrimSpace(strings.Join(said, "\n"))
	return &problem{says: firstOf(says, "The ssh server refused your login. A shell needs the role space_developer, and a code is good once and for a short time."),
		next: "try again; proa target shows who you are", code: ExitFailed, cause: err}
}
