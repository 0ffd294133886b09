package deliver

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
)

// TLSMode is how a connection to a relay is encrypted. The certificate is checked whenever there is one to check.
type TLSMode string

// The modes. The zero mode is TLSStart.
const (
	TLSNone          TLSMode = "none"
	TLSOpportunistic TLSMode = "opportunistic" // STARTTLS when the relay offers it
	TLSStart         TLSMode = "starttls"      // STARTTLS, or nothing
	TLSImplicit      TLSMode = "implicit"      // TLS from the first byte
)

// Relay is one mail server to hand mails to.
type Relay struct {
	Addr       string // host:port
	TLS        TLSMode
	Auth       string // "", plain, login or cram-md5
	User       string
	Password   string
	RootCAs    *x509.CertPool // nil: those of the system
	ServerName string         // the name its certificate must have; empty: the host of Addr
	Hello      string         // how we introduce ourselves; empty: this machine's name
}

// String names the relay without its password.
func (r Relay) String() string { return r.Addr }

// LogValue keeps the password out of structured logs.
func (r Relay) LogValue() slog.Value { return slog.StringValue(r.Addr) }

const relayExample = "smtps://user:password@mail.example.org:465 or smtp://mail.example.org:587?tls=starttls"

// ParseRelay reads the URL of a relay: smtps://user:password@host:465 (TLS from the first byte), or
// smtp://user:password@host:587 with the options tls=starttls (unless said), opportunistic or none. The option auth is plain
// (unless said), login or cram-md5. Its errors are sentences and never hold the URL, because it holds the password.
func ParseRelay(text string) (Relay, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || (u.Scheme != "smtp" && u.Scheme != "smtps") {
		return Relay{}, errors.New("A relay must be a URL such as " + relayExample + ". Escape special characters of the password (@ is %40, / is %2F).")
	}
	if strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return Relay{}, errors.New("A relay's URL has no path: write it as " + relayExample + ".")
	}
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Relay{}, errors.New("The options of a relay's URL cannot be read: write them as ?tls=starttls&auth=plain.")
	}
	for name, values := range options {
		if (name != "tls" && name != "auth") || len(values) != 1 {
			return Relay{}, errors.New("A relay's URL has only the options tls and auth, each once at most.")
		}
	}
	r := Relay{TLS: TLSMode(options.Get("tls")), Auth: options.Get("auth"), User: u.User.Username()}
	r.Password, _ = u.User.Password()
	port := u.Port()
	if u.Scheme == "smtps" {
		r.TLS, port = cmp.Or(r.TLS, TLSImplicit), cmp.Or(port, "465")
	} else {
		r.TLS, port = cmp.Or(r.TLS, TLSStart), cmp.Or(port, "587")
	}
	if r.User != "" {
		r.Auth = cmp.Or(r.Auth, "plain")
	}
	r.Addr = net.JoinHostPort(u.Hostname(), port)
	if (u.Scheme == "smtps") != (r.TLS == TLSImplicit) {
		return Relay{}, errors.New("The option tls of a relay is starttls, opportunistic or none, and only with smtp://. For TLS from the first byte write smtps:// without it.")
	}
	return r, r.check()
}

// check says what an operator has to change.
func (r Relay) check() error {
	host, _, err := net.SplitHostPort(r.Addr)
	switch {
	case err != nil || host == "":
		return errors.New("A relay's address must be host:port.")
	case !slices.Contains([]TLSMode{"", TLSNone, TLSOpportunistic, TLSStart, TLSImplicit}, r.TLS):
		return errors.New("The option tls of a relay must be starttls, opportunistic or none.")
	case !slices.Contains([]string{"", "plain", "login", "cram-md5"}, r.Auth):
		return errors.New("The option auth of a relay must be plain, login or cram-md5.")
	case r.Auth != "" && (r.User == "" || r.Password == ""):
		return fmt.Errorf("The relay %s needs a user and a password to log in: write them as user:password@ before the host.", r.Addr)
	case r.Auth == "" && r.User != "":
		return fmt.Errorf("The relay %s has a user but no way to log in: say plain, login or cram-md5.", r.Addr)
	case strings.ContainsAny(r.Hello, " \r\n") || strings.ContainsAny(r.User+r.Password, "\x00\r\n"):
		return fmt.Errorf("The name, user and password for the relay %s must each be one line.", r.Addr)
	case r.bares() && (r.TLS == TLSNone || r.TLS == TLSOpportunistic):
		return fmt.Errorf("The relay %s would be sent a readable password: use tls=starttls, smtps:// or auth=cram-md5. Only a relay on this machine may go without.", r.Addr)
	}
	return nil
}

// bares says whether logging in over an unencrypted line would show the password to the network.
func (r Relay) bares() bool {
	if r.Auth != "plain" && r.Auth != "login" {
		return false
	}
	host := r.host()
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

func (r Relay) host() string {
	host, _, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return r.Addr
	}
	return host
}
