package notify

import (
	"bytes"
	"fmt"
	"net/mail"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Headers are written here and nowhere else. A value is a row of words with one blank between them; no word holds a blank, an end of
// a line or a control character, whatever the input was.

const (
	foldAt  = 76 // characters: where a header goes on in the next line, if it can
	maxWord = 70 // characters of a word that may stand as it is
	encoded = 52 // characters of an encoded word, so that it fits behind the name of any header of ours
)

// header writes one header. The value comes from unstructured, from mailbox, or is made of our own characters.
func header(b *bytes.Buffer, name, value string) {
	b.WriteString(name)
	b.WriteByte(':')
	at := len(name) + 1
	for value != "" {
		word, rest, _ := strings.Cut(value, " ")
		if at+1+len(word) > foldAt {
			b.WriteString("\r\n")
			at = 0
		}
		b.WriteByte(' ')
		b.WriteString(word)
		at += 1 + len(word)
		value = rest
	}
	b.WriteString("\r\n")
}

// unstructured is s as the value of a header that holds text: as it is where it can be, encoded after RFC 2047 where it cannot.
func unstructured(s string) string {
	if s = oneLine(s); isPlain(s) {
		return s
	}
	return encodeWords(s)
}

// isPlain tells whether s may stand in a header as it is.
func isPlain(s string) bool {
	word := 0
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '=' && i+1 < len(s) && s[i+1] == '?' {
			return false
		}
		if word++; s[i] == ' ' {
			word = 0
		}
		if word > maxWord {
			return false
		}
	}
	return true
}

// encodeWords encodes s after RFC 2047 (Q), with the few characters that are safe in names before addresses, too.
func encodeWords(s string) string {
	const start, end, hex = "=?utf-8?q?", "?=", "0123456789ABCDEF"
	var b strings.Builder
	room := 0
	for _, r := range s {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == ' '
		size := 1
		if !plain {
			size = 3 * utf8.RuneLen(r)
		}
		if size > room {
			if b.Len() > 0 {
				b.WriteString(end + " ")
			}
			b.WriteString(start)
			room = encoded - len(start) - len(end)
		}
		room -= size
		switch {
		case r == ' ':
			b.WriteByte('_')
		case plain:
			b.WriteRune(r)
		default:
			for _, c := range []byte(string(r)) {
				b.WriteByte('=')
				b.WriteByte(hex[c>>4])
				b.WriteByte(hex[c&15])
			}
		}
	}
	if b.Len() > 0 {
		b.WriteString(end)
	}
	return b.String()
}

// mailbox reads an address, alone or as Name <address>. It returns the address as SMTP wants it, and both as the value of a header.
func mailbox(s string) (address, value string, err error) {
	a, err := readAddress(s)
	if err != nil {
		return "", "", fmt.Errorf("%s %w", quote(s), err)
	}
	address = wireAddress(a.Address)
	name := oneLine(a.Name)
	switch {
	case name == "":
		return address, address, nil
	case isPlain(name):
		name = `"` + quotes.Replace(name) + `"`
	default:
		name = encodeWords(name)
	}
	return address, name + " <" + address + ">", nil
}

var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// wireAddress is an address as it stands in a mail and in SMTP: its name quoted where it must be, its domain in ASCII. The name may
// still need SMTPUTF8.
func wireAddress(address string) string {
	if isUsual(address) {
		return address
	}
	at := strings.LastIndexByte(address, '@') + 1
	if domain, err := asciiDomain(address[at:]); err == nil {
		address = address[:at] + domain
	}
	quoted := (&mail.Address{Address: address}).String()
	return quoted[1 : len(quoted)-1]
}

func asciiDomain(domain string) (string, error) {
	if isASCII(domain) {
		return domain, nil
	}
	ascii, err := idna.Lookup.ToASCII(domain)
	if err != nil {
		return "", errAddress
	}
	return ascii, nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' })
}
