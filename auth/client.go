package auth

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Client is a program that asks for tokens, for itself or for a person who uses it.
type Client struct {
	ID           string
	Name         string
	Secrets      []Hash // the newest last; none: the client is public and can keep no secret
	Scopes       []string
	Authorities  []string // scopes of the client itself, for client_credentials
	Grants       []string
	RedirectURIs []string
	AutoApprove  []string      // scopes that need no consent; "true" stands for all
	AccessFor    time.Duration // zero: the server's default
	RefreshFor   time.Duration
	Generation   string
	Version      int
	Created      time.Time
	Modified     time.Time
}

// The grants a client may be allowed.
const (
	GrantClientCredentials = "client_credentials"
	GrantPassword          = "password"
	GrantRefresh           = "refresh_token"
	GrantCode              = "authorization_code"
)

// Grants lists every grant that this server speaks.
var Grants = []string{GrantClientCredentials, GrantPassword, GrantRefresh, GrantCode}

const (
	maxList    = 200
	maxSecrets = 2
	maxURI     = 2048
)

// MaxAccess is the longest life of an access token: the key that signed it is published at least that long.
const MaxAccess = 24 * time.Hour

// MaxRefresh is the longest life of a refresh token.
const MaxRefresh = 365 * 24 * time.Hour

// Public tells whether the client can keep no secret.
func (c *Client) Public() bool { return len(c.Secrets) == 0 }

// Approves tells whether every one of the scopes needs no consent.
func (c *Client) Approves(scopes []string) bool {
	if slices.Contains(c.AutoApprove, "true") {
		return true
	}
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(c.AutoApprove, s) })
}

func badClient(format string, args ...any) error {
	return fault.Invalid(format, args...).WithCode("invalid_client")
}

// Check says what is wrong with a client's record.
func (c *Client) Check() error {
	if err := c.checkNames(); err != nil {
		return err
	}
	if len(c.Grants) == 0 {
		return badClient("authorized_grant_types is missing. Send at least one of %s.", strings.Join(Grants, ", "))
	}
	for _, g := range c.Grants {
		if !slices.Contains(Grants, g) {
			return badClient("authorized_grant_types: %q is not a grant of this server. Use %s.", g, strings.Join(Grants, ", "))
		}
	}
	switch {
	case slices.Contains(c.Grants, GrantClientCredentials) && c.Public():
		return badClient("client_secret is missing. A client with client_credentials needs one.")
	case slices.Contains(c.Grants, GrantCode) && len(c.RedirectURIs) == 0:
		return badClient("redirect_uri is missing. A client with authorization_code needs at least one.")
	case c.AccessFor < 0 || c.AccessFor > MaxAccess:
		return badClient("access_token_validity must be between 0 and %.0f seconds.", MaxAccess.Seconds())
	case c.RefreshFor < 0 || c.RefreshFor > MaxRefresh:
		return badClient("refresh_token_validity must be between 0 and %.0f seconds.", MaxRefresh.Seconds())
	}
	for _, uri := range c.RedirectURIs {
		if err := checkRedirect(uri); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) checkNames() error {
	if c.ID == "" || len(c.ID) > maxName || strings.ContainsFunc(c.ID, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' || r == '/' }) {
		return badClient("client_id must be 1 to %d printable ASCII characters without space, colon or slash.", maxName)
	}
	if err := plain("name", c.Name); err != nil {
		return err
	}
	for field, list := range map[string][]string{"scope": c.Scopes, "authorities": c.Authorities, "autoapprove": c.AutoApprove} {
		if len(list) > maxList {
			return badClient("%s has more than %d entries. Shorten it.", field, maxList)
		}
		for _, s := range list {
			if err := CheckScope(s); err != nil {
				return badClient("%s: %v", field, err)
			}
		}
	}
	return nil
}

// checkRedirect admits absolute addresses without a fragment or wildcard: the whole of it is compared later.
func checkRedirect(uri string) error {
	u, err := url.Parse(uri)
	switch {
	case err != nil || !u.IsAbs() || len(uri) > maxURI || (u.Host == "" && u.Opaque == "" && u.Path == ""):
		return badClient("redirect_uri: %q is not an absolute address. Send one such as https://app.example.org/callback.", uri)
	case u.Fragment != "" || strings.Contains(uri, "*"):
		return badClient("redirect_uri: %q must not hold a fragment or a wildcard. Register each address.", uri)
	case slices.Contains([]string{"javascript", "data", "vbscript", "file"}, strings.ToLower(u.Scheme)):
		return badClient("redirect_uri: %q has a scheme that cannot receive a code. Use https.", uri)
	}
	return nil
}

// SetSecret replaces every secret.
func (c *Client) SetSecret(h Hash) { c.Secrets = []Hash{h} }

// AddSecret adds a second secret, so that a program can change over without a gap.
func (c *Client) AddSecret(h Hash) error {
	if len(c.Secrets) >= maxSecrets {
		return badClient("The client has %d secrets already. Delete the older one first.", maxSecrets)
	}
	c.Secrets = append(c.Secrets, h)
	return nil
}

// DropSecret removes the older of two secrets.
func (c *Client) DropSecret() error {
	if len(c.Secrets) < maxSecrets {
		return badClient("The client has only one secret, and it cannot be deleted. Add a new one first.")
	}
	c.Secrets = c.Secrets[1:]
	return nil
}
