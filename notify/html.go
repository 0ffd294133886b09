package notify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The limits of a client's HTML, besides MaxHTML.
const (
	maxNesting  = 200     // elements in elements
	maxNodes    = 250_000 // elements and texts, counting those that a browser would add by itself
	maxDocument = 1 << 20 // bytes: 1 MiB, when it is written anew
	maxRounds   = 5       // of writing it anew
)

// Document is the HTML of a message, taken apart. That is done once for a message; each person's mail is put together from it.
type Document struct {
	Doctype        string // as a tag
	RootAttributes string // of the html element, each with a blank before it
	Head           string // inside the head element
	BodyAttributes string
	Body           string // inside the body element, every tag closed

	shows bool
}

// HasBody tells whether a person would see anything of this HTML.
func HasBody(source string) bool {
	d, err := SplitHTML(source)
	return err != nil || d.shows // what cannot be read is refused for that, not for saying nothing
}

// SplitHTML takes HTML apart. It reads as leniently as a browser: fragments are fine, tags left open are closed. What it returns is
// read again until that changes nothing, so that nothing in it reaches beyond its end.
func SplitHTML(source string) (Document, error) {
	if strings.TrimSpace(source) == "" {
		return Document{}, nil
	}
	d, err := split(source)
	for range maxRounds {
		if err != nil {
			return Document{}, err
		}
		var again Document
		again, err = split(d.Doctype + "<html><head></head><body>" + d.Body + "</body></html>")
		if again.Body == d.Body {
			return d, err
		}
		d.Body, d.shows = again.Body, again.shows
	}
	return Document{}, errors.New("has elements inside each other that cannot be, such as a form in a form")
}

func split(source string) (Document, error) {
	plain, _, err := tame(source)
	if err != nil {
		return Document{}, err
	}
	root, err := html.Parse(bytes.NewReader(plain))
	if err != nil || depth(root) > maxNesting {
		return Document{}, fmt.Errorf("has more than %d elements inside each other", maxNesting)
	}
	d := Document{Doctype: "<!DOCTYPE html>"}
	out := limited{new(bytes.Buffer), maxDocument}
	for n := range root.Descendants() {
		switch {
		case n.Type == html.DoctypeNode:
			d.Doctype, err = render(out, n, err)
		case n.Type != html.ElementNode:
		case n.DataAtom == atom.Html && n.Parent == root:
			d.RootAttributes = attributes(n)
		case n.DataAtom == atom.Head:
			d.Head, err = renderInner(out, n, err)
		case n.DataAtom == atom.Body:
			d.BodyAttributes = attributes(n)
			d.Body, err = renderInner(out, n, err)
			d.shows = shows(n)
		}
	}
	if err != nil || len(d.RootAttributes)+len(d.BodyAttributes) > maxDocument {
		return Document{}, fmt.Errorf("has more than %d bytes when all its tags are closed", maxDocument)
	}
	return d, nil
}

// With is the document with another body.
func (d *Document) With(body string) string {
	var b bytes.Buffer
	d.open(&b)
	b.WriteString(body)
	closeDocument(&b)
	return b.String()
}

func (d *Document) open(b *bytes.Buffer) {
	doctype := d.Doctype
	if doctype == "" {
		doctype = "<!DOCTYPE html>"
	}
	for _, s := range []string{doctype, "\n<html", d.RootAttributes, ">\n<head>", d.Head, "</head>\n<body", d.BodyAttributes, ">\n"} {
		b.WriteString(s)
	}
}

func closeDocument(b *bytes.Buffer) { b.WriteString("\n</body>\n</html>") }

// tame goes over the tags before a tree is made of them. It refuses what would make a tree far larger than its source, and removes
// tags that would swallow what stands after them or that some readers read and others do not. What it leaves has one reading.
// It also tells the nodes it counted.
func tame(source string) ([]byte, int, error) {
	z := html.NewTokenizer(strings.NewReader(source))
	out := make([]byte, 0, len(source))
	var c census
	last := ""
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				return nil, 0, errors.New("cannot be read as HTML")
			}
			return out, c.nodes, nil
		}
		raw, name := z.Raw(), ""
		if kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
			tag, _ := z.TagName()
			name = string(tag)
		}
		switch name {
		case "svg", "math":
			return nil, 0, errors.New("holds svg or math, which most mail readers do not show: use img")
		case "plaintext", "noscript", "frameset", "frame":
			z.NextIsNotRawText()
			raw = []byte("<!---->") // not nothing: what stands on both sides must not become one tag
		case "":
			if kind == html.TextToken && last == "script" && bytes.Contains(raw, []byte("<!--")) {
				raw = nil // in a script this can hide the end of the script
			}
		default:
			if kind == html.EndTagToken {
				c.end(name)
			} else {
				c.start(name)
			}
		}
		last = name
		out = append(out, raw...)
		if c.nodes += 1 + c.unclosed; c.nodes > maxNodes {
			return nil, 0, errors.New("has too many elements, or too many like b, i, a and font that are not closed where they should be")
		}
	}
}

// census counts, never too low, how many nodes a tree will have. A browser opens a formatting element again in every block that
// follows the one in which it was left open: a hundred of them and ten thousand paragraphs are a million nodes.
type census struct {
	open     []string // the elements that are not surely closed
	unclosed int      // the formatting elements among them
	links    int      // the links among those
	nodes    int
}

const (
	mended   = 40 // nodes, at most, that one formatting tag in the wrong place makes
	lookBack = 50 // elements, to find the one that an end tag closes
)

var (
	formatting = words("a b big code em font i nobr s small strike strong tt u")
	void       = words("area base basefont bgsound br col embed hr img input keygen link meta param source track wbr")
	optional   = words("caption dd dt li option p tbody td tfoot th thead tr") // those whose end tag may be left out
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

func (c *census) start(name string) {
	if void[name] {
		return
	}
	if formatting[name] {
		c.unclosed++
	}
	if name == "a" || name == "nobr" { // each ends the one before, wherever that was opened
		if c.links > 0 {
			c.nodes += mended
		}
		c.links++
	}
	if top := len(c.open) - 1; top >= 0 && c.open[top] == name && optional[name] {
		return // it ends the one before
	}
	c.open = append(c.open, name)
}

func (c *census) end(name string) {
	passed, at := optional, len(c.open)-1
	if formatting[name] {
		passed = formatting
	}
	for n := 0; n < lookBack && at >= 0 && c.open[at] != name && passed[c.open[at]]; n++ {
		at--
	}
	found := at >= 0 && c.open[at] == name
	switch {
	case found && formatting[name]: // those inside it stay open
		if at < len(c.open)-1 {
			c.nodes += mended
		}
		c.open = slices.Delete(c.open, at, at+1)
		c.unclosed--
		if name == "a" || name == "nobr" {
			c.links--
		}
	case found:
		c.open = c.open[:at]
	case formatting[name]:
		c.nodes += mended
	}
}

func depth(root *html.Node) int {
	deepest, level := 0, 0
	for n := root; ; {
		if n.FirstChild != nil {
			n, level = n.FirstChild, level+1
			deepest = max(deepest, level)
			continue
		}
		for n != root && n.NextSibling == nil {
			n = n.Parent
			level--
		}
		if n == root {
			return deepest
		}
		n = n.NextSibling
	}
}

func attributes(n *html.Node) string {
	var b strings.Builder
	for _, a := range n.Attr {
		b.WriteString(" " + a.Key + `="` + html.EscapeString(a.Val) + `"`)
	}
	return b.String()
}

func render(out limited, n *html.Node, err error) (string, error) {
	if err != nil {
		return "", err
	}
	out.buf.Reset()
	err = html.Render(out, n)
	return out.buf.String(), err
}

func renderInner(out limited, n *html.Node, err error) (string, error) {
	if err != nil {
		return "", err
	}
	out.buf.Reset()
	for c := n.FirstChild; c != nil && err == nil; c = c.NextSibling {
		err = html.Render(out, c)
	}
	return out.buf.String(), err
}

// visible are the elements that show something without any text in them; hidden those whose text is never shown.
var (
	visible = map[atom.Atom]bool{
		atom.Audio: true, atom.Button: true, atom.Canvas: true, atom.Embed: true, atom.Hr: true, atom.Iframe: true, atom.Img: true,
		atom.Input: true, atom.Object: true, atom.Textarea: true, atom.Video: true,
	}
	hidden = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Template: true, atom.Title: true}
)

func shows(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" || visible[c.DataAtom] || !hidden[c.DataAtom] && shows(c) {
			return true
		}
	}
	return false
}
