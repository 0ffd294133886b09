package smtptest

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // CRAM-MD5 is what it is
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

func (x *session) mailFrom(rest []byte) verdict {
	path, parameters, ok := cutPath(rest, "FROM:")
	switch {
	case !x.hello:
		return x.refuse("503 5.5.1 Say EHLO first")
	case len(x.srv.opt.Auth) > 0 && x.user == "":
		return x.refuse("530 5.7.0 Authentication required")
	case x.from:
		return x.refuse("503 5.5.1 One mail at a time")
	case !ok:
		return x.refuse("501 5.1.7 Bad sender address syntax")
	}
	x.mail.Parameters = string(parameters)
	for p := range strings.FieldsSeq(x.mail.Parameters) {
		if !x.knows(p) {
			return x.refuse("555 5.5.4 Unsupported parameter")
		}
	}
	if !ascii(path) && !x.utf8() {
		return x.refuse("553 5.6.7 SMTPUTF8 is needed for this address")
	}
	v := x.at(From, "250 2.1.0 Ok")
	if x.from = v == accepted; x.from && x.srv.keeps() {
		x.mail.From = string(path)
	}
	return v
}

func (x *session) knows(parameter string) bool {
	switch {
	case strings.HasPrefix(parameter, "SIZE="):
		return true
	case parameter == "BODY=8BITMIME", parameter == "SMTPUTF8":
		return !x.srv.opt.No8Bit
	}
	return false
}

func (x *session) utf8() bool { return strings.Contains(x.mail.Parameters, "SMTPUTF8") }

func (x *session) rcptTo(rest []byte) verdict {
	path, parameters, ok := cutPath(rest, "TO:")
	switch {
	case !x.from:
		return x.refuse("503 5.5.1 Say MAIL first")
	case !ok || len(path) == 0:
		return x.refuse("501 5.1.3 Bad recipient address syntax")
	case len(parameters) > 0:
		return x.refuse("555 5.5.4 Unsupported parameter")
	case !ascii(path) && !x.utf8():
		return x.refuse("553 5.6.7 SMTPUTF8 is needed for this address")
	case x.to:
		return x.refuse("452 4.5.3 One recipient for each mail")
	}
	v := x.at(To, "250 2.1.5 Ok")
	if x.to = v == accepted; x.to && x.srv.keeps() {
		x.mail.To = string(path)
	}
	return v
}

// cutPath reads FROM:<path> parameters.
func cutPath(b []byte, keyword string) (path, parameters []byte, ok bool) {
	if len(b) < len(keyword)+2 || !is(b[:len(keyword)], keyword) || b[len(keyword)] != '<' {
		return nil, nil, false
	}
	b = b[len(keyword)+1:]
	end := bytes.IndexByte(b, '>')
	if end < 0 || bytes.ContainsAny(b[:end], " <") {
		return nil, nil, false
	}
	return b[:end], bytes.TrimSpace(b[end+1:]), true
}

func ascii(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 }) }

func (x *session) auth(line string) verdict {
	mechanism, initial, _ := strings.Cut(line, " ")
	mechanism = strings.ToUpper(mechanism)
	switch {
	case x.srv.opt.Security == Upgrade && !x.tls:
		return x.refuse("538 5.7.11 Encryption required")
	case !slices.Contains(x.srv.opt.Auth, mechanism):
		return x.refuse("504 5.5.4 Unknown mechanism")
	case x.user != "" || x.from:
		return x.refuse("503 5.5.1 Not now")
	}
	right, ok := x.credentials(mechanism, initial)
	if !ok {
		return x.refuse("501 5.5.2 Cannot read that")
	}
	reply := "235 2.7.0 Welcome"
	if !right {
		reply = "535 5.7.8 Wrong user or password"
	}
	v := x.at(Login, reply)
	if v == accepted && right {
		x.user = x.srv.opt.User
	}
	return v
}

// credentials reads the answers of a mechanism and says whether they are right.
func (x *session) credentials(mechanism, initial string) (right, ok bool) {
	user, password := x.srv.opt.User, x.srv.opt.Password
	switch mechanism {
	case "PLAIN":
		got, ok := decode(initial)
		if initial == "" {
			got, ok = x.ask("")
		}
		return same(got, "\x00"+user+"\x00"+password), ok
	case "LOGIN":
		u, okUser := x.ask("Username:")
		p, okPassword := x.ask("Password:")
		return same(u, user) && same(p, password), okUser && okPassword
	}
	challenge := "<1896.697170952@smtptest.invalid>"
	got, ok := x.ask(challenge)
	mac := hmac.New(md5.New, []byte(password))
	mac.Write([]byte(challenge))
	return same(got, user+" "+hex.EncodeToString(mac.Sum(nil))), ok
}

func (x *session) ask(challenge string) (string, bool) {
	x.say("334 " + base64.StdEncoding.EncodeToString([]byte(challenge)))
	line, ok := x.readLine()
	if !ok {
		return "", false
	}
	return decode(string(line))
}

func decode(s string) (string, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err == nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
