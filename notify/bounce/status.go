package bounce

import (
	"regexp"
	"slices"
	"strings"
)

// group is one block of fields of a delivery status part, by lower-case name: the first is about the mail, each other one about a
// recipient.
type group map[string]string

// maxField is what a field may hold; the rest of a longer one is dropped.
const maxField = 4 << 10

// groups reads blocks of fields. It is milder than the rules for a header, because many servers write these by hand: a line that
// is not a field is passed over, and of two fields of one name the first counts.
func groups(part []byte) []group {
	var all []group
	current, name := group{}, ""
	for line := range strings.Lines(string(part)) {
		text := strings.TrimSpace(line)
		key, value, found := strings.Cut(text, ":")
		switch {
		case text == "":
			if len(current) > 0 {
				all = append(all, current)
			}
			current, name = group{}, ""
		case line[0] == ' ' || line[0] == '\t':
			if name != "" && len(current[name]) < maxField {
				current[name] += " " + cut(text)
			}
		case found:
			name = strings.ToLower(strings.TrimSpace(key))
			if _, twice := current[name]; twice {
				name = ""
			} else {
				current[name] = cut(strings.TrimSpace(value))
			}
		default:
			name = ""
		}
	}
	if len(current) > 0 {
		all = append(all, current)
	}
	return all
}

func cut(s string) string { return s[:min(len(s), maxField)] }

var (
	actions    = []string{"failed", "delayed", "delivered", "relayed", "expanded"}
	statusCode = regexp.MustCompile(`^[245]\.[0-9]{1,3}\.[0-9]{1,3}\b`)
	replyCode  = regexp.MustCompile(`^([245])[0-9]{2}(?:[ -]+#?([245]\.[0-9]{1,3}\.[0-9]{1,3}))?\b`)
)

func (g group) report() Report {
	action, _, _ := strings.Cut(strings.ToLower(g["action"]), " ")
	if !slices.Contains(actions, action) {
		action = ""
	}
	diagnostic := clean(value(g["diagnostic-code"]), maxDiagnostic)
	status := status(g["status"], diagnostic)
	recipient := address(value(g["original-recipient"]))
	if recipient == "" {
		recipient = address(value(g["final-recipient"]))
	}
	return Report{
		Hard:       action == "failed" && strings.HasPrefix(status, "5."),
		Status:     status,
		Action:     action,
		Diagnostic: diagnostic,
		Recipient:  recipient,
	}
}

// status is the code of the field, unless that one is missing or says no more than its class and the other side's reply says more.
// Some servers write 5.0.0 for everything, even for a mail that only ever met 4xx until it was too old.
func status(field, diagnostic string) string {
	status := statusCode.FindString(field)
	if status != "" && !strings.HasSuffix(status, ".0.0") {
		return status
	}
	reply := replyCode.FindStringSubmatch(diagnostic)
	switch {
	case reply == nil:
		return status
	case reply[2] != "":
		return reply[2]
	}
	return reply[1] + ".0.0"
}

// value drops the type in front of a value: "smtp; 550 no" is "550 no".
func value(typed string) string {
	if _, v, ok := strings.Cut(typed, ";"); ok {
		return v
	}
	return typed
}

// address is what looks like an address, or nothing.
func address(s string) string {
	s = strings.Trim(clean(s, maxRecipient+1), "<> ")
	if len(s) > maxRecipient || !strings.Contains(s, "@") || strings.Contains(s, " ") {
		return ""
	}
	return s
}
