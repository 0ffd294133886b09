package bounce

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/emersion/go-message"
)

// Report is what a mail server says of a delivery that failed.
type Report struct {
	DeliveryID string
	Hard       bool   // the address does not work: failed, with a status of 5.x.x
	Status     string // the enhanced status code, such as 5.1.1; empty when nobody said one
	Action     string // failed, delayed, delivered, relayed or expanded; empty for a bounce that a machine cannot read
	Diagnostic string // what the other side said, on one line; it may quote addresses
	Recipient  string // as we wrote to it where the report tells, otherwise the final one; may be empty
}

// What Parse reads at most. A report stands near the beginning of its mail; behind it comes the mail that failed.
const (
	maxRead       = 1 << 20 // bytes of the mail
	maxHeader     = 64 << 10
	maxStatusPart = 64 << 10
	maxDepth      = 3  // multiparts in multiparts
	maxParts      = 20 // in all of them together
	maxBoundary   = 200
	maxDiagnostic = 500 // characters
	maxRecipient  = 320 // characters: 64 @ 255
)

// ErrNotReport says that a mail is not about a delivery: an answer from someone on holiday, a receipt, a complaint.
var ErrNotReport = errors.New("the mail is not about a delivery")

// Parse reads a delivery status notification (RFC 3464), or a bounce in plain words: that one is a soft report without an action.
// The mail comes from strangers. Whatever it holds, Parse reads no more than its limits and what it gives back is clean text.
func Parse(deliveryID string, r io.Reader) (Report, error) {
	mail, err := message.ReadWithOptions(io.LimitReader(r, maxRead), &message.ReadOptions{MaxHeaderBytes: maxHeader})
	if mail == nil { // otherwise the error is about an encoding that nobody knows, and the mail can be read
		return Report{}, fmt.Errorf("read the head of a bounce: %w", err)
	}
	parts := maxParts
	if report, ok := choose(groups(statusPart(mail, maxDepth, &parts))); ok {
		report.DeliveryID = deliveryID
		return report, nil
	}
	failed, _, _ := strings.Cut(mail.Header.Get("X-Failed-Recipients"), ",")
	if failed == "" && notReport(mail) {
		return Report{}, ErrNotReport
	}
	subject, _ := mail.Header.Text("Subject") // with an unknown charset it is the raw text
	return Report{DeliveryID: deliveryID, Diagnostic: clean(subject, maxDiagnostic), Recipient: address(failed)}, nil
}

// notReport tells automatic answers and other reports from bounces. Bounces, too, call themselves auto-replied, so it is asked last.
func notReport(mail *message.Entity) bool {
	kind, params, _ := mail.Header.ContentType()
	if kind == "multipart/report" {
		about := strings.ToLower(params["report-type"])
		return about != "" && about != "delivery-status"
	}
	return strings.HasPrefix(strings.ToLower(mail.Header.Get("Auto-Submitted")), "auto-replied") ||
		strings.EqualFold(mail.Header.Get("Precedence"), "auto_reply") ||
		mail.Header.Has("X-Autoreply") || mail.Header.Has("X-Autorespond")
}

// statusPart finds the part for machines. It does not look into mails inside the mail: those are not about this delivery.
func statusPart(e *message.Entity, depth int, parts *int) []byte {
	kind, params, _ := e.Header.ContentType()
	if kind == "message/delivery-status" || kind == "message/global-delivery-status" {
		body, _ := io.ReadAll(io.LimitReader(e.Body, maxStatusPart)) // what could be read of a broken part counts
		return body
	}
	if !strings.HasPrefix(kind, "multipart/") || depth == 0 || len(params["boundary"]) > maxBoundary {
		return nil
	}
	reader := e.MultipartReader()
	for ; *parts > 0; *parts-- {
		part, _ := reader.NextPart()
		if part == nil { // the end, or nonsense
			return nil
		}
		if body := statusPart(part, depth-1, parts); body != nil {
			return body
		}
	}
	return nil
}

// choose gives one report for a mail that may speak of several recipients: we wrote to one, and the others are where it was
// forwarded. A soft failure beats a hard one, because a person reached in one place must not be struck off.
func choose(all []group) (Report, bool) {
	var reports []Report
	for _, g := range all {
		if g["action"] != "" || g["final-recipient"] != "" {
			reports = append(reports, g.report())
		}
	}
	if len(reports) == 0 {
		return Report{}, false
	}
	return slices.MinFunc(reports, func(a, b Report) int { return a.rank() - b.rank() }), true
}

func (r Report) rank() int {
	switch {
	case r.Action == "failed" && !r.Hard:
		return 0
	case r.Action == "failed":
		return 1
	case r.Action == "delayed":
		return 2
	}
	return 3
}

// clean makes one line of at most limit characters that can be shown and stored anywhere.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, s)
	line := []rune(strings.Join(strings.Fields(s), " "))
	return strings.TrimSpace(string(line[:min(len(line), limit)]))
}
