package cli

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	v1 "github.com/proa-dev/proa/notify/v1"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// notifications is the title under which help shows the commands of proa notify.
const notifications = "Notifications"

// sender is a client of the notification service. It acts for itself, whoever is logged in.
type sender struct {
	*session
	id      string
	service *v1.Client
	token   *uaa.Conn // the authorization server, with the sender's own token
}

// senderFlags let a command act as a client.
func senderFlags(f *flags) func(context.Context, *session) (*sender, error) {
	client := f.text("client", "ID", "the client that acts, if PROA_NOTIFY_CLIENT_ID does not name it; PROA_NOTIFY_CLIENT_SECRET is its secret")
	return func(ctx context.Context, s *session) (*sender, error) {
		places, err := s.findNotify(ctx)
		if err != nil {
			return nil, err
		}
		x := &sender{session: s, id: firstOf(*client, s.Getenv("PROA_NOTIFY_CLIENT_ID")), token: &uaa.Conn{URL: places.auth, HTTP: s.http}}
		if x.token.Token, err = x.credentials(ctx); err != nil {
			return nil, err
		}
		x.service = s.notifyClient(places, x.token.Token)
		return x, nil
	}
}

// credentials are the sender's: those that are named, or else those of the client that is logged in.
func (x *sender) credentials(ctx context.Context) (func(context.Context) (string, error), error) {
	if x.id == "" && x.cfg.ClientID != "" && x.cfg.Access != "" {
		x.id = x.cfg.ClientID
		return x.accessToken, nil
	}
	if x.id == "" {
		return nil, &problem{says: "No client is named that sends. Notifications are sent by a client with a secret, not by a person.", code: ExitUsage,
			next: "set PROA_NOTIFY_CLIENT_ID and PROA_NOTIFY_CLIENT_SECRET    # an administrator makes a client with: proa create-client ID --authority " +
				"notifications.write,notifications.manage,notification_templates.read,notification_templates.write"}
	}
	secret := x.Getenv("PROA_NOTIFY_CLIENT_SECRET")
	if secret == "" && x.InTTY {
		var err error
		if secret, err = x.askHidden(ctx, "Secret of "+clean(x.id)); err != nil {
			return nil, err
		}
	}
	if secret == "" {
		return nil, &problem{says: "The secret of the client " + x.id + " is missing.", next: "set PROA_NOTIFY_CLIENT_SECRET", code: ExitUsage}
	}
	ask := x.token.ClientCredentials(x.id, secret)
	return func(ctx context.Context) (string, error) {
		token, err := ask(ctx)
		if fault.Is(err, fault.KindUnauthorized) || fault.Is(err, fault.KindInvalid) {
			return "", &problem{says: "The authorization server does not take the client " + x.id + " and its secret: " + fault.From(err).Detail, code: ExitLogin, cause: err,
				next: "set PROA_NOTIFY_CLIENT_ID and PROA_NOTIFY_CLIENT_SECRET to those of a client that may use client_credentials"}
		}
		return token, err
	}, nil
}

// notifyPlaces are the addresses of the notification service and of the authorization server whose tokens it takes.
type notifyPlaces struct{ service, auth string }

// findNotify takes the addresses from the environment, and asks the API for what is not there.
func (s *session) findNotify(ctx context.Context) (notifyPlaces, error) {
	at := notifyPlaces{service: s.Getenv("PROA_NOTIFY_URL"), auth: firstOf(s.Getenv("PROA_AUTH_URL"), s.cfg.Login)}
	if at.service == "" || at.auth == "" {
		if s.cfg.API == "" {
			return at, &problem{says: "Nothing says where the notification service is.", next: "proa api URL    # or set PROA_NOTIFY_URL and PROA_AUTH_URL", code: ExitLogin}
		}
		if err := s.askNotify(ctx, &at); err != nil {
			return at, err
		}
	}
	for _, place := range []*string{&at.service, &at.auth} {
		address, err := cleanURL(*place)
		if err != nil {
			return at, usage("%q is not an address. Write it as https://notify.example.com.", *place)
		}
		if *place = address; exposed(address) {
			s.warn(address + " is not encrypted: secrets and tokens can be read on the way.")
		}
	}
	return at, nil
}

func (s *session) askNotify(ctx context.Context, at *notifyPlaces) error {
	var root v3.Root
	open := *s.api
	open.Token = nil
	if err := open.Call(ctx, http.MethodGet, "/", nil, &root); err != nil {
		return err
	}
	for name, place := range map[string]*string{"notifications": &at.service, "login": &at.auth} {
		if link := root.Links[name]; link != nil && *place == "" {
			*place = link.Href
		}
	}
	if at.service == "" {
		return failed("set PROA_NOTIFY_URL, or ask the operator of "+s.cfg.API+" where the notification service is", "The API does not name a notification service.")
	}
	if at.auth == "" {
		return failed("set PROA_AUTH_URL", "The API does not say which authorization server it uses.")
	}
	return nil
}

func (s *session) notifyClient(at notifyPlaces, token func(context.Context) (string, error)) *v1.Client {
	return &v1.Client{URL: at.service, HTTP: s.http, Token: token, Agent: s.agent(), Pause: s.Poll}
}

// call asks the service, and adds the next step to a refusal.
func (x *sender) call(ctx context.Context, method, path string, in, out any) error {
	return x.explain(x.service.Call(ctx, method, path, in, out))
}

var (
	scopeName    = regexp.MustCompile(`\b(?:(?:critical_)?notifications|notification_templates|notification_preferences|emails)\.(?:read|write|manage|admin)\b`)
	unregistered = regexp.MustCompile(`^The kind "([\w.-]+)" is not registered`)
)

// explain keeps the words of the service and says what helps. The next steps for a person do not help a client.
func (x *sender) explain(err error) error {
	var p *problem
	f := fault.From(err)
	if err == nil || errors.As(err, &p) || f.Kind == fault.KindInternal || f.Kind == fault.KindUnavailable {
		return err
	}
	p = &problem{says: f.Detail, code: ExitFailed, cause: err}
	if f.Kind == fault.KindNotFound {
		p.code = ExitNotFound
	}
	kind, scope := unregistered.FindStringSubmatch(f.Detail), scopeName.FindString(f.Detail)
	switch {
	case f.Kind == fault.KindUnauthorized:
		p.code, p.next = ExitLogin, "check that "+x.service.URL+" takes tokens of "+x.token.URL
	case kind != nil:
		p.next = "proa notify register --source NAME --kind " + shell(kind[1]+"=DESCRIPTION") + "    # proa notify kinds lists those there are"
	case scope != "":
		p.next = "proa update-client " + shell(x.id) + " --add-authority " + scope + "    # an administrator does this"
	case strings.Contains(f.Detail, "has registered nothing"):
		p.next = "proa notify register --source NAME --kind ID=DESCRIPTION"
	case strings.Contains(f.Detail, "here is no template"):
		p.next = "proa notify template list"
	case strings.Contains(f.Detail, "template is in use"):
		p.next = "proa notify template assign default --kind KIND    # proa notify kinds --all shows which kinds use it"
	}
	return p
}
