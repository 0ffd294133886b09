package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	v1 "github.com/proa-dev/proa/notify/v1"
	v3 "github.com/proa-dev/proa/platform/v3"
)

type notifySendOptions struct {
	user, space, org, scope, email           *string
	everyone, wait                           *bool
	kind, subject, text, html, replyTo, role *string
	once                                     *string
	as                                       func(context.Context, *session) (*sender, error)
}

var notifySendCommand = command{
	name: "notify send", group: notifications, short: "Send a notification to a user, a space, an organization, everyone, a scope or an address",
	long: "A text or HTML may be read from a file with @FILE, or from the input with -. The message is taken at once and sent in the background; --wait stays\n" +
		"until it has reached everybody. Names of users, spaces and organizations are looked up with your login; ids need none.",
	examples: []string{
		"proa notify send --user ada --kind tides --subject 'High water at 14:20' --text 'High water at 14:20, 3.1 m.'",
		"proa notify send --space dev --kind release --subject 'Version 2 is out' --text @news.txt --html @news.html --wait",
		"date | proa notify send --everyone --kind storm --subject 'Storm from the west' --text -",
		"proa notify send --email pilot@example.org --subject 'A guest' --text 'One guest at berth 4.' --reply-to office@example.org",
	},
	setup: func(f *flags) action {
		o := notifySendOptions{
			user: f.text("user", "USER", "to one person, by name or id"), space: f.text("space", "SPACE", "to everybody with a role in a space, by its name in the target or its id"),
			org: f.text("org", "ORG", "to everybody with a role in an organization, by name or id"), role: f.text("role", "ROLE", "with --space or --org only to those with this role: SpaceDeveloper, SpaceManager, SpaceAuditor; OrgManager, OrgAuditor, BillingManager"),
			everyone: f.on("everyone", "to all users"), scope: f.text("scope", "SCOPE", "to all holders of a scope"), email: f.text("email", "ADDRESS", "to an address; --kind may be left out"),
			kind: f.text("kind", "KIND", "a registered kind"), subject: f.text("subject", "SUBJECT", "the subject"),
			text: f.text("text", "TEXT", "what it says: a text, @FILE or -"), html: f.text("html", "HTML", "the same as HTML: a text, @FILE or -"),
			replyTo: f.text("reply-to", "ADDRESS", "where answers go"),
			wait:    f.on("wait", "stay until it is delivered, and show how far it is"),
			once:    f.text("once", "KEY", "send under this name only once in 24 hours, however often the command runs"),
		}
		o.as = senderFlags(f)
		f.output()
		return o.run
	},
}

func (o notifySendOptions) run(ctx context.Context, s *session, _ []string) error {
	if err := o.check(); err != nil {
		return err
	}
	m := v1.Message{KindID: *o.kind, To: *o.email, Subject: *o.subject, ReplyTo: *o.replyTo, Role: *o.role}
	var err error
	if m.Text, err = s.words("--text", *o.text); err != nil {
		return err
	}
	if m.HTML, err = s.words("--html", *o.html); err != nil {
		return err
	}
	x, err := o.as(ctx, s)
	if err != nil {
		return err
	}
	to, err := o.audience(ctx, x)
	if err != nil {
		return err
	}
	got, err := x.service.Send(ctx, to, m, firstOf(*o.once, rand.Text())) // with a name of its own, what was lost on the way can be sent again
	if err != nil {
		return x.explain(err)
	}
	switch {
	case *o.wait:
		return x.follow(ctx, got.ID)
	case s.flags.json:
		return s.json(got)
	}
	s.say("%s Message %s is on its way.", s.green("OK"), s.bold(clean(got.ID)))
	s.say("\nNext: proa notify message %s --wait    # shows how far it is", shell(got.ID))
	return nil
}

// check refuses what no service needs to be asked about.
func (o notifySendOptions) check() error {
	named := 0
	for _, name := range []string{*o.user, *o.space, *o.org, *o.scope, *o.email} {
		if name != "" {
			named++
		}
	}
	if *o.everyone {
		named++
	}
	switch {
	case named != 1:
		p := usage("Say who gets it, with exactly one of --user, --space, --org, --everyone, --scope and --email.")
		p.next = "proa notify send --help"
		return p
	case *o.kind == "" && *o.email == "":
		p := usage("--kind is missing.")
		p.next = "proa notify kinds    # lists those that are registered"
		return p
	case *o.text == "" && *o.html == "":
		return usage("Say something, with --text or --html.")
	case *o.text == "-" && *o.html == "-":
		return usage("Only one of --text and --html can be read from the input.")
	case *o.role != "" && *o.space == "" && *o.org == "":
		return usage("--role is about a space or an organization. Name it with --space or --org.")
	}
	return nil
}

const maxWords = 1 << 20 // more than any part of a message may be: the service says how much that is

// words reads what a message says: as it is given, from a file with @, or from the input with -.
func (s *session) words(option, text string) (string, error) {
	name, isFile := strings.CutPrefix(text, "@")
	in := s.In
	switch {
	case isFile:
		f, err := os.Open(s.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return "", usage("There is no file %q for %s. A text that begins with @ itself can be given through the input, with -.", name, option)
		}
		if err != nil {
			return "", usage("The file for %s cannot be read: %v.", option, err)
		}
		defer func() { _ = f.Close() }()
		in = f
	case text != "-":
		return text, nil
	}
	data, err := io.ReadAll(io.LimitReader(in, maxWords+1))
	switch {
	case err != nil:
		return "", usage("What is meant for %s cannot be read: %v.", option, err)
	case len(data) > maxWords:
		return "", usage("What is meant for %s is larger than %s.", option, size(maxWords))
	case len(data) == 0:
		return "", usage("What is meant for %s is empty.", option)
	}
	return string(data), nil
}

var anID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// audience is who gets it. What looks like an id is one.
func (o notifySendOptions) audience(ctx context.Context, x *sender) (v1.Audience, error) {
	switch {
	case *o.everyone:
		return v1.ToEveryone, nil
	case *o.email != "":
		return v1.ToEmail, nil
	case *o.scope != "":
		return v1.ToScope(*o.scope), nil
	case *o.user != "":
		guid, err := x.userGUID(ctx, *o.user)
		return v1.ToUser(guid), err
	case anID.MatchString(*o.space):
		return v1.ToSpace(*o.space), nil
	case *o.space != "":
		if err := x.have(anOrg); err != nil {
			return "", err
		}
		space, err := x.findSpace(ctx, x.cfg.Org.GUID, *o.space)
		return v1.ToSpace(space.GUID), err
	case anID.MatchString(*o.org):
		return v1.ToOrganization(*o.org), nil
	}
	if err := x.have(aLogin); err != nil {
		return "", err
	}
	org, err := x.findOrg(ctx, *o.org)
	return v1.ToOrganization(org.GUID), err
}

// userGUID looks a user up among those whom the platform shows to the login, and then at the authorization server: with the login, and
// with the client's own token.
func (x *sender) userGUID(ctx context.Context, name string) (string, error) {
	if anID.MatchString(name) {
		return name, nil
	}
	askers := []*uaa.Conn{x.token}
	if x.cfg.Access != "" {
		found, err := v3.All[v3.User](ctx, x.api, "/v3/users?usernames="+queryName(name))
		switch {
		case err != nil && !(x.cfg.ClientID != "" && mayNotLook(err)): // a client may be logged in that has nothing to do with the platform
			return "", err
		case len(found) == 1:
			return found[0].GUID, nil
		case len(found) > 1:
			return "", severalUsers(len(found), name, "    # proa curl '/v3/users?usernames="+url.QueryEscape(name)+"'")
		}
		askers = []*uaa.Conn{x.auth, x.token}
	}
	for _, conn := range askers {
		ids, err := idsOf(ctx, conn, name)
		switch {
		case err != nil && !mayNotLook(err):
			return "", err
		case len(ids) == 1:
			return ids[0], nil
		case len(ids) > 1:
			return "", severalUsers(len(ids), name, "")
		}
	}
	return "", missing("give the user's id, or use a login or a client (scim.read) that may see the user", "There is no user %q, or you may not see them.", name)
}

func severalUsers(n int, name, how string) error {
	return failed("give the user's id"+how, "There are %d users of the name %q, who log in in different places.", n, name)
}

// mayNotLook tells whether a server takes the token for none of its own, or for one without the scope. That a login has ended is another matter.
func mayNotLook(err error) bool {
	var p *problem
	return !errors.As(err, &p) && (fault.Is(err, fault.KindUnauthorized) || fault.Is(err, fault.KindForbidden))
}
