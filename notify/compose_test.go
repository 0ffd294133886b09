package notify_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message/mail"

	"github.com/proa-dev/proa/notify"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))

func letter(t testing.TB) notify.Letter {
	t.Helper()
	return notify.Letter{
		Message: notify.Message{
			ID: "m-1", ClientID: "watchdog", KindID: "disk", Class: notify.Bulk, Received: at.Add(-time.Minute), ReplyTo: `"Ops, Ltd." <ops@example.org>`,
			Audience: notify.Audience{Kind: notify.ToSpace, ID: "space-1"},
			Subject:  "Disk full", Text: "The disk is full.\n", HTML: `<html lang="en"><head><title>t</title></head><body class="x"><p>The disk is <b>full</b>.`,
		},
		Template:       parsed(t, notify.Template{Name: "plain", Subject: "CF Notification: {{.Subject}}", Text: "{{.Endorsement}}\n{{.Text}}", HTML: "<p>{{.Endorsement}}</p>{{.HTML}}"}),
		Values:         notify.Values{Space: "dev", Organization: "ferry"},
		Person:         notify.Person{UserID: "u-1", Address: "ann@example.org"},
		DeliveryID:     "d-1",
		From:           "Proa <notifications@example.com>",
		ReturnPath:     "bounce+d-1@bounces.example.com",
		Domain:         "mail.example.com",
		Now:            at,
		UnsubscribeURL: "https://notify.example.com/unsubscribe/abc_-",
	}
}

func TestCompose(t *testing.T) {
	e, err := notify.Compose(letter(t))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"Date: Fri, 02 Jan 2026 02:04:05 +0000",
		`From: "Proa" <notifications@example.com>`,
		"To: ann@example.org",
		`Reply-To: "Ops, Ltd." <ops@example.org>`,
		"Subject: CF Notification: Disk full",
		"Message-ID: <d-1@mail.example.com>",
		"Auto-Submitted: auto-generated",
		"Precedence: bulk",
		"List-Unsubscribe: <https://notify.example.com/unsubscribe/abc_->",
		"List-Unsubscribe-Post: List-Unsubscribe=One-Click",
		"X-CF-Client-ID: watchdog",
		"X-CF-Notification-ID: m-1",
		"X-CF-Notification-Timestamp: 2026-01-02T02:04:05.0000006Z",
		"X-CF-Notification-Request-Received: 2026-01-02T02:03:05.0000006Z",
		"MIME-Version: 1.0",
		"Content-Type: multipart/alternative;",
		` boundary="=_0741a320e613baac937e2644e8e96a28"`,
		"",
		"--=_0741a320e613baac937e2644e8e96a28",
		"Content-Type: text/plain; charset=utf-8",
		"Content-Transfer-Encoding: quoted-printable",
		"",
		`You get this message because you belong to the space "dev" of the organizat=`,
		`ion "ferry".`,
		"The disk is full.",
		"--=_0741a320e613baac937e2644e8e96a28",
		"Content-Type: text/html; charset=utf-8",
		"Content-Transfer-Encoding: quoted-printable",
		"",
		"<!DOCTYPE html>",
		`<html lang=3D"en">`,
		"<head><title>t</title></head>",
		`<body class=3D"x">`,
		"<p>You get this message because you belong to the space &#34;dev&#34; of th=",
		"e organization &#34;ferry&#34;.</p><p>The disk is <b>full</b>.</p>",
		"</body>",
		"</html>",
		"--=_0741a320e613baac937e2644e8e96a28--",
		"",
	}, "\r\n")
	if string(e.Raw) != want {
		t.Errorf("got\n%s\nwant\n%s", e.Raw, want)
	}
	if e.From != "notifications@example.com" || e.To != "ann@example.org" || e.ReturnPath != "bounce+d-1@bounces.example.com" || e.UTF8 {
		t.Errorf("envelope %q %q %q %v", e.From, e.To, e.ReturnPath, e.UTF8)
	}
}

func TestComposeIsStable(t *testing.T) {
	l := letter(t)
	first, err := notify.Compose(l)
	if err != nil {
		t.Fatal(err)
	}
	d, err := notify.SplitHTML(l.Message.HTML)
	if err != nil {
		t.Fatal(err)
	}
	l.Document = &d
	for range 3 {
		if again, err := notify.Compose(l); err != nil || !bytes.Equal(again.Raw, first.Raw) {
			t.Fatalf("got\n%s\nand\n%s (%v)", first.Raw, again.Raw, err)
		}
	}
	l.DeliveryID = "d-2"
	if another, err := notify.Compose(l); err != nil || bytes.Contains(another.Raw, []byte("=_0741a320e613baac937e2644e8e96a28")) {
		t.Errorf("two deliveries share a boundary (%v)", err)
	}
}

// received is a mail as a reader takes it apart.
type received struct {
	header mail.Header
	kind   string
	parts  map[string]string
	order  []string
}

func read(t testing.TB, raw []byte) received {
	t.Helper()
	r, err := mail.CreateReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	got := received{header: r.Header, parts: map[string]string{}}
	if got.kind, _, err = r.Header.ContentType(); err != nil {
		t.Fatal(err)
	}
	for {
		part, err := r.NextPart()
		if err == io.EOF { //nolint:errorlint // the reader returns exactly that
			return got
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, raw)
		}
		kind, params, err := part.Header.(*mail.InlineHeader).ContentType()
		if err != nil || params["charset"] != "utf-8" {
			t.Fatalf("%v, %v in\n%s", params, err, raw)
		}
		body, err := io.ReadAll(part.Body)
		if err != nil {
			t.Fatalf("%v in\n%s", err, raw)
		}
		got.parts[kind] = strings.ReplaceAll(string(body), "\r\n", "\n")
		if got.kind == kind { // a mail ends with the end of a line
			got.parts[kind] = strings.TrimSuffix(got.parts[kind], "\n")
		}
		got.order = append(got.order, kind)
	}
}

func TestComposeParts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*notify.Letter)
		kind   string
		parts  map[string]string
	}{
		"text": {
			func(l *notify.Letter) { l.Message.HTML = "<body></body>" }, "text/plain",
			map[string]string{"text/plain": "This message was sent to you personally.\nThe disk is full."},
		},
		"html": {
			func(l *notify.Letter) { l.Message.Text, l.Message.HTML = " \n", "<i>x" }, "text/html",
			map[string]string{"text/html": "<!DOCTYPE html>\n<html>\n<head></head>\n<body>\n<p>This message was sent to you personally.</p><i>x</i>\n</body>\n</html>"},
		},
		"a template that is a document": {
			func(l *notify.Letter) {
				l.Template = parsed(t, notify.Template{HTML: " <!doctype html><html><head><title>{{.Subject}}</title></head><body>{{.HTML}}</body></html>\n"})
				l.Message.Text = ""
			}, "text/html",
			map[string]string{"text/html": " <!doctype html><html><head><title>Disk full</title></head><body><p>The disk is <b>full</b>.</p></body></html>"},
		},
		"a template without text": {
			func(l *notify.Letter) {
				l.Template = parsed(t, notify.Template{HTML: "{{.HTML}}"})
				l.Message.HTML = ""
			}, "text/plain",
			map[string]string{"text/plain": "The disk is full."},
		},
		"markers in the content": {
			func(l *notify.Letter) { l.Message.Text, l.Message.HTML = "{{.Subject}}{{template \"x\"}}", "" }, "text/plain",
			map[string]string{"text/plain": "This message was sent to you personally.\n{{.Subject}}{{template \"x\"}}"},
		},
		"lines": {
			func(l *notify.Letter) { l.Message.Text, l.Message.HTML = "a\r\rb\r\nc\né\ré\n.\nFrom x\n--=_0", "" }, "text/plain",
			map[string]string{"text/plain": "This message was sent to you personally.\na\n\nb\nc\né\né\n.\nFrom x\n--=_0"},
		},
		"both": {
			func(l *notify.Letter) {
				l.Template = parsed(t, notify.Template{Text: "{{.Text}}\n", HTML: "{{.HTML}}"})
			}, "multipart/alternative",
			map[string]string{
				"text/plain": "The disk is full.\n",
				"text/html":  "<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>t</title></head>\n<body class=\"x\">\n<p>The disk is <b>full</b>.</p>\n</body>\n</html>",
			},
		},
	} {
		l := letter(t)
		l.Message.Audience = notify.Audience{Kind: notify.ToUser, ID: "u-1"}
		c.change(&l)
		e, err := notify.Compose(l)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := read(t, e.Raw)
		if got.kind != c.kind || len(got.parts) != len(c.parts) || len(got.order) == 2 && got.order[0] != "text/plain" {
			t.Errorf("%s: got %s of %q", name, got.kind, got.order)
		}
		for kind, want := range c.parts {
			if got.parts[kind] != want {
				t.Errorf("%s: %s: got %q, want %q", name, kind, got.parts[kind], want)
			}
		}
	}
}

func TestComposeValues(t *testing.T) {
	l := letter(t)
	l.Template = parsed(t, notify.Template{Text: "{{.From}}|{{.To}}|{{.ReplyTo}}|{{.KindDescription}}|{{.SourceDescription}}|{{.ClientID}}|{{.MessageID}}|{{.UserGUID}}|" +
		"{{.Space}}|{{.SpaceGUID}}|{{.Organization}}|{{.OrganizationGUID}}|{{.OrganizationRole}}|{{.Scope}}|{{.UnsubscribeURL}}|{{.Domain}}|{{.RequestReceived}}"})
	l.Message.HTML = ""
	const first = "notifications@example.com|ann@example.org|\"Ops, Ltd.\" <ops@example.org>|disk|watchdog|watchdog|m-1|u-1|"
	const last = "|mail.example.com|2026-01-02 02:03:05.0000006 +0000 UTC"
	const link = "https://notify.example.com/unsubscribe/abc_-"
	for name, c := range map[string]struct {
		audience notify.Audience
		critical bool
		want     string
	}{
		"space":        {notify.Audience{Kind: notify.ToSpace, ID: "s"}, false, "dev|s|ferry||||" + link},
		"organization": {notify.Audience{Kind: notify.ToOrganization, ID: "o", Role: "OrgManager"}, false, "dev||ferry|o|OrgManager||" + link},
		"scope":        {notify.Audience{Kind: notify.ToScope, ID: "a.b"}, false, "dev||ferry|||a.b|" + link},
		"critical":     {notify.Audience{Kind: notify.ToEveryone}, true, "dev||ferry||||"},
	} {
		l.Message.Audience, l.Message.Critical = c.audience, c.critical
		e, err := notify.Compose(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, e.Raw).parts["text/plain"]; got != first+c.want+last {
			t.Errorf("%s: got %q, want %q", name, got, first+c.want+last)
		}
	}
}

func TestEndorsement(t *testing.T) {
	for want, c := range map[string]struct {
		audience            notify.Audience
		space, organization string
	}{
		"This message was sent to you personally.":                                                         {notify.Audience{Kind: notify.ToUser}, "", ""},
		"This message was sent to your e-mail address.":                                                    {notify.Audience{Kind: notify.ToEmail}, "", ""},
		"This message was sent to everyone.":                                                               {notify.Audience{Kind: notify.ToEveryone}, "", ""},
		`You get this message because you hold the scope "a.b".`:                                           {notify.Audience{Kind: notify.ToScope, ID: "a.b"}, "", ""},
		`You get this message because you belong to the space "dev" of the organization "ferry".`:          {notify.Audience{Kind: notify.ToSpace, ID: "x"}, "dev", "ferry"},
		`You get this message because you belong to the space "guid".`:                                     {notify.Audience{Kind: notify.ToSpace, ID: "guid"}, "", ""},
		`You get this message because you belong to the organization "ferry".`:                             {notify.Audience{Kind: notify.ToOrganization, ID: "x"}, "", "ferry"},
		`You get this message because you are a manager in the organization "guid".`:                       {notify.Audience{Kind: notify.ToOrganization, ID: "guid", Role: "OrgManager"}, "", ""},
		`You get this message because you are a developer in the space "dev" of the organization "ferry".`: {notify.Audience{Kind: notify.ToSpace, ID: "x", Role: "SpaceDeveloper"}, "dev", "ferry"},
		"": {},
	} {
		if got := notify.Endorsement(notify.Message{Audience: c.audience}, c.space, c.organization); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// wanted are the headers of every mail; possible are those some have. Nothing else may ever stand in one.
var (
	wanted = []string{
		"Date", "From", "To", "Subject", "Message-Id", "Auto-Submitted", "X-Cf-Client-Id", "X-Cf-Notification-Id", "X-Cf-Notification-Timestamp",
		"X-Cf-Notification-Request-Received", "Mime-Version", "Content-Type",
	}
	possible = []string{"Reply-To", "Precedence", "List-Unsubscribe", "List-Unsubscribe-Post", "Content-Transfer-Encoding"}
)

// checkMail reads a mail and holds it against the letter.
func checkMail(t testing.TB, l notify.Letter, e notify.Envelope) {
	t.Helper()
	got := read(t, e.Raw)
	count := map[string]int{}
	for fields := got.header.Fields(); fields.Next(); {
		count[fields.Key()]++
	}
	for _, name := range wanted {
		if count[name] != 1 {
			t.Fatalf("%d of %s in\n%s", count[name], name, e.Raw)
		}
		delete(count, name)
	}
	for _, name := range possible {
		if count[name] > 1 {
			t.Fatalf("%d of %s in\n%s", count[name], name, e.Raw)
		}
		delete(count, name)
	}
	if len(count) > 0 {
		t.Fatalf("unexpected %v in\n%s", count, e.Raw)
	}
	listed := !l.Message.Critical && l.UnsubscribeURL != ""
	if got.header.Has("List-Unsubscribe") != listed || got.header.Has("List-Unsubscribe-Post") != listed ||
		got.header.Has("Reply-To") != (l.Message.ReplyTo != "") || got.header.Has("Precedence") != (l.Message.Class == notify.Bulk) {
		t.Fatalf("headers missing or too many in\n%s", e.Raw)
	}
	checkLines(t, e)
	checkAddresses(t, e, got)
	checkContent(t, l, got)
}

func checkLines(t testing.TB, e notify.Envelope) {
	t.Helper()
	if !bytes.HasSuffix(e.Raw, []byte("\r\n")) {
		t.Fatalf("no end of line at the end of\n%q", e.Raw)
	}
	for line := range bytes.SplitSeq(e.Raw, []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsAny(line, "\r\n\x00") || !e.UTF8 && !isASCII(line) {
			t.Fatalf("the line %q in\n%s", line, e.Raw)
		}
	}
}

func isASCII(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r > '~' })
}

func checkAddresses(t testing.TB, e notify.Envelope, got received) {
	t.Helper()
	for name, want := range map[string]string{"From": e.From, "To": e.To, "Reply-To": ""} {
		list, err := got.header.AddressList(name)
		if err != nil || len(list) != 1 && name != "Reply-To" || len(list) > 1 {
			t.Fatalf("%s is %v (%v) in\n%s", name, list, err, e.Raw)
		}
		if len(list) == 1 && want != "" && !strings.Contains(list[0].String(), "<"+want+">") {
			t.Fatalf("%s is %v, want %s, in\n%s", name, list, want, e.Raw)
		}
	}
}

func checkContent(t testing.TB, l notify.Letter, got received) {
	t.Helper()
	d, err := notify.SplitHTML(l.Message.HTML)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := got.header.Subject()
	if err != nil {
		t.Fatal(err)
	}
	id, err := got.header.MessageID()
	if err != nil || id != l.DeliveryID+"@"+l.Domain {
		t.Fatalf("Message-ID %q (%v)", id, err)
	}
	rendered, err := l.Template.Render(notify.Values{Subject: l.Message.Subject, Text: l.Message.Text, HTML: d.Body})
	if err != nil {
		t.Fatal(err)
	}
	if subject != rendered.Subject {
		t.Fatalf("subject %q, want %q", subject, rendered.Subject)
	}
	lines := func(s string) string {
		return strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "�")
	}
	hasText, hasHTML := strings.TrimSpace(l.Message.Text) != "", notify.HasBody(l.Message.HTML)
	if text, ok := got.parts["text/plain"]; ok != hasText || ok && text != lines(rendered.Text) {
		t.Fatalf("text %q, want %q", text, lines(rendered.Text))
	}
	if html, ok := got.parts["text/html"]; ok != hasHTML || ok && html != lines(d.With(rendered.HTML)) {
		t.Fatalf("html %q, want %q", html, lines(d.With(rendered.HTML)))
	}
}

// plain is a template that says what the client said.
func plain(t testing.TB) *notify.Parsed {
	t.Helper()
	return parsed(t, notify.Template{Subject: "{{.Subject}}", Text: "{{.Text}}", HTML: "{{.HTML}}"})
}

// TestComposeHostile puts into every field what might become a header, a recipient or a part of its own. A field either is refused,
// or says what it said and nothing more.
func TestComposeHostile(t *testing.T) {
	for _, evil := range []string{
		"a\r\nBcc: evil@example.net", "a\nBcc: evil@example.net", "a\rBcc: evil@example.net", "a\r\n\r\n<h1>body</h1>", "a\x00b", "\r\n", "\t",
		"a\u0085Bcc: x", "a\u2028Bcc: x", strings.Repeat("x", 2000), strings.Repeat("x ", 900), strings.Repeat("é", 900), strings.Repeat(" ", 900) + "x",
		"😀 smile", strings.Repeat("😀", 300), "שלום עולם", "\u202Egnp.exe", "a, b <c@d.example>", "a@b.example, c@d.example", "<a@b.example>",
		"\"a\" <a@b.example>\r\nBcc: x@y.example", "=?utf-8?q?a=0D=0ABcc:_x@y.example?=", "=?utf-8?q?a=0D=0ABcc:_x?= <a@b.example>", "a@b.example>\r\nX: <",
		"\xff\xfe", "a\xffb@example.org", "--=_0741a320e613baac937e2644e8e96a28--", "\r\n.\r\nMAIL FROM:<x@y.example>", "{{.Text}}", "-->", "</body></html>",
		"ü@exämple.org", "\"a b\"@example.org", "a@[127.0.0.1]", "a@b..example", "@", "a@", "", strings.Repeat("a", 65) + "@example.org",
		"https://x.example/\r\nBcc: y", "https://x.example/>,<mailto:y@z.example", "javascript:alert(1)",
	} {
		for name, set := range map[string]func(*notify.Letter){
			"subject":        func(l *notify.Letter) { l.Message.Subject = evil },
			"text":           func(l *notify.Letter) { l.Message.Text = evil },
			"html":           func(l *notify.Letter) { l.Message.HTML = evil },
			"reply_to":       func(l *notify.Letter) { l.Message.ReplyTo = evil },
			"client":         func(l *notify.Letter) { l.Message.ClientID = evil },
			"message":        func(l *notify.Letter) { l.Message.ID = evil },
			"kind":           func(l *notify.Letter) { l.Message.KindID = evil },
			"person":         func(l *notify.Letter) { l.Person.Address = evil },
			"user":           func(l *notify.Letter) { l.Person.UserID = evil },
			"from":           func(l *notify.Letter) { l.From = evil },
			"name of from":   func(l *notify.Letter) { l.From = evil + " <a@b.example>" },
			"return path":    func(l *notify.Letter) { l.ReturnPath = evil },
			"delivery":       func(l *notify.Letter) { l.DeliveryID = evil },
			"domain":         func(l *notify.Letter) { l.Domain = evil },
			"unsubscribe":    func(l *notify.Letter) { l.UnsubscribeURL = evil },
			"class":          func(l *notify.Letter) { l.Message.Class = notify.Class(evil) },
			"endorsement":    func(l *notify.Letter) { l.Values.Endorsement = evil },
			"unsubscribe id": func(l *notify.Letter) { l.Values.UnsubscribeID = evil },
		} {
			l := letter(t)
			l.Template = plain(t)
			set(&l)
			e, err := notify.Compose(l)
			if err != nil {
				switch name {
				case "subject", "text", "client", "message", "kind", "user", "class", "endorsement", "unsubscribe id":
					t.Errorf("%s %q: refused: %v", name, evil, err)
				}
				if e.Raw != nil || !utf8.ValidString(err.Error()) {
					t.Errorf("%s %q: an error and %q", name, evil, e.Raw)
				}
				continue
			}
			checkMail(t, l, e)
		}
	}
}

func TestComposeAddresses(t *testing.T) {
	for given, want := range map[string]struct {
		to   string
		utf8 bool
	}{
		"ann@example.org":       {"ann@example.org", false},
		"Ann <ann@example.org>": {"ann@example.org", false},
		"ann@exämple.org":       {"ann@xn--exmple-cua.org", false},
		"änn@exämple.org":       {"änn@xn--exmple-cua.org", true},
		`"ann.@x"@example.org`:  {`"ann.@x"@example.org`, false},
		`"a\"b\\c"@example.org`: {`"a\"b\\c"@example.org`, false},
		"ann@[127.0.0.1]":       {"ann@[127.0.0.1]", false},
	} {
		l := letter(t)
		l.Person.Address, l.ReturnPath = given, ""
		e, err := notify.Compose(l)
		if err != nil || e.To != want.to || e.UTF8 != want.utf8 || e.ReturnPath != e.From {
			t.Errorf("%s: got %q, %v, %q, %v; want %+v", given, e.To, e.UTF8, e.ReturnPath, err, want)
		}
	}
}

func TestComposeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*notify.Letter)
		want   string
	}{
		"no template":   {func(l *notify.Letter) { l.Template = nil }, "there is no template"},
		"no address":    {func(l *notify.Letter) { l.Person.Address = "" }, "to: "},
		"two addresses": {func(l *notify.Letter) { l.Person.Address = "a@b.example, c@d.example" }, "to: "},
		"an unseen one": {func(l *notify.Letter) { l.Person.Address = "a\u200b@b.example" }, "to: "},
		"a domain":      {func(l *notify.Letter) { l.Person.Address = "a@ex\u0301\u0301-.é" }, "to: "},
		"no sender":     {func(l *notify.Letter) { l.From = "Proa" }, "from: "},
		"return path":   {func(l *notify.Letter) { l.ReturnPath = "x" }, "return path: "},
		"reply_to":      {func(l *notify.Letter) { l.Message.ReplyTo = "a@b.example\r\nBcc: c@d.example" }, "reply_to: "},
		"no delivery":   {func(l *notify.Letter) { l.DeliveryID = "" }, "must consist of"},
		"domain":        {func(l *notify.Letter) { l.Domain = "a b" }, "must consist of"},
		"link":          {func(l *notify.Letter) { l.UnsubscribeURL = "mailto:a@b.example" }, "not an address of a page"},
		"long link":     {func(l *notify.Letter) { l.UnsubscribeURL = "https://" + strings.Repeat("x", 900) }, "not an address of a page"},
		"nothing said":  {func(l *notify.Letter) { l.Message.Text, l.Message.HTML = " ", "<p>" }, "neither text nor html"},
		"deep html":     {func(l *notify.Letter) { l.Message.HTML = strings.Repeat("<div>", 300) }, "inside each other"},
		"large": {func(l *notify.Letter) {
			l.Template = parsed(t, notify.Template{HTML: strings.Repeat("{{.HTML}}", 5)})
			l.Message.HTML = strings.Repeat("<p>x</p>", notify.MaxHTML/8)
		}, "2097152 bytes"},
	} {
		l := letter(t)
		c.change(&l)
		e, err := notify.Compose(l)
		if err == nil || !strings.Contains(err.Error(), c.want) || e.Raw != nil {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// FuzzCompose: whatever the fields hold, a mail that comes out can be read, has each of our headers once and no other, and says what
// the fields said.
func FuzzCompose(f *testing.F) {
	f.Add("subject", "text", "<p>html", "a@b.example", "client", "ann@example.org", "Proa <a@b.example>", "https://x.example", false)
	f.Add("a\r\nBcc: x", "\r\x00\n", "</body>", "A <a@b.example>", "c\r\nX: y", "ä@ö.example", "\"a\\\"b\" <a@b.example>", "", true)
	f.Add("=?utf-8?q?a?=", "é\r\xff\n", "<plaintext>", "", "😀", "\"a b\"@c.example", "=?utf-8?q?=0D=0A?= <a@b.example>", "http://y.example/%0d", false)
	f.Add(strings.Repeat("x", 1200), "", "<!doctype x SYSTEM '\">'><html a=b><body c=\"d\">e", "", "", "a@[::1]", "a@b.example", "https://x.example/", false)
	template := plain(f)
	f.Fuzz(func(t *testing.T, subject, text, html, replyTo, client, to, from, link string, critical bool) {
		l := notify.Letter{
			Message:  notify.Message{ID: client, ClientID: client, Critical: critical, Subject: subject, Text: text, HTML: html, ReplyTo: replyTo},
			Template: template, Person: notify.Person{Address: to}, DeliveryID: "d-1", From: from, Domain: "example.com", Now: at, UnsubscribeURL: link,
		}
		if critical {
			l.Message.Class = notify.Bulk
		}
		e, err := notify.Compose(l)
		if err != nil {
			if e.Raw != nil {
				t.Fatal("an error and a mail")
			}
			return
		}
		checkMail(t, l, e)
		if again, err := notify.Compose(l); err != nil || !bytes.Equal(again.Raw, e.Raw) {
			t.Fatalf("got\n%s\nand\n%s (%v)", e.Raw, again.Raw, err)
		}
	})
}

func BenchmarkCompose(b *testing.B) {
	l := letter(b)
	l.Message.Text = strings.Repeat("All is well on board. ", 35)
	l.Message.HTML = strings.Repeat("<p>All is <b>well</b> on board.</p>", 35)
	d, err := notify.SplitHTML(l.Message.HTML)
	if err != nil {
		b.Fatal(err)
	}
	l.Document = &d
	b.ReportAllocs()
	for b.Loop() {
		e, err := notify.Compose(l)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(e.Raw)))
	}
}

func BenchmarkSplitHTML(b *testing.B) {
	source := "<html><body>" + strings.Repeat("<p>All is <b>well</b> on <a href='https://example.org'>board</a>.</p>", notify.MaxHTML/80)
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := notify.SplitHTML(source); err != nil {
			b.Fatal(err)
		}
	}
}
