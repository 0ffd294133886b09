package notify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime/quotedprintable"
	"strings"
	"time"
	"unicode/utf8"
)

// Letter is all that a mail to one person is made of.
type Letter struct {
	Message        Message
	Document       *Document // the message's HTML; nil: it is taken apart here, which costs more than all the rest
	Template       *Parsed
	Values         Values // what only the caller knows: descriptions, names of space and organization, the unsubscribe id
	Person         Person
	DeliveryID     string
	From           string // address, or Name <address>
	ReturnPath     string // address; empty: that of From
	Domain         string // behind the @ of the Message-ID
	Now            time.Time
	Received       time.Time // zero: that of the message
	UnsubscribeURL string    // empty for a bare address
}

// Envelope is a mail and what SMTP is told of it.
type Envelope struct {
	From       string // the address in the header; MAIL FROM is ReturnPath
	ReturnPath string
	To         string
	Raw        []byte
	UTF8       bool // the mail holds an address that needs SMTPUTF8
}

// Compose writes the mail to one person. The same letter gives the same bytes, so an error is one for good: trying again does not
// help. A mail is whole or there is none.
func Compose(l Letter) (Envelope, error) {
	var e Envelope
	h, err := l.head(&e)
	if err != nil {
		return Envelope{}, fmt.Errorf("compose: %w", err)
	}
	if l.Document == nil {
		d, err := SplitHTML(l.Message.HTML)
		if err != nil {
			return Envelope{}, fmt.Errorf("compose: html %w", err)
		}
		l.Document = &d
	}
	hasText, hasHTML := strings.TrimSpace(l.Message.Text) != "", l.Document.shows
	if !hasText && !hasHTML {
		return Envelope{}, errors.New("compose: the message has neither text nor html")
	}
	values := l.values(&e, h)
	data := values.view()
	buf, text, html := borrow(), borrow(), borrow()
	defer giveBack(buf)
	defer giveBack(text)
	defer giveBack(html)
	if h.subject, err = l.Template.renderSubject(buf, data); err != nil {
		return Envelope{}, fmt.Errorf("compose: subject: %w", err)
	}
	if hasText {
		if err := execute(l.Template.text, text, data); err != nil {
			return Envelope{}, fmt.Errorf("compose: text: %w", err)
		}
	}
	if hasHTML {
		if err := l.writeHTML(html, buf, data); err != nil {
			return Envelope{}, fmt.Errorf("compose: html: %w", err)
		}
	}
	out := bytes.NewBuffer(make([]byte, 0, 2048+(text.Len()+html.Len())*9/8))
	l.writeHead(out, h)
	switch {
	case hasText && hasHTML:
		l.writeBoth(out, text.Bytes(), html.Bytes())
	case hasText:
		writePart(out, "text/plain", text.Bytes())
	default:
		writePart(out, "text/html", html.Bytes())
	}
	e.Raw = out.Bytes()
	return e, nil
}

// head is the values of the headers, ready to be written.
type head struct {
	from, to, replyTo, subject, id, unsubscribe string
}

func (l *Letter) head(e *Envelope) (head, error) {
	var h head
	var err error
	if l.Template == nil {
		return h, errors.New("there is no template")
	}
	if e.From, h.from, err = mailbox(l.From); err != nil {
		return h, fmt.Errorf("from: %w", err)
	}
	if e.To, _, err = mailbox(l.Person.Address); err != nil {
		return h, fmt.Errorf("to: %w", err)
	}
	h.to = e.To
	e.ReturnPath = e.From
	if l.ReturnPath != "" {
		if e.ReturnPath, _, err = mailbox(l.ReturnPath); err != nil {
			return h, fmt.Errorf("return path: %w", err)
		}
	}
	if l.Message.ReplyTo != "" {
		if _, h.replyTo, err = mailbox(l.Message.ReplyTo); err != nil {
			return h, fmt.Errorf("reply_to: %w", err)
		}
	}
	if !isName(l.DeliveryID) || !isName(l.Domain) {
		return h, fmt.Errorf("the delivery %s and the domain %s must consist of letters, digits, dots and hyphens", quote(l.DeliveryID), quote(l.Domain))
	}
	h.id = "<" + l.DeliveryID + "@" + l.Domain + ">"
	if !l.Message.Critical && l.UnsubscribeURL != "" {
		if !isURL(l.UnsubscribeURL) {
			return h, fmt.Errorf("%s is not an address of a page", quote(l.UnsubscribeURL))
		}
		h.unsubscribe = l.UnsubscribeURL
	}
	e.UTF8 = !isASCII(e.To) || !isASCII(h.from) || !isASCII(h.replyTo) || !isASCII(e.ReturnPath)
	return h, nil
}

// isName tells whether s may stand on one side of the @ of a Message-ID.
func isName(s string) bool {
	return s != "" && len(s) <= maxID && s[0] != '.' && s[len(s)-1] != '.' && !strings.Contains(s, "..") && ValidKindID(s)
}

func isURL(s string) bool {
	return (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")) && len(s) <= 900 &&
		!strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' || r == '"' })
}

// values adds what the letter says by itself to what the caller said.
func (l *Letter) values(e *Envelope, h head) Values {
	m, v := &l.Message, l.Values
	v.From, v.To, v.ReplyTo = e.From, e.To, m.ReplyTo
	v.Subject, v.Text, v.HTML = m.Subject, m.Text, l.Document.Body
	v.ClientID, v.MessageID, v.UserGUID = m.ClientID, m.ID, l.Person.UserID
	v.Domain, v.UnsubscribeURL, v.RequestReceived = l.Domain, h.unsubscribe, l.received()
	switch m.Audience.Kind {
	case ToSpace:
		v.SpaceGUID = m.Audience.ID
	case ToOrganization:
		v.OrganizationGUID, v.OrganizationRole = m.Audience.ID, m.Audience.Role
	case ToScope:
		v.Scope = m.Audience.ID
	}
	if v.KindDescription == "" {
		v.KindDescription = m.KindID
	}
	if v.SourceDescription == "" {
		v.SourceDescription = m.ClientID
	}
	if v.Endorsement == "" {
		v.Endorsement = Endorsement(*m, v.Space, v.Organization)
	}
	return v
}

func (l *Letter) received() time.Time {
	if l.Received.IsZero() {
		return l.Message.Received
	}
	return l.Received
}

// Endorsement says why a person gets a message. An audience whose name is not known goes by its guid.
func Endorsement(m Message, space, organization string) string {
	a := m.Audience
	name := func(known string) string {
		if known == "" {
			known = a.ID
		}
		return `"` + known + `"`
	}
	switch a.Kind {
	case ToUser:
		return "This message was sent to you personally."
	case ToEmail:
		return "This message was sent to your e-mail address."
	case ToEveryone:
		return "This message was sent to everyone."
	case ToScope:
		return "You get this message because you hold the scope " + name("") + "."
	case ToSpace:
		in := "you belong to the space " + name(space)
		if a.Role != "" {
			in = "you are " + roleWords[a.Role] + " in the space " + name(space)
		}
		if organization != "" {
			in += " of the organization " + name(organization)
		}
		return "You get this message because " + in + "."
	case ToOrganization:
		if a.Role != "" {
			return "You get this message because you are " + roleWords[a.Role] + " in the organization " + name(organization) + "."
		}
		return "You get this message because you belong to the organization " + name(organization) + "."
	}
	return ""
}

// roleWords are how people are told of the role for which they get a message.
var roleWords = map[string]string{
	"OrgManager": "a manager", "OrgAuditor": "an auditor", "BillingManager": "a billing manager",
	"SpaceDeveloper": "a developer", "SpaceManager": "a manager", "SpaceAuditor": "an auditor",
}

func (l *Letter) writeHTML(html, buf *bytes.Buffer, data *view) error {
	if err := execute(l.Template.html, buf, data); err != nil {
		return err
	}
	html.Reset()
	if l.Template.whole {
		html.Write(buf.Bytes())
		return nil
	}
	l.Document.open(html)
	html.Write(buf.Bytes())
	closeDocument(html)
	return nil
}

func (l *Letter) writeHead(b *bytes.Buffer, h head) {
	header(b, "Date", l.Now.UTC().Format(time.RFC1123Z))
	header(b, "From", h.from)
	header(b, "To", h.to)
	if h.replyTo != "" {
		header(b, "Reply-To", h.replyTo)
	}
	header(b, "Subject", unstructured(h.subject))
	header(b, "Message-ID", h.id)
	header(b, "Auto-Submitted", "auto-generated")
	if l.Message.Class == Bulk {
		header(b, "Precedence", "bulk")
	}
	if h.unsubscribe != "" {
		header(b, "List-Unsubscribe", "<"+h.unsubscribe+">")
		header(b, "List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	header(b, "X-CF-Client-ID", unstructured(l.Message.ClientID))
	header(b, "X-CF-Notification-ID", unstructured(l.Message.ID))
	header(b, "X-CF-Notification-Timestamp", l.Now.UTC().Format(time.RFC3339Nano))
	header(b, "X-CF-Notification-Request-Received", l.received().UTC().Format(time.RFC3339Nano))
	header(b, "MIME-Version", "1.0")
}

// boundary is the same for the same delivery, and cannot stand in a part: no quoted-printable text holds "=_".
func boundary(deliveryID string) string {
	sum := sha256.Sum256([]byte(deliveryID))
	return "=_" + hex.EncodeToString(sum[:16])
}

func (l *Letter) writeBoth(out *bytes.Buffer, text, html []byte) {
	between := boundary(l.DeliveryID)
	header(out, "Content-Type", `multipart/alternative; boundary="`+between+`"`)
	out.WriteString("\r\n--" + between + "\r\n")
	writePart(out, "text/plain", text)
	out.WriteString("--" + between + "\r\n")
	writePart(out, "text/html", html)
	out.WriteString("--" + between + "--\r\n")
}

func writePart(out *bytes.Buffer, kind string, body []byte) {
	header(out, "Content-Type", kind+"; charset=utf-8")
	header(out, "Content-Transfer-Encoding", "quoted-printable")
	out.WriteString("\r\n")
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("�"))
	}
	if bytes.IndexByte(body, '\r') >= 0 { // the encoder can lose the end of a line after a lone CR
		body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	}
	w := quotedprintable.NewWriter(out)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	out.WriteString("\r\n")
}
