package bounce

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/emersion/go-smtp"
)

var (
	errUnknown    = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No mail of ours returns to this address"}
	errAgain      = &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "Not taken, please try again later"}
	errTooLarge   = &smtp.SMTPError{Code: 552, EnhancedCode: smtp.EnhancedCode{5, 3, 4}, Message: "The mail is too large"}
	errUnreadable = &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "The mail cannot be read"}
)

// session is one connection of the mail server.
type session struct {
	*Server
	ctx context.Context
	mu  sync.Mutex // a chunked mail is read beside the commands
	to  []recipient
}

type recipient struct{ address, deliveryID string }

// Mail accepts any sender: most bounces have none, and some servers do not know that.
func (s *session) Mail(_ string, options *smtp.MailOptions) error {
	if options != nil && options.Size > s.maxBytes() {
		return errTooLarge
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	at := strings.LastIndexByte(to, '@')
	if at < 0 || !strings.EqualFold(to[at+1:], s.Domain) {
		return errUnknown
	}
	id, ok := s.Open(to[:at])
	if !ok {
		return errUnknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = append(s.to, recipient{address: to, deliveryID: id})
	return nil
}

// LMTPData reads the mail once and takes it for each recipient. It reads to the end whatever happens: what it left would be taken
// for commands. That is also why the limit is here and not in the SMTP library, which stops reading at its own.
func (s *session) LMTPData(r io.Reader, status smtp.StatusCollector) error {
	s.mu.Lock()
	to := s.to
	s.mu.Unlock()

	limited := &io.LimitedReader{R: r, N: s.maxBytes() + 1}
	report, parseErr := Parse("", limited)
	_, err := io.Copy(io.Discard, limited)
	tooLarge := limited.N <= 0
	if err == nil && tooLarge {
		_, err = io.Copy(io.Discard, r)
	}
	switch {
	case errors.Is(err, smtp.ErrTooLongLine): // the library closes the line now
		s.Log.Warn("bounce refused", "cause", "a line of it is too long")
		return errUnreadable
	case err != nil: // half a mail: it will come again
		s.Log.Warn("bounce broke off", "error", err)
		return errAgain
	case tooLarge:
		s.Log.Warn("bounce refused", "cause", "it is too large", "bytes", s.maxBytes())
		return errTooLarge
	case errors.Is(parseErr, ErrNotReport):
		s.Log.Info("mail to a return path passed over", "delivery", to[0].deliveryID, "cause", parseErr)
		return nil
	case parseErr != nil:
		s.Log.Warn("bounce refused", "delivery", to[0].deliveryID, "cause", "its header cannot be read")
		return errUnreadable
	}
	for _, one := range to {
		report.DeliveryID = one.deliveryID
		status.SetStatus(one.address, s.take(report))
	}
	return nil
}

// take logs neither the recipient nor the diagnostic, which may quote addresses.
func (s *session) take(r Report) error {
	log := s.Log.With("delivery", r.DeliveryID, "action", r.Action, "status", r.Status, "hard", r.Hard)
	switch r.Action {
	case "delivered", "relayed", "expanded":
		log.Info("good news passed over")
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, takeTime)
	defer cancel()
	if err := s.Take(ctx, r); err != nil {
		log.Error("bounce not taken", "error", err)
		return errAgain
	}
	log.Info("bounce taken")
	return nil
}

// Data is for SMTP, which this server does not speak.
func (s *session) Data(io.Reader) error { return errAgain }

func (s *session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = nil
}

func (s *session) Logout() error { return nil }
