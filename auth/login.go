package auth

import (
	"net/url"
	"time"
)

// Code is an authorization code that was issued and may be exchanged once.
type Code struct {
	Hash       string
	LoginID    string
	ClientID   string
	UserID     string
	Scopes     []string
	Form       url.Values // the parts of the request that the exchange is held against: redirect_uri, code_challenge, nonce …
	AuthAt     time.Time
	Generation string
	Expires    time.Time
	Used       bool
}

// Refresh is a refresh token. Each is used once; a second use means that it was stolen, and ends the login.
type Refresh struct {
	Hash       string
	LoginID    string
	ClientID   string
	UserID     string
	Scopes     []string
	AuthAt     time.Time
	Generation string
	Expires    time.Time
	Used       bool
	Revoked    bool
}

// Generation is what a token remembers of the moment it was issued: it changes when all tokens of the person or of the client
// are revoked, and every token that remembers another one is void. A client's own token has no person.
func Generation(user, client string) string { return user + "." + client }

// SigningKey is a key pair that signs tokens from SignsFrom on, and is published until Gone.
type SigningKey struct {
	ID        string
	Public    []byte // PKIX, DER
	Sealed    []byte // PKCS #8, DER, sealed
	Created   time.Time
	SignsFrom time.Time
	Gone      *time.Time
}
