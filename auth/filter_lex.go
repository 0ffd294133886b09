package auth

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

const (
	filterSpace  = " \t\r\n"
	filterBreaks = filterSpace + `()"'` // what ends a word
)

// advance reads the next token.
func (p *filterParser) advance() error {
	p.pos = len(p.src) - len(strings.TrimLeft(p.src[p.pos:], filterSpace))
	p.tok = filterToken{at: p.pos}
	if p.pos == len(p.src) {
		return nil
	}
	switch c := p.src[p.pos]; c {
	case '(':
		p.tok.kind = openToken
		p.pos++
	case ')':
		p.tok.kind = closeToken
		p.pos++
	case '"', '\'':
		text, err := p.quoted(c)
		if err != nil {
			return err
		}
		p.tok.kind, p.tok.text = stringToken, text
	default:
		end := strings.IndexAny(p.src[p.pos:], filterBreaks)
		if end < 0 {
			end = len(p.src) - p.pos
		}
		p.tok.kind, p.tok.text = wordToken, p.src[p.pos:p.pos+end]
		p.pos += end
	}
	return nil
}

// quoted reads the string that opens at pos.
func (p *filterParser) quoted(quote byte) (string, error) {
	var text strings.Builder
	open := p.pos
	p.pos++
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == quote:
			p.pos++
			return text.String(), nil
		case c == '\\':
			r, err := p.escape(quote)
			if err != nil {
				return "", err
			}
			text.WriteRune(r)
		case c < ' ':
			return "", p.fail(p.pos, "has a control character in a string", fmt.Sprintf(`Write it as \u%04x.`, c))
		default:
			text.WriteByte(c)
			p.pos++
		}
	}
	return "", p.fail(open, "opens a string that never ends", "Close it with "+string(quote)+".")
}

var filterEscapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads the escape that starts at pos: one of JSON's, or the single quote within single quotes.
func (p *filterParser) escape(quote byte) (rune, error) {
	at := p.pos
	if unit, ok := p.unicodeEscape(); ok {
		return p.unicode(at, unit)
	}
	if p.pos+1 < len(p.src) {
		c := p.src[p.pos+1]
		r, ok := filterEscapes[c]
		if c == quote {
			r, ok = rune(quote), true
		}
		if ok {
			p.pos += 2
			return r, nil
		}
	}
	return 0, p.fail(at, "has an unknown escape", `Use \" \\ \/ \b \f \n \r \t or \u with four hexadecimal digits.`)
}

// unicode turns the first UTF-16 unit of the escape that started at into a character, reading the second where there is one.
func (p *filterParser) unicode(at int, unit rune) (rune, error) {
	if unit == 0 {
		return 0, p.fail(at, "has a NUL character", "Leave it out.")
	}
	if !utf16.IsSurrogate(unit) {
		return unit, nil
	}
	if low, ok := p.unicodeEscape(); ok {
		if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, p.fail(at, "has half of a surrogate pair", `Write both halves, as in \ud83d\ude00, or the character itself.`)
}

// unicodeEscape steps over \uXXXX at pos, if that is what stands there.
func (p *filterParser) unicodeEscape() (rune, bool) {
	const size = len(`\uXXXX`)
	rest := p.src[p.pos:]
	if len(rest) < size || !strings.HasPrefix(rest, `\u`) {
		return 0, false
	}
	unit, err := strconv.ParseUint(rest[2:size], 16, 16)
	if err != nil {
		return 0, false
	}
	p.pos += size
	return rune(unit), true
}

// writeQuoted writes s as a JSON string with as few escapes as JSON allows.
func writeQuoted(b *strings.Builder, s string) {
	const short = "\b\f\n\r\t"
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case strings.IndexByte(short, c) >= 0:
			b.WriteByte('\\')
			b.WriteByte("bfnrt"[strings.IndexByte(short, c)])
		case c < ' ':
			b.WriteString(`\u00`)
			b.WriteByte("0123456789abcdef"[c>>4])
			b.WriteByte("0123456789abcdef"[c&0xf])
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

// checkText refuses what no part of a filter may hold. PostgreSQL stores neither NUL nor invalid UTF-8.
func (p *filterParser) checkText() error {
	if len(p.src) > MaxFilterBytes {
		return p.tooLong(len(p.src))
	}
	for i, r := range p.src {
		switch {
		case r == 0:
			return p.fail(i, "has a NUL character", "Leave it out.")
		case r == utf8.RuneError && !strings.HasPrefix(p.src[i:], string(utf8.RuneError)):
			return p.fail(i, "has a byte that is not UTF-8", "Send it as UTF-8.")
		}
	}
	return nil
}

func (p *filterParser) tooLong(n int) error {
	return fault.Invalid("The filter takes %d bytes, and at most %d are taken. Ask in several requests.", n, MaxFilterBytes).
		WithCode("invalid_filter")
}

// unexpected says that the token at hand is not what belongs there, with advice where there is any.
func (p *filterParser) unexpected(expected, advice string) error {
	found := "has " + strconv.Quote(clip(p.tok.text))
	switch p.tok.kind {
	case endToken:
		found = "ends"
	case openToken:
		found = "has ("
	case closeToken:
		found = "has )"
	case stringToken:
		found = "has the string " + strconv.Quote(clip(p.tok.text))
	}
	return p.fail(p.tok.at, found+", where "+expected+" was expected", advice)
}

// fail says what the filter does at a byte offset, counted for people: in characters, from 1.
func (p *filterParser) fail(at int, does, advice string) error {
	sentence := fmt.Sprintf("At character %d the filter %s. %s", utf8.RuneCountInString(p.src[:at])+1, does, advice)
	return fault.Invalid("%s", strings.TrimSpace(sentence)).WithCode("invalid_filter")
}

// clip keeps a quotation short.
func clip(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
