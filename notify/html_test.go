package notify

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestHasBody(t *testing.T) {
	for source, want := range map[string]bool{
		"":                 false,
		" \n\t":            false,
		"hello":            true,
		"<p>hello":         true,
		"<p></p>":          false,
		"<p>&nbsp; </p>":   false,
		"<body></body>":    false,
		"<!-- nothing -->": false,
		"<img src=x>":      true,
		"<div><hr></div>":  true,
		"<html><head><title>only a title</title></head><body> </body></html>": false,
		"<body><style>p { color: red }</style></body>":                        false,
		"<body><script>alert(1)</script></body>":                              false,
		"<body><noscript>seen</noscript></body>":                              true,
		"<frameset><noframes>x</noframes></frameset>":                         false,
		"<table><tr><td>1":                 true,
		strings.Repeat("<div>", 300) + "x": true,
	} {
		if got := HasBody(source); got != want {
			t.Errorf("HasBody(%.80q) = %v, want %v", source, got, want)
		}
	}
}

func TestSplitHTML(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   Document
	}{
		"nothing":  {" ", Document{}},
		"fragment": {"Hi <b>Ann", Document{Doctype: "<!DOCTYPE html>", Body: "Hi <b>Ann</b>"}},
		"document": {
			`<!doctype html><html lang="ar" dir=rtl><head><meta charset=utf-8><title>A & B</title><style>p > b { x }</style></head>` +
				`<body class="a b" onload='x("1")'><p>one<p>two</body></html>trailing`,
			Document{
				Doctype: "<!DOCTYPE html>", RootAttributes: ` lang="ar" dir="rtl"`,
				Head:           `<meta charset="utf-8"/><title>A &amp; B</title><style>p > b { x }</style>`,
				BodyAttributes: ` class="a b" onload="x(&#34;1&#34;)"`, Body: "<p>one</p><p>twotrailing</p>",
			},
		},
		"old doctype": {
			`<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd"><p>x`,
			Document{Doctype: `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">`, Body: "<p>x</p>"},
		},
		"closes only its own":   {"</div></table></body></html><i>x", Document{Doctype: "<!DOCTYPE html>", Body: "<i>x</i>"}},
		"plaintext":             {"<plaintext>a<b>c", Document{Doctype: "<!DOCTYPE html>", Body: "a<b>c</b>"}},
		"a removed tag splits":  {"<<noscript>b>c", Document{Doctype: "<!DOCTYPE html>", Body: "&lt;<!---->b&gt;c"}},
		"a script without end":  {"x<script><!--<script>", Document{Doctype: "<!DOCTYPE html>", Body: "x<script></script>"}},
		"a script that is kept": {`<p>x<script type="application/ld+json">{"a":"<b>"}</script>`, Document{Doctype: "<!DOCTYPE html>", Body: `<p>x<script type="application/ld+json">{"a":"<b>"}</script></p>`}},
		"a comment without end": {"x<!-- y", Document{Doctype: "<!DOCTYPE html>", Body: "x<!-- y-->"}},
		"conditional comment":   {"x<!--[if mso]><b>y</b><![endif]-->", Document{Doctype: "<!DOCTYPE html>", Body: "x<!--[if mso]><b>y</b><![endif]-->"}},
		"a tag without end":     {"x<b title=", Document{Doctype: "<!DOCTYPE html>", Body: "x"}},
	} {
		got, err := SplitHTML(c.source)
		got.shows = false
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestSplitHTMLRefuses(t *testing.T) {
	long := strings.Repeat("x", 5000)
	var open strings.Builder
	open.WriteString("<p>")
	for i := range 400 {
		fmt.Fprintf(&open, "<b c%d>", i)
	}
	for name, c := range map[string]struct{ source, want string }{
		"nesting":                        {strings.Repeat("<div>", maxNesting+1), "inside each other"},
		"nesting beyond the parser":      {strings.Repeat("<div>", 100_000), "inside each other"},
		"left open before many blocks":   {open.String() + strings.Repeat("<p>x", 100_000), "not closed"},
		"the same, hidden by misnesting": {strings.Repeat("<b><div><div><div><div><div><div><div><div><div></b></div></div></div></div></div></div></div></div></div>", 1500) + strings.Repeat("<p>x", 80_000), "not closed"},
		"long attributes repeated":       {"<p><b class=" + long + "><p>" + strings.Repeat("x<p>", 1000), "when all its tags are closed"},
		"svg":                            {"<svg><style><b>", "use img"},
		"math":                           {"<math/>", "use img"},
	} {
		_, err := SplitHTML(c.source)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if !HasBody(c.source) {
			t.Errorf("%s: refused for saying nothing", name)
		}
	}
}

// TestSplitHTMLMemory reads the worst that is accepted: what a client sends is not to cost a thousand times its size.
func TestSplitHTMLMemory(t *testing.T) {
	for name, source := range map[string]string{
		"paragraphs":     strings.Repeat("<p>", MaxHTML/3),
		"texts":          strings.Repeat("<p>x", MaxHTML/5),
		"one left open":  "<p><b>" + strings.Repeat("<p>x", 60_000),
		"wrong ends":     "<b>" + strings.Repeat("<i></b>", 3500),
		"links in links": strings.Repeat("<a><div>", 90),
		"stray ends":     strings.Repeat("<p>", 10_000) + strings.Repeat("</div>", 60_000),
		"rows":           "<table>" + strings.Repeat("<tr><td>x", 30_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := SplitHTML(source)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 150<<20 {
			t.Errorf("%s: %d bytes took %d MB (%v)", name, len(source), used>>20, err)
		}
	}
}

func TestDocumentWith(t *testing.T) {
	d := Document{Doctype: "<!DOCTYPE x>", RootAttributes: ` lang="de"`, Head: "<title>t</title>", BodyAttributes: ` class="c"`, Body: "old"}
	want := "<!DOCTYPE x>\n<html lang=\"de\">\n<head><title>t</title></head>\n<body class=\"c\">\nnew\n</body>\n</html>"
	if got := d.With("new"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := new(Document).With("new"), "<!DOCTYPE html>\n<html>\n<head></head>\n<body>\nnew\n</body>\n</html>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// checkSplit: whatever a client sends, what comes after it in the mail is still outside of it, and the tree is not larger than
// was counted.
func checkSplit(t *testing.T, source string) {
	t.Helper()
	d, err := SplitHTML(source)
	if err != nil {
		return
	}
	plain, counted, err := tame(source)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := html.Parse(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	nodes := 0
	for range tree.Descendants() {
		nodes++
	}
	if nodes > 8+counted {
		t.Fatalf("%q: %d nodes, counted %d", source, nodes, counted)
	}
	mail, err := html.Parse(strings.NewReader(d.With("<section id=before></section>" + d.Body + "<section id=after></section>")))
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for n := range mail.Descendants() {
		if n.Type == html.ElementNode && n.Data == "section" && n.Parent.Data == "body" && n.NextSibling != nil && len(n.Attr) == 1 {
			last = n.Attr[0].Val
		}
	}
	if last != "after" {
		t.Fatalf("%q swallows what comes after it, as %q", source, d.Body)
	}
}

// TestSplitHTMLSoup stirs tags that change how a browser reads what follows.
func TestSplitHTMLSoup(t *testing.T) {
	tags := strings.Fields("a b i font nobr p div span ul li table tr td th tbody caption col colgroup select option optgroup object " +
		"applet marquee template button form h1 h2 pre textarea title style script noscript noframes noembed iframe xmp plaintext head " +
		"body html frameset frame dd dt br img hr input center address details mglyph mi annotation-xml desc foreignobject x-y ruby rp rt")
	other := []string{"x", " ", "<", "<!-- y -->", "<!--", "-->", "<![CDATA[", "]]>", "&lt;", "</", "\x00", "<?x>", "\n"}
	dice := rand.New(rand.NewPCG(1, 2))
	for range 8_000 {
		var b strings.Builder
		for range dice.IntN(40) {
			tag := tags[dice.IntN(len(tags))]
			switch dice.IntN(7) {
			case 0, 1:
				b.WriteString("</" + tag + ">")
			case 2:
				b.WriteString(other[dice.IntN(len(other))])
			case 3:
				fmt.Fprintf(&b, "<%s c%d>", tag, dice.IntN(9))
			default:
				b.WriteString("<" + tag + ">")
			}
		}
		checkSplit(t, b.String())
	}
}

func FuzzSplitHTML(f *testing.F) {
	for _, seed := range []string{
		"", "x", "<p>hello", "<!doctype html><html lang=de><head><title>t</title></head><body class=x><p>y</p></body></html>",
		"<plaintext>", "<script><!--<script>", "<noscript><!--</noscript>", "<textarea>", "<title>", "<style>", "<!--", "<table><b><tr>",
		"<frameset><frame>", "<select><option><div>", "<template><td>", "<b><i><p></b>x</i>", "<a><div><a>", "<form><form></form>",
		"<iframe>", "<xmp>", "<object><select></object>", "<nobr><nobr>", "<body a\"b=1>", "</body><!-- x --></html>", "<image>", "<isindex>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) < 1<<14 {
			checkSplit(t, source)
		}
	})
}

func TestMessageCheckReadsHTML(t *testing.T) {
	for name, c := range map[string]struct{ text, html, want string }{
		"fine":          {"", "<p>x", ""},
		"nothing":       {" ", "<p>", "text or html is missing"},
		"deep":          {"x", strings.Repeat("<div>", 300), "html has more than 200 elements inside each other."},
		"svg":           {"", "<svg>", "html holds svg or math"},
		"large":         {"", strings.Repeat("x", MaxHTML+1), "html has more than 524288 bytes."},
		"not UTF-8":     {"x", "\xff", "html must be UTF-8"},
		"NUL":           {"x\x00", "", "text must be UTF-8"},
		"large and bad": {strings.Repeat("x", MaxText+1), strings.Repeat("<div>", 300), "text has more than 262144 bytes."},
	} {
		m := Message{KindID: "k", Audience: Audience{Kind: ToEveryone}, Text: c.text, HTML: c.html}
		err := m.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
