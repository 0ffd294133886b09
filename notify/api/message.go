package api

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/store"
)

// messageShape is a message as it is sent.
type messageShape struct {
	KindID  string `json:"kind_id"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
	ReplyTo string `json:"reply_to"`
	Role    string `json:"role"`
}

// accepted is the one element of a reply to a send.
type accepted struct {
	Status    notify.State `json:"status"`
	Recipient string       `json:"recipient"`
	ID        string       `json:"notification_id"`
	RequestID string       `json:"vcap_request_id"`
}

const maxKey = 255

// send takes a message for an audience. The reply never waits for the audience.
func (s *Server) send(w http.ResponseWriter, r *http.Request, from who, audience notify.Audience) error {
	if err := s.budgets.take(w, from.client()); err != nil {
		return err
	}
	var in messageShape
	if err := web.Read(r, &in); err != nil {
		return err
	}
	switch audience.Kind {
	case notify.ToEmail:
		audience.ID = in.To
		if address, err := notify.Address(in.To); err == nil {
			audience.ID = address
		}
	case notify.ToSpace, notify.ToOrganization:
		audience.Role = in.Role
	}
	m := notify.Message{ClientID: from.client(), KindID: in.KindID, Audience: audience, Subject: in.Subject, Text: in.Text, HTML: in.HTML, ReplyTo: in.ReplyTo,
		Class: audience.Class(), RequestID: from.RequestID}
	if err := m.Check(); err != nil {
		return err
	}
	if err := s.renders(r, m); err != nil {
		return err
	}
	once, err := idempotency(r, in)
	if err != nil {
		return err
	}
	body, err := s.Store.Accept(r.Context(), m, once, store.May{Critical: from.has(scopeCritical), Normal: from.has(scopeWrite) || audience.Kind == notify.ToEmail}, func(m notify.Message) any {
		return []accepted{{notify.Queued, recipient(m.Audience), m.ID, m.RequestID}}
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, body)
}

// recipient is how a reply names an audience.
func recipient(a notify.Audience) string {
	if a.Kind == notify.ToEveryone {
		return string(notify.ToEveryone)
	}
	return a.ID
}

// renders tries the template on the message before it is taken, so that one that grows too large is refused and not lost.
func (s *Server) renders(r *http.Request, m notify.Message) error {
	look, err := s.Store.Look(r.Context(), m.ClientID, m.KindID)
	if err != nil {
		return err
	}
	parsed, err := look.Template.Parse()
	if err != nil {
		return err
	}
	v := notify.Sample()
	v.Subject, v.Text, v.HTML = m.Subject, m.Text, m.HTML
	_, err = parsed.Render(v)
	return err
}

// idempotency reads the key under which a send happens once.
func idempotency(r *http.Request, in messageShape) (*store.Once, error) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		return nil, nil
	}
	if len(key) > maxKey {
		return nil, fault.Invalid("Idempotency-Key has more than %d characters.", maxKey)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(r.Method+" "+r.URL.Path+"\n"), body...))
	return &store.Once{Key: key, Body: sum[:]}, nil
}

// toAudience is a send to those that the path names.
func (s *Server) toAudience(w http.ResponseWriter, r *http.Request, from who, kind notify.AudienceKind) error {
	return s.send(w, r, from, notify.Audience{Kind: kind, ID: r.PathValue("id")})
}

func (s *Server) toUser(w http.ResponseWriter, r *http.Request, from who) error {
	return s.toAudience(w, r, from, notify.ToUser)
}

func (s *Server) toSpace(w http.ResponseWriter, r *http.Request, from who) error {
	return s.toAudience(w, r, from, notify.ToSpace)
}

func (s *Server) toOrganization(w http.ResponseWriter, r *http.Request, from who) error {
	return s.toAudience(w, r, from, notify.ToOrganization)
}

func (s *Server) toEveryone(w http.ResponseWriter, r *http.Request, from who) error {
	return s.toAudience(w, r, from, notify.ToEveryone)
}

func (s *Server) toScope(w http.ResponseWriter, r *http.Request, from who) error {
	return s.toAudience(w, r, from, notify.ToScope)
}

func (s *Server) toEmail(w http.ResponseWriter, r *http.Request, from who) error {
	return s.toAudience(w, r, from, notify.ToEmail)
}

// statusShape is how far a message is.
type statusShape struct {
	Status    notify.State          `json:"status"`
	ID        string                `json:"notification_id"`
	Kind      string                `json:"kind_id,omitempty"`
	Audience  string                `json:"audience"`
	Recipient string                `json:"recipient"`
	Received  time.Time             `json:"received_at"`
	Complete  bool                  `json:"audience_complete"` // false while people may still be added
	Total     int                   `json:"total"`
	Queued    int                   `json:"queued"`
	Delivered int                   `json:"delivered"`
	Failed    int                   `json:"failed"`
	Skipped   map[notify.Reason]int `json:"skipped"`
	Reason    string                `json:"reason,omitempty"`
}

func presentMessage(m store.Sending) statusShape {
	return statusShape{Status: m.State, ID: m.ID, Kind: m.KindID, Audience: string(m.Audience.Kind), Recipient: recipient(m.Audience), Received: m.Received,
		Complete: m.Expanded != nil, Total: m.Counts.Total, Queued: m.Counts.Queued, Delivered: m.Counts.Delivered, Failed: m.Counts.Failed, Skipped: m.Counts.Skipped, Reason: m.Reason}
}

func (s *Server) getMessage(w http.ResponseWriter, r *http.Request, from who) error {
	m, err := s.Store.Message(r.Context(), from.client(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presentMessage(m))
}

const (
	defaultPage = 100
	maxPage     = 500
)

func pageSize(r *http.Request) (int, error) {
	text := r.URL.Query().Get("count")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, fault.Invalid("count must be a number between 1 and %d.", maxPage)
	}
	return n, nil
}

// listMessages lists what the client has sent, the newest first; failed=true only what did not reach everybody for good.
func (s *Server) listMessages(w http.ResponseWriter, r *http.Request, from who) error {
	count, err := pageSize(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if before := q.Get("before"); before != "" {
		if _, ok := notify.TimeOf(before); !ok {
			return fault.Invalid("before must be the id of a message.")
		}
	}
	list, err := s.Store.Messages(r.Context(), from.client(), q.Get("before"), q.Get("failed") == "true", count+1)
	if err != nil {
		return err
	}
	out := struct {
		Messages []statusShape `json:"messages"`
		Next     string        `json:"next,omitempty"`
	}{Messages: []statusShape{}}
	if len(list) > count {
		list = list[:count]
		out.Next = list[count-1].ID
	}
	for _, m := range list {
		out.Messages = append(out.Messages, presentMessage(m))
	}
	return web.JSON(w, http.StatusOK, out)
}

// attemptShape is one try that did not end well.
type attemptShape struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	Code    string    `json:"code,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// recipientShape is one person of a message.
type recipientShape struct {
	ID       string         `json:"delivery_id"`
	User     string         `json:"user_guid,omitempty"`
	Address  string         `json:"address,omitempty"`
	Status   notify.State   `json:"status"`
	Reason   string         `json:"reason,omitempty"`
	Attempts int            `json:"attempts"`
	Changed  time.Time      `json:"changed_at"`
	Tries    []attemptShape `json:"unsuccessful_attempts,omitempty"`
}

func (s *Server) listRecipients(w http.ResponseWriter, r *http.Request, from who) error {
	count, err := pageSize(r)
	if err != nil {
		return err
	}
	m, err := s.Store.Message(r.Context(), from.client(), r.PathValue("id"))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if state := q.Get("status"); state != "" && !slices.Contains([]notify.State{notify.Queued, notify.Delivered, notify.Failed, notify.Undeliverable}, notify.State(state)) {
		return fault.Invalid("status must be queued, delivered, failed or undeliverable.")
	}
	list, err := s.Store.Recipients(r.Context(), m.ID, q.Get("after"), notify.State(q.Get("status")), count+1)
	if err != nil {
		return err
	}
	out := struct {
		Recipients []recipientShape `json:"recipients"`
		Next       string           `json:"next,omitempty"`
	}{Recipients: []recipientShape{}}
	if len(list) > count {
		list = list[:count]
		out.Next = list[count-1].ID
	}
	at := map[string]int{}
	var ids []string
	for i, d := range list {
		shape := recipientShape{ID: d.ID, User: d.UserID, Status: d.State, Reason: d.Reason, Attempts: d.Attempts, Changed: d.Changed}
		if m.Audience.Kind == notify.ToEmail {
			shape.Address = d.Address // the sender gave it; the addresses of people are not theirs to read
		}
		out.Recipients = append(out.Recipients, shape)
		at[d.ID] = i
		ids = append(ids, d.ID)
	}
	tries, err := s.Store.Attempts(r.Context(), m.ID, ids)
	if err != nil {
		return err
	}
	for _, t := range tries {
		shape := &out.Recipients[at[t.DeliveryID]]
		shape.Tries = append(shape.Tries, attemptShape{t.TriedAt, t.Outcome, t.Code, t.Reason})
	}
	return web.JSON(w, http.StatusOK, out)
}

// retryMessage sends again to those for whom it had failed for good.
func (s *Server) retryMessage(w http.ResponseWriter, r *http.Request, from who) error {
	if err := s.budgets.take(w, from.client()); err != nil {
		return err
	}
	m, err := s.Store.Message(r.Context(), from.client(), r.PathValue("id"))
	if err != nil {
		return err
	}
	need := scopeWrite
	switch {
	case m.Critical:
		need = scopeCritical
	case m.Audience.Kind == notify.ToEmail:
		need = scopeEmails
	}
	if !from.has(need) {
		return fault.Forbidden("Sending this again needs the scope %s, and the token does not have it. Ask an administrator for it.", need)
	}
	n, err := s.Store.Again(r.Context(), m)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, map[string]int{"queued": n})
}
