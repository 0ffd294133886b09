package cli

import (
	"regexp"
	"strings"
	"unicode"
)

func (e *Env) paint(code, text string) string {
	if !e.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (e *Env) bold(text string) string   { return e.paint("1", text) }
func (e *Env) dim(text string) string    { return e.paint("2", text) }
func (e *Env) red(text string) string    { return e.paint("31", text) }
func (e *Env) green(text string) string  { return e.paint("32", text) }
func (e *Env) yellow(text string) string { return e.paint("33", text) }

// ofState gives a state the colour that people expect of it.
func (e *Env) ofState(state string) string {
	text := strings.ToLower(state)
	switch state {
	case "RUNNING", "STARTED", "STAGED":
		return e.green(text)
	case "CRASHED", "FAILED":
		return e.red(text)
	case "STARTING", "DOWN":
		return e.yellow(text)
	}
	return text
}

var (
	escapes = regexp.MustCompile("\x1b(\\[[0-?]*[\\x20-\\x2f]*[\\x40-\\x7e]|[\\]PX^_][^\x07\x1b]*(\x07|\x1b\\\\)?|.)?")
	colours = regexp.MustCompile("^\x1b\\[[0-9;]*m$")
)

// clean takes out what would steer a terminal: names and log lines are written by others.
func clean(text string) string { return cleaned(text, false) }

// cleanLog is clean that lets colours through.
func cleanLog(text string) string {
	safe := cleaned(text, true)
	if strings.Contains(safe, "\x1b") {
		safe += "\x1b[0m"
	}
	return safe
}

func cleaned(text string, keepColours bool) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	text = escapes.ReplaceAllStringFunc(text, func(seq string) string {
		if keepColours && colours.MatchString(seq) {
			return seq
		}
		return ""
	})
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && (r != '\x1b' || !keepColours) {
			return -1
		}
		return r
	}, text)
}

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shell writes a word so that it can be pasted into a shell.
func shell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(clean(word), "'", `'\''`) + "'"
}
