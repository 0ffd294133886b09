package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"strings"
	"sync"
	texttemplate "text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// DefaultTemplateID names the template that is used where no other was chosen.
const DefaultTemplateID = "default"

// The limits of templates. What a template may say is in placeholder.go.
const (
	MaxTemplate  = 1 << 18 // bytes: 256 KiB, subject, text and html together
	MaxMetadata  = 1 << 16 // bytes: 64 KiB
	MaxRendered  = 1 << 21 // bytes: 2 MiB, each part of a mail
	maxName      = 255
	noSubject    = "[no subject]"
	maxKeptBytes = 1 << 18 // a buffer that grew larger is not kept for the next mail
)

// Template is how a mail is written. A part it leaves out says what the client said and nothing else.
type Template struct {
	ID       string
	Name     string
	Subject  string
	Text     string
	HTML     string
	Metadata json.RawMessage
	Version  int
	Created  time.Time
	Modified time.Time
}

// Default is the template the system provides, until an operator writes another.
func Default() Template {
	return Template{
		ID:       DefaultTemplateID,
		Name:     "Default template",
		Subject:  "CF Notification: {{.Subject}}",
		Text:     "{{.Endorsement}}\n\n{{.Text}}{{if .UnsubscribeURL}}\n\n-- \nChoose what you get: {{.UnsubscribeURL}}{{end}}",
		HTML:     "<p>{{.Endorsement}}</p>{{.HTML}}{{if .UnsubscribeURL}}<hr><p><a href=\"{{.UnsubscribeURL}}\">Choose what you get</a></p>{{end}}",
		Metadata: json.RawMessage("{}"),
	}
}

// Check fills in what may be left out and says what is wrong with a template, all of it at once. A template that passes renders
// any message: what it may say cannot fail, and it was tried.
func (t *Template) Check() error {
	var faults []string
	if strings.TrimSpace(t.Name) == "" {
		faults = append(faults, "name is missing: say in words what the template is for.")
	}
	if tooLong(t.Name, maxName) {
		faults = append(faults, fmt.Sprintf("name must be text of at most %d characters.", maxName))
	}
	if t.Text == "" && t.HTML == "" {
		faults = append(faults, "text or html is missing: write at least one of them.")
	}
	if t.Subject == "" {
		t.Subject = "{{.Subject}}"
	}
	metadata, fine := checkMetadata(t.Metadata)
	if !fine {
		faults = append(faults, fmt.Sprintf("metadata must be a JSON object of at most %d bytes, without NUL in its strings.", MaxMetadata))
	}
	t.Metadata = metadata
	_, more := t.parse()
	return unprocessable(append(faults, more...))
}

// checkMetadata writes the object anew, so that every store can keep it: no NUL, no half of a surrogate pair, no number that no
// computer holds.
func checkMetadata(raw json.RawMessage) (json.RawMessage, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), true
	}
	if len(raw) > MaxMetadata || raw[0] != '{' || !json.Valid(raw) {
		return raw, false
	}
	tokens := json.NewDecoder(bytes.NewReader(raw))
	tokens.UseNumber()
	for {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if s, ok := token.(string); err != nil || ok && strings.ContainsRune(s, 0) {
			return raw, false
		}
		if n, ok := token.(json.Number); ok {
			if _, err := n.Float64(); err != nil {
				return raw, false
			}
		}
	}
	var object map[string]any
	again := json.NewDecoder(bytes.NewReader(raw))
	again.UseNumber()
	if err := again.Decode(&object); err != nil {
		return raw, false
	}
	clean, err := json.Marshal(object)
	return clean, err == nil
}

// Values are what the placeholders of a template stand for. All but HTML are text and are escaped where they stand in HTML.
type Values struct {
	From              string
	To                string
	ReplyTo           string
	Subject           string
	Text              string
	HTML              string // what stands inside the body of the client's HTML
	KindDescription   string
	SourceDescription string
	ClientID          string
	MessageID         string
	UserGUID          string
	Space             string
	SpaceGUID         string
	Organization      string
	OrganizationGUID  string
	OrganizationRole  string
	Scope             string
	Endorsement       string
	UnsubscribeID     string
	UnsubscribeURL    string
	Domain            string
	RequestReceived   time.Time
}

// Sample is an invented message, to try a template with.
func Sample() Values {
	return Values{
		From:              "notifications@example.org",
		To:                "ann@example.org",
		ReplyTo:           "operators@example.org",
		Subject:           "Disk almost full",
		Text:              "The disk of \"web\" is 93 % full.\nMake room & restart it.",
		HTML:              "<p>The disk of <b>web</b> is 93 % full.</p><p>Make room &amp; restart it.</p>",
		KindDescription:   "Disk alarms",
		SourceDescription: "Watchdog <of the platform>",
		ClientID:          "watchdog",
		MessageID:         "0c1d6f5e-8a55-4d1c-9a2e-0f6f4f9f2a11",
		UserGUID:          "7e2f4c1a-3b5d-4f60-8c9d-1a2b3c4d5e6f",
		Space:             "production",
		SpaceGUID:         "5d0f0a52-6c2e-4a39-8d8b-6a6f3b1c2d3e",
		Organization:      "ferry & sons",
		OrganizationGUID:  "b2c3d4e5-f607-4182-93a4-b5c6d7e8f901",
		OrganizationRole:  "OrgManager",
		Scope:             "cloud_controller.admin",
		Endorsement:       "You get this message because you belong to the space \"production\" of the organization \"ferry & sons\".",
		UnsubscribeID:     "c2FtcGxl",
		UnsubscribeURL:    "https://notifications.example.org/unsubscribe/c2FtcGxl",
		Domain:            "example.org",
		RequestReceived:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// view is what a template sees of Values. Everything in it is a string, so that nothing a template may say can fail, and it has
// no methods, so that nothing can be called.
type view struct {
	From              string
	To                string
	ReplyTo           string
	Subject           string
	Text              string
	HTML              htmltemplate.HTML
	KindDescription   string
	SourceDescription string
	ClientID          string
	MessageID         string
	UserGUID          string
	Space             string
	SpaceGUID         string
	Organization      string
	OrganizationGUID  string
	OrganizationRole  string
	Scope             string
	Endorsement       string
	UnsubscribeID     string
	UnsubscribeURL    string
	Domain            string
	RequestReceived   string
}

func (v *Values) view() *view {
	w := &view{
		From:              v.From,
		To:                v.To,
		ReplyTo:           v.ReplyTo,
		Subject:           v.Subject,
		Text:              v.Text,
		HTML:              htmltemplate.HTML(v.HTML), //nolint:gosec // the client's own HTML is meant to stand in the mail as it is
		KindDescription:   v.KindDescription,
		SourceDescription: v.SourceDescription,
		ClientID:          v.ClientID,
		MessageID:         v.MessageID,
		UserGUID:          v.UserGUID,
		Space:             v.Space,
		SpaceGUID:         v.SpaceGUID,
		Organization:      v.Organization,
		OrganizationGUID:  v.OrganizationGUID,
		OrganizationRole:  v.OrganizationRole,
		Scope:             v.Scope,
		Endorsement:       v.Endorsement,
		UnsubscribeID:     v.UnsubscribeID,
		UnsubscribeURL:    v.UnsubscribeURL,
		Domain:            v.Domain,
		RequestReceived:   v.RequestReceived.UTC().Round(0).String(),
	}
	if w.Subject == "" {
		w.Subject = noSubject
	}
	return w
}

// Parsed is a template that is ready to render. It is safe for use by many goroutines.
type Parsed struct {
	subject *texttemplate.Template
	text    *texttemplate.Template
	html    *htmltemplate.Template
	whole   bool // the html is a document of its own
}

// Rendered is what a template made of a message.
type Rendered struct {
	Subject string
	Text    string
	HTML    string
}

// Parse makes a template ready. It refuses what Check refuses in the parts.
func (t Template) Parse() (*Parsed, error) {
	p, faults := t.parse()
	return p, unprocessable(faults)
}

func (t *Template) parse() (*Parsed, []string) {
	if len(t.Subject)+len(t.Text)+len(t.HTML) > MaxTemplate {
		return nil, []string{fmt.Sprintf("subject, text and html together have more than %d bytes.", MaxTemplate)}
	}
	subject, faults := readPart("subject", t.Subject, "{{.Subject}}")
	text, more := readPart("text", t.Text, "{{.Text}}")
	faults = append(faults, more...)
	html, more := readPart("html", t.HTML, "{{.HTML}}")
	if faults = append(faults, more...); len(faults) > 0 {
		return nil, faults
	}
	p := &Parsed{whole: isDocument(t.HTML)}
	var errs [3]error
	p.subject, errs[0] = texttemplate.New("subject").AddParseTree("subject", subject)
	p.text, errs[1] = texttemplate.New("text").AddParseTree("text", text)
	p.html, errs[2] = htmltemplate.New("html").AddParseTree("html", html)
	for _, v := range []Values{Sample(), {}} {
		if errors.Join(errs[:]...) == nil {
			_, errs[0] = p.Render(v)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, []string{reason(err)}
	}
	return p, nil
}

// isDocument tells a whole HTML document from what belongs inside the body of one.
func isDocument(html string) bool {
	html = strings.TrimSpace(html)
	for _, start := range []string{"<!doctype", "<html"} {
		if len(html) >= len(start) && strings.EqualFold(html[:len(start)], start) {
			return true
		}
	}
	return false
}

// Render fills in a template. It fails when a part becomes larger than MaxRendered; no part is ever cut.
func (p *Parsed) Render(v Values) (Rendered, error) {
	var r Rendered
	buf := borrow()
	defer giveBack(buf)
	data := v.view()
	var err error
	if r.Subject, err = p.renderSubject(buf, data); err != nil {
		return Rendered{}, err
	}
	if err := execute(p.text, buf, data); err != nil {
		return Rendered{}, err
	}
	r.Text = buf.String()
	if err := execute(p.html, buf, data); err != nil {
		return Rendered{}, err
	}
	r.HTML = buf.String()
	return r, nil
}

func (p *Parsed) renderSubject(buf *bytes.Buffer, data *view) (string, error) {
	if err := execute(p.subject, buf, data); err != nil {
		return "", err
	}
	subject := oneLine(buf.String())
	if subject == "" {
		subject = noSubject
	}
	if utf8.RuneCountInString(subject) > MaxSubject {
		subject = string([]rune(subject)[:MaxSubject-1]) + "…"
	}
	return subject, nil
}

// execute fills buf anew with what a template says, without one newline at its end.
func execute(t interface{ Execute(io.Writer, any) error }, buf *bytes.Buffer, data *view) error {
	buf.Reset()
	if err := t.Execute(limited{buf, MaxRendered}, data); err != nil {
		return err
	}
	if b, ended := bytes.CutSuffix(buf.Bytes(), []byte("\n")); ended {
		buf.Truncate(len(bytes.TrimSuffix(b, []byte("\r"))))
	}
	return nil
}

var errTooLarge = fault.Unprocessable("A part of the mail has more than %d bytes. Say .Text and .HTML fewer times in the template, or less in the message.", MaxRendered)

// limited refuses what does not fit, so that a template cannot grow a mail without end.
type limited struct {
	buf   *bytes.Buffer
	limit int
}

func (l limited) Write(p []byte) (int, error) {
	if l.buf.Len()+len(p) > l.limit {
		return 0, errTooLarge
	}
	return l.buf.Write(p)
}

func (l limited) WriteString(s string) (int, error) {
	if l.buf.Len()+len(s) > l.limit {
		return 0, errTooLarge
	}
	return l.buf.WriteString(s)
}

func (l limited) WriteByte(c byte) error {
	if l.buf.Len() == l.limit {
		return errTooLarge
	}
	return l.buf.WriteByte(c)
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func borrow() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func giveBack(buf *bytes.Buffer) {
	if buf.Cap() <= maxKeptBytes {
		buffers.Put(buf)
	}
}

// oneLine makes one line of s: what ends a line, and any run of blanks, becomes one blank; control characters go.
func oneLine(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	blank := false
	for _, r := range s {
		switch {
		case r == ' ' || r >= '\t' && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			blank = true
			continue
		case unicode.IsControl(r):
			continue
		}
		if blank && b.Len() > 0 {
			b.WriteByte(' ')
		}
		blank = false
		b.WriteRune(r)
	}
	return b.String()
}
