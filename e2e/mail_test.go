package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// awaitMail is `mail ADDRESS PATTERN`: it waits until a mail to an address matches, and prints it as its reader sees it.
func awaitMail(ts *testscript.TestScript, args []string) error {
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		found, err := arrived(args)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			_, err := io.WriteString(ts.Stdout(), found[0])
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("no mail to %s with %q arrived within %s", args[0], args[1], patience)
		}
	}
}

// countMails is `mails ADDRESS PATTERN`: it prints how many mails to an address match, as they are now.
func countMails(ts *testscript.TestScript, args []string) error {
	found, err := arrived(args)
	if err == nil {
		_, err = fmt.Fprintln(ts.Stdout(), len(found))
	}
	return err
}

func arrived(args []string) ([]string, error) {
	dir := os.Getenv("PROA_MAIL_DIR")
	if dir == "" {
		return nil, errors.New("PROA_MAIL_DIR is not set: run make up, then . .run/env")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	if err != nil {
		return nil, err
	}
	return findMails(dir, args[0], pattern)
}

// findMails looks for mails in a Maildir.
func findMails(dir, address string, pattern *regexp.Regexp) (found []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "new", "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(raw, []byte(address)) {
			continue
		}
		text, err := readMail(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if strings.Contains(text, "\nTo: "+address+"\n") && pattern.MatchString(text) {
			found = append(found, text)
		}
	}
	return found, nil
}

// readMail is a mail with its headers and parts decoded, each header in one line.
func readMail(raw []byte) (string, error) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	var lines []string
	for name, values := range m.Header {
		for _, value := range values {
			if decoded, err := new(mime.WordDecoder).DecodeHeader(value); err == nil {
				value = decoded
			}
			if list, err := mail.ParseAddressList(value); name == "To" && err == nil && len(list) == 1 {
				value = list[0].Address
			}
			lines = append(lines, name+": "+value)
		}
	}
	slices.Sort(lines)
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		body := m.Body
		if strings.EqualFold(m.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
			body = quotedprintable.NewReader(body)
		}
		text, err := io.ReadAll(body)
		return "\n" + strings.Join(lines, "\n") + "\n\n" + string(text), err
	}
	text := "\n" + strings.Join(lines, "\n") + "\n"
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return "", err
		}
		text += "\n" + part.Header.Get("Content-Type") + "\n" + string(body) + "\n"
	}
}

func TestReadMail(t *testing.T) {
	const raw = "To: <ann@example.org>\r\nSubject: =?utf-8?q?H=C3=B6chststand?=\r\nContent-Type: multipart/alternative; boundary=x\r\n\r\n" +
		"--x\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nAt 14:20 =3D noon.\r\n--x\r\nContent-Type: text/html\r\n\r\n<b>14:20</b>\r\n--x--\r\n"
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new", "1"), []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	for pattern, found := range map[string]bool{"^Subject: Höchststand$": true, `^At 14:20 = noon\.`: true, "<b>14:20</b>": true, "tomorrow": false} {
		if mails, err := findMails(dir, "ann@example.org", regexp.MustCompile("(?m)"+pattern)); err != nil || (len(mails) == 1) != found {
			t.Errorf("%s: found %q, %v", pattern, mails, err)
		}
	}
	if mails, err := findMails(dir, "bob@example.org", regexp.MustCompile("")); err != nil || len(mails) > 0 {
		t.Errorf("a mail to somebody else: %q, %v", mails, err)
	}
}
