package notify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/notify"
)

func parsed(t testing.TB, template notify.Template) *notify.Parsed {
	t.Helper()
	p, err := template.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefault(t *testing.T) {
	d := notify.Default()
	before := fmt.Sprint(d)
	if err := d.Check(); err != nil || fmt.Sprint(d) != before {
		t.Fatalf("the default template: %v, changed to %+v", err, d)
	}
	got, err := parsed(t, d).Render(notify.Values{Subject: "s", Text: "t <b>\n", HTML: "<i>h</i>", Endorsement: `for "you" & me`})
	want := notify.Rendered{
		Subject: "CF Notification: s", Text: "for \"you\" & me\n\nt <b>", HTML: "<p>for &#34;you&#34; &amp; me</p><i>h</i>",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	got, err = parsed(t, d).Render(notify.Values{Text: "t", HTML: "h", UnsubscribeURL: "https://example.org/u?token=x"})
	if err != nil || !strings.Contains(got.Text, "https://example.org/u?token=x") || !strings.Contains(got.HTML, `<a href="https://example.org/u?token=x">`) {
		t.Errorf("a mail that people can leave must say how: %+v, %v", got, err)
	}
}

func TestTemplateCheckFillsIn(t *testing.T) {
	for given, want := range map[string]string{
		"": "{}", "null": "{}", ` {"b": 1, "a": [12345678901234567890, "<"]} `: `{"a":[12345678901234567890,"\u003c"],"b":1}`, `{"a":"\ud800"}`: `{"a":"` + "�" + `"}`,
	} {
		x := notify.Template{Name: "n", Text: "t", Metadata: json.RawMessage(given)}
		if err := x.Check(); err != nil || x.Subject != "{{.Subject}}" || string(x.Metadata) != want {
			t.Errorf("metadata %s: got %s, subject %q, %v; want %s", given, x.Metadata, x.Subject, err, want)
		}
	}
	// A part that is left out says what the client said.
	got, err := parsed(t, notify.Template{Name: "n", HTML: "<h1>{{.Subject}}</h1>"}).Render(notify.Values{Subject: "s", Text: "t"})
	if want := (notify.Rendered{Subject: "s", Text: "t", HTML: "<h1>s</h1>"}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestTemplateAllows(t *testing.T) {
	v := notify.Values{Subject: "S", Text: "T", HTML: "<b>H</b>", Space: "dev", RequestReceived: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))}
	for source, want := range map[string]string{
		"plain":                        "plain",
		"{{.Subject}} {{- .Text -}} x": "STx",
		"a{{/* said to nobody */}}b":   "ab",
		"{{if .Space}}in {{.Space}}{{else}}nowhere{{end}}":                                "in dev",
		"{{if .Organization}}1{{else if .Space}}2{{else}}3{{end}}":                        "2",
		`{{if eq .Space "prod" "dev"}}1{{end}}{{if ne .Space "dev"}}2{{end}}`:             "1",
		`{{if and .Space (not .Organization) (or .Scope (eq .HTML "<b>H</b>"))}}y{{end}}`: "y",
		`{{or .Organization "none"}}`:                                                     "none",
		"{{`a {{ b`}}":                                                                    "a {{ b",
		"{{.RequestReceived}}":                                                            "2026-01-02 02:04:05.000000006 +0000 UTC",
		"two\n\n":                                                                         "two\n",
		"two\r\n":                                                                         "two",
		strings.Repeat("{{if .Space}}", 10) + "x" + strings.Repeat("{{end}}", 10):                         "x",
		"{{if .Scope}}{{else if .Scope}}" + strings.Repeat("{{else if .Scope}}", 30) + "{{else}}x{{end}}": "x",
		strings.Repeat("{{.Space}}", 500): strings.Repeat("dev", 500),
	} {
		x := notify.Template{Name: "n", Text: source}
		if err := x.Check(); err != nil {
			t.Errorf("%.80q: %v", source, err)
			continue
		}
		got, err := parsed(t, x).Render(v)
		if err != nil || got.Text != want {
			t.Errorf("%.80q: got %q, %v; want %q", source, got.Text, err, want)
		}
	}
}

func TestTemplateEscapes(t *testing.T) {
	const evil = `"><script>alert('x')</script>`
	v := notify.Values{
		Subject: evil, Text: evil, To: evil, Space: "javascript:alert(1)", UnsubscribeURL: "https://x.example/?a=1&b=ü",
		HTML: "<p>{{.Subject}} {{template \"x\"}}</p>",
	}
	html := `<a title="{{.To}}" href="{{.Space}}">{{.Subject}}</a><a href="{{.UnsubscribeURL}}">{{.HTML}}</a><img alt="{{.HTML}}">`
	got, err := parsed(t, notify.Template{Text: "{{.HTML}} {{.Text}}", HTML: html}).Render(v)
	if err != nil {
		t.Fatal(err)
	}
	if want := v.HTML + " " + evil; got.Text != want {
		t.Errorf("text: got %q, want %q", got.Text, want)
	}
	const escaped = `&#34;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;`
	want := `<a title="` + escaped + `" href="#ZgotmplZ">` + escaped + `</a><a href="https://x.example/?a=1&amp;b=%c3%bc">` + v.HTML +
		`</a><img alt="{{.Subject}} {{template &#34;x&#34;}}">`
	if got.HTML != want {
		t.Errorf("html: got %q, want %q", got.HTML, want)
	}
}

func TestTemplateRefuses(t *testing.T) {
	fine := func(change func(*notify.Template)) notify.Template {
		x := notify.Template{Name: "n", Subject: "s", Text: "t", HTML: "h"}
		change(&x)
		return x
	}
	text := func(s string) notify.Template { return fine(func(x *notify.Template) { x.Text = s }) }
	const all = ".From, .To, .ReplyTo, .Subject, .Text, .HTML, .KindDescription, .SourceDescription, .ClientID, .MessageID, .UserGUID, " +
		".Space, .SpaceGUID, .Organization, .OrganizationGUID, .OrganizationRole, .Scope, .Endorsement, .UnsubscribeID, .UnsubscribeURL, " +
		".Domain, .RequestReceived."
	for name, c := range map[string]struct {
		template notify.Template
		want     []string
	}{
		"no name":             {fine(func(x *notify.Template) { x.Name = " " }), []string{"name is missing"}},
		"long name":           {fine(func(x *notify.Template) { x.Name = strings.Repeat("é", 256) }), []string{"name must be"}},
		"no body":             {fine(func(x *notify.Template) { x.Text, x.HTML = "", "" }), []string{"text or html is missing"}},
		"metadata: array":     {fine(func(x *notify.Template) { x.Metadata = []byte("[]") }), []string{"metadata"}},
		"metadata: broken":    {fine(func(x *notify.Template) { x.Metadata = []byte(`{"a":1}}`) }), []string{"metadata"}},
		"metadata: NUL":       {fine(func(x *notify.Template) { x.Metadata = []byte(`{"a\u0000":1}`) }), []string{"metadata"}},
		"metadata: number":    {fine(func(x *notify.Template) { x.Metadata = []byte(`{"a":1e999}`) }), []string{"metadata"}},
		"metadata: large":     {fine(func(x *notify.Template) { x.Metadata = []byte(`{"a":"` + strings.Repeat("x", 1<<16) + `"}`) }), []string{"metadata"}},
		"unknown":             {text("{{.Foo}}"), []string{"text: the placeholder “.Foo” is not known. Known are " + all}},
		"unknown in subject":  {fine(func(x *notify.Template) { x.Subject = "{{.subject}}" }), []string{"subject: the placeholder “.subject”"}},
		"unknown in html":     {fine(func(x *notify.Template) { x.HTML = "<b>{{if .X}}{{end}}" }), []string{"html: the placeholder “.X”"}},
		"in a branch":         {text("{{if .Space}}{{else}}{{.Foo}}{{end}}"), []string{"“.Foo”"}},
		"several":             {text("{{.Foo}}{{.Bar}}"), []string{"“.Foo”", "“.Bar”"}},
		"method":              {text(`{{.RequestReceived.Format "06"}}`), []string{"not allowed"}},
		"field of a field":    {text(`{{.Subject.Foo}}`), []string{"“.Subject.Foo” is not known"}},
		"chain":               {text(`{{(.Subject).Foo}}`), []string{"not allowed"}},
		"dot":                 {text("{{.}}"), []string{"not allowed"}},
		"dollar":              {text("{{$}}"), []string{"not allowed"}},
		"variable":            {text("{{$x := .Subject}}"), []string{"not allowed"}},
		"pipe":                {text("{{.Subject | len}}"), []string{"not allowed"}},
		"number":              {text("{{1}}"), []string{"not allowed"}},
		"argument":            {text("{{.Subject .Text}}"), []string{"not allowed"}},
		"unknown function":    {text("{{exec .Subject}}"), []string{"text: the function “exec” is not known. Known are eq, ne, and, or, not."}},
		"printf":              {text(`{{printf "%999999999d" 1}}`), []string{"the function “printf” is not known"}},
		"call":                {text(`{{call .Subject}}`), []string{"the function “call” is not known"}},
		"js":                  {text(`{{js .Subject}}`), []string{"the function “js” is not known"}},
		"len":                 {text(`{{len .Subject}}`), []string{"the function “len” is not known"}},
		"too few":             {text(`{{if .Foo}}{{else}}{{eq .Space}}{{end}}`), []string{"another number of values"}},
		"too many":            {text(`{{not .Space .Scope}}`), []string{"another number of values"}},
		"text with truth":     {text(`{{if eq .Space (not .Scope)}}{{end}}`), []string{"eq and ne compare placeholders and quoted texts only"}},
		"function as operand": {text(`{{not and}}`), []string{"not allowed"}},
		"range":               {text("{{range .Subject}}x{{end}}"), []string{"range is not allowed"}},
		"with":                {text("{{with .Subject}}x{{end}}"), []string{"with is not allowed"}},
		"template":            {text(`{{template "text"}}`), []string{"template and block are not allowed"}},
		"template of another": {text(`{{template "html" .}}`), []string{"template and block are not allowed"}},
		"define":              {text(`{{define "x"}}y{{end}}z`), []string{"define and block are not allowed"}},
		"define itself":       {text(`{{define "text"}}{{template "text"}}{{end}}`), []string{"define and block are not allowed"}},
		"block":               {text(`{{block "x" .}}y{{end}}`), []string{"block are not allowed"}},
		"break":               {text("{{break}}"), []string{"text:1: {{break}} outside {{range}}"}},
		"syntax":              {text("a\n{{.Subject"), []string{"text:2: unclosed action"}},
		"no end":              {text("{{if .Space}}"), []string{"text:1: unexpected EOF"}},
		"not UTF-8":           {text("\xff"), []string{"text must be UTF-8 text without NUL"}},
		"NUL":                 {fine(func(x *notify.Template) { x.HTML = "\x00" }), []string{"html must be UTF-8 text without NUL"}},
		"open tag":            {fine(func(x *notify.Template) { x.HTML = "<a href='{{.Space}}" }), []string{"html: ends in a non-text context"}},
		"contexts":            {fine(func(x *notify.Template) { x.HTML = `{{if .Space}}<a href="{{end}}{{.Space}}">` }), []string{"html:1:", "different contexts"}},
		"deep conditions":     {text(strings.Repeat("{{if .Space}}", 11) + strings.Repeat("{{end}}", 11)), []string{"more than 10 conditions inside each other"}},
		"very deep":           {text(strings.Repeat("{{if .Space}}", 12_000) + strings.Repeat("{{end}}", 12_000)), []string{"more than 10 conditions inside each other"}},
		"deep parentheses":    {text("{{if " + strings.Repeat("(not ", 40_000) + ".Space" + strings.Repeat(")", 40_000) + "}}{{end}}"), []string{"depth exceeded"}},
		"parentheses":         {text("{{if " + strings.Repeat("(not ", 12) + ".Space" + strings.Repeat(")", 12) + "}}{{end}}"), []string{"not allowed"}},
		"many actions":        {text(strings.Repeat("{{.Space}}", 501)), []string{"more than 500 placeholders"}},
		"very many":           {text(strings.Repeat("{{.X}}", 40_000)), []string{"text: the placeholder “.X”"}},
		"content repeated":    {fine(func(x *notify.Template) { x.HTML = strings.Repeat("{{.HTML}}", 11) }), []string{"html: .Text and .HTML stand in it more than 10 times"}},
		"huge":                {text(strings.Repeat("x", notify.MaxTemplate)), []string{"more than 262144 bytes"}},
	} {
		before := c.template
		err := c.template.Check()
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.KindUnprocessable || len(f.Details) == 0 {
			t.Errorf("%s: got %v, want a fault with details", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(f.Detail, want) {
				t.Errorf("%s: got %q, want %q", name, f.Detail, want)
			}
		}
		if len(f.Detail) > 8000 || !utf8.ValidString(f.Detail) {
			t.Errorf("%s: %d bytes of fault", name, len(f.Detail))
		}
		if p, err := before.Parse(); strings.Contains(f.Detail, "text:") && (p != nil || err == nil) {
			t.Errorf("%s: Parse takes what Check refuses", name)
		}
	}
}

func TestRenderIsNeverCut(t *testing.T) {
	large := strings.Repeat("<b>x</b>", notify.MaxHTML/8)
	p := parsed(t, notify.Template{Text: strings.Repeat("{{.HTML}}", 3), HTML: strings.Repeat("{{.HTML}}", 5)})
	got, err := p.Render(notify.Values{HTML: large})
	if !fault.Is(err, fault.KindUnprocessable) || !strings.Contains(err.Error(), "2097152 bytes") || got != (notify.Rendered{}) {
		t.Errorf("got %.40q…, %v", got.HTML, err)
	}
	p = parsed(t, notify.Template{HTML: strings.Repeat("{{.HTML}}", 4)})
	if got, err := p.Render(notify.Values{HTML: large}); err != nil || got.HTML != strings.Repeat(large, 4) {
		t.Errorf("exactly the limit: %d bytes, %v", len(got.HTML), err)
	}
}

func TestRenderedSubject(t *testing.T) {
	for given, want := range map[string]string{
		"":                        "[no subject]",
		"a":                       "a",
		" a \t b ":                "a b",
		"a\r\nBcc: x@y":           "a Bcc: x@y",
		"a\x00\x07b\x7f\u0085c":   "ab c",
		"a\u2028b\u2029c":         "a b c",
		"{{.Text}}":               "{{.Text}}",
		"עברית 😀":                 "עברית 😀",
		"\xff":                    "�",
		strings.Repeat("é", 1000): strings.Repeat("é", 1000),
		strings.Repeat("é", 1001): strings.Repeat("é", 999) + "…",
	} {
		got, err := parsed(t, notify.Template{Subject: "{{.Subject}}\n", Text: "t"}).Render(notify.Values{Subject: given})
		if err != nil || got.Subject != want {
			t.Errorf("%.40q: got %q, %v; want %q", given, got.Subject, err, want)
		}
	}
	got, err := parsed(t, notify.Template{Subject: "{{if .Scope}}x{{end}}", Text: "t"}).Render(notify.Values{Subject: "s"})
	if err != nil || got.Subject != "[no subject]" {
		t.Errorf("got %q, %v", got.Subject, err)
	}
}

func TestRenderByMany(t *testing.T) {
	p := parsed(t, notify.Default())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				text := strings.Repeat(fmt.Sprint(i), 100)
				got, err := p.Render(notify.Values{Subject: text, Text: text, HTML: text})
				if err != nil || got.Subject != "CF Notification: "+text || got.Text != "\n\n"+text || got.HTML != "<p></p>"+text {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

// FuzzTemplate: a template that passes the check can be filled in, within its limits; one that does not pass is refused in words.
func FuzzTemplate(f *testing.F) {
	d := notify.Default()
	f.Add(d.Subject, d.Text, d.HTML)
	for _, s := range []string{
		"", "{{.Foo}}", "{{if eq .Space \"x\"}}{{.Space}}{{else if not .Scope}}{{end}}", "{{define \"text\"}}{{end}}", "{{block \"x\" .}}{{end}}",
		"{{with $x := .Text}}{{$x}}{{end}}", "{{range .}}{{break}}{{end}}", "{{or .A (and .B `c`)}}", "{{- /* c */ -}}", "{{printf \"%d\"}}",
		"<a href=\"{{.UnsubscribeURL}}\" style='color:{{.Space}}' onclick=\"f({{.Text}})\">", "<script>{{.HTML}}", "<!--{{.HTML}}-->", "{{1.5e3i}}",
		"{{(.Text).X}}", "{{nil}}", "{{.HTML}}{{.HTML}}{{.HTML}}", "<textarea>{{.Text}}</textarea><title>{{.Text}}</title>", "{{\"\\x00\"}}", "{{'a'}}",
	} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, subject, text, html string) {
		x := notify.Template{Name: "n", Subject: subject, Text: text, HTML: html}
		if err := x.Check(); err != nil {
			if !fault.Is(err, fault.KindUnprocessable) || !utf8.ValidString(err.Error()) || len(err.Error()) > 30_000 {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		p := parsed(t, x)
		sample := notify.Sample()
		sample.HTML = strings.Repeat(sample.HTML, 100)
		for _, v := range []notify.Values{sample, {}, {Space: "x", Text: "</script>", HTML: "<!--"}} {
			r, err := p.Render(v)
			if err != nil {
				t.Fatalf("passed the check and cannot be filled in: %v", err)
			}
			if r.Subject == "" || strings.ContainsFunc(r.Subject, unicode.IsControl) || utf8.RuneCountInString(r.Subject) > notify.MaxSubject {
				t.Fatalf("subject %q", r.Subject)
			}
			if len(r.Text) > notify.MaxRendered || len(r.HTML) > notify.MaxRendered {
				t.Fatalf("%d and %d bytes", len(r.Text), len(r.HTML))
			}
		}
	})
}

func BenchmarkRender(b *testing.B) {
	p := parsed(b, notify.Default())
	v := notify.Sample()
	v.Text = strings.Repeat("All is well. ", 80)
	v.HTML = strings.Repeat("<p>All is <b>well</b>.</p>", 40)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Render(v); err != nil {
			b.Fatal(err)
		}
	}
}
