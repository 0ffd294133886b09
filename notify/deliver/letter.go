package deliver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Envelope is one mail for one recipient. From is the return path, to which bounces go; empty when they shall go nowhere.
type Envelope struct {
	From, To string
	Raw      []byte // the composed mail
}

// letter is an envelope made ready for the wire.
type letter struct {
	from, to string
	raw      []byte // every line ends with CR LF
	dots     bool   // a line begins with a dot
	utf8     bool   // needs SMTPUTF8
	eightBit bool
}

func newLetter(mail Envelope, signer *Signer) (*letter, *Failure) {
	from, errFrom := wireAddress(mail.From)
	to, errTo := wireAddress(mail.To)
	if (errFrom != nil && mail.From != "") || errTo != nil {
		return nil, &Failure{Permanent: true, Reason: "The address is not one that can be sent to."}
	}
	raw, dots := wireLines(mail.Raw)
	l := &letter{from: from, to: to, raw: raw, dots: dots, eightBit: !ascii(raw), utf8: !asciiString(from) || !asciiString(to)}
	if l.eightBit && !l.utf8 {
		header, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		l.utf8 = !ascii(header)
	}
	if signer != nil {
		signed, err := signer.Sign(l.raw)
		if err != nil {
			return nil, &Failure{Permanent: true, Reason: "The mail could not be signed.", Cause: err}
		}
		l.raw = signed
	}
	return l, nil
}

const maxAddress = 320 // bytes: RFC 5321 allows 64 + 1 + 255

var errAddress = errors.New("not an address for the wire")

// wireAddress refuses what could end the path it is put in, and writes a domain beyond ASCII as DNS does, which every relay
// understands.
func wireAddress(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 1 || at == len(address)-1 || len(address) > maxAddress {
		return "", errAddress
	}
	for i := range len(address) {
		if b := address[i]; b <= ' ' || b == '<' || b == '>' || b == 0x7f {
			return "", errAddress
		}
	}
	if asciiString(address) {
		return address, nil
	}
	if !utf8.ValidString(address) || strings.ContainsFunc(address, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", errAddress
	}
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", errAddress
	}
	return address[:at+1] + domain, nil
}

func asciiString(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ascii looks at eight bytes at a time: it reads every mail.
func ascii(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		if binary.LittleEndian.Uint64(text)&0x8080808080808080 != 0 {
			return false
		}
	}
	return asciiString(string(text))
}

// wireLines ends every line with CR LF and nothing else: a lone CR or LF, read as a line's end by one server and not by the
// next, is how mails are smuggled. A mail that is right already is not copied. It also says whether a line begins with a dot.
func wireLines(raw []byte) (lines []byte, dots bool) {
	count := 0
	for rest := raw; len(rest) > 0; count++ {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' {
			return wireLines(mend(raw))
		}
		dots = dots || rest[0] == '.'
		rest = rest[end+1:]
	}
	if count == 0 || bytes.Count(raw, []byte("\r")) != count {
		return wireLines(mend(raw))
	}
	return raw, dots
}

// mend makes CR LF of each CR, LF and CR LF, and ends the last line.
func mend(raw []byte) []byte {
	out := make([]byte, 0, len(raw)+len(raw)/16+2)
	for i, b := range raw {
		switch {
		case b == '\n' && i > 0 && raw[i-1] == '\r': // its CR has written both
		case b == '\r' || b == '\n':
			out = append(out, '\r', '\n')
		default:
			out = append(out, b)
		}
	}
	if !bytes.HasSuffix(out, []byte("\r\n")) {
		out = append(out, '\r', '\n')
	}
	return out
}

// appendData appends the mail as DATA carries it: a dot that begins a line is doubled, and a lone dot ends it.
func (l *letter) appendData(out []byte) []byte {
	raw := l.raw
	if l.dots {
		if raw[0] == '.' {
			out = append(out, '.')
		}
		for i := bytes.Index(raw, []byte("\n.")); i >= 0; i = bytes.Index(raw, []byte("\n.")) {
			out = append(append(out, raw[:i+2]...), '.')
			raw = raw[i+2:]
		}
	}
	return append(append(out, raw...), ".\r\n"...)
}

// names matches what a relay may call the people of this letter: their addresses, and the first part alone in brackets.
func (l *letter) names() *regexp.Regexp {
	var all []string
	for _, a := range []string{l.from, l.to} {
		if a != "" {
			all = append(all, regexp.QuoteMeta(a), "<"+regexp.QuoteMeta(a[:strings.LastIndexByte(a, '@')])+">")
		}
	}
	return regexp.MustCompile("(?i)" + strings.Join(all, "|"))
}
