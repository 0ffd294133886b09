package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/proa-dev/proa/notify/v1"
)

type notifyMessageOptions struct {
	status, after *string
	count         **int
	all, wait     *bool
	as            func(context.Context, *session) (*sender, error)
}

var notifyMessageCommand = command{
	name: "notify message", args: "ID", group: notifications, short: "Show how far a message is, and what became of it for each person",
	long:     "Only the client that has sent a message can see it. People are known by their ids: their addresses are not the sender's to read.",
	examples: []string{"proa notify message 019a8b1c2d3e4f5061728394a5b6c7d8 --wait", "proa notify message 019a8b1c2d3e4f5061728394a5b6c7d8 --status failed --all"},
	setup: func(f *flags) action {
		o := notifyMessageOptions{
			wait: f.on("wait", "stay until it is delivered, and show how far it is"), status: f.text("status", "STATE", "only people who are queued, delivered, failed or undeliverable"),
			count: f.number("count", "N", "how many people to show (50)"), after: f.text("after", "ID", "go on after this one"), all: f.on("all", "show all people"),
		}
		o.as = senderFlags(f)
		f.output()
		return o.run
	},
}

// shownMessage is a message as JSON shows it.
type shownMessage struct {
	v1.Status
	v1.Recipients
}

const shownPeople = 50

func (o notifyMessageOptions) run(ctx context.Context, s *session, args []string) error {
	count := shownPeople
	if *o.count != nil {
		count = **o.count
	}
	if count > v1.MaxPage {
		return usage("The option --count can be %d at most. --all shows everybody.", v1.MaxPage)
	}
	x, err := o.as(ctx, s)
	if err != nil {
		return err
	}
	if *o.wait {
		return x.follow(ctx, args[0])
	}
	var shown shownMessage
	if shown.Status, err = x.message(ctx, args[0]); err != nil {
		return err
	}
	if count > 0 {
		if shown.Recipients, err = o.people(ctx, x, args[0], count); err != nil {
			return err
		}
	}
	if s.flags.json {
		return s.json(shown)
	}
	s.showMessage(shown.Status)
	s.showPeople(shown.Recipients.Recipients)
	if shown.Next != "" {
		s.say("\nThere are more. Next: proa notify message %s --after %s    # --all shows everybody", shell(args[0]), shell(shown.Next))
	}
	return nil
}

func (x *sender) message(ctx context.Context, id string) (v1.Status, error) {
	var m v1.Status
	err := x.call(ctx, http.MethodGet, v1.MessagePath(id), nil, &m)
	return m, err
}

// people reads one page of them, or all.
func (o notifyMessageOptions) people(ctx context.Context, x *sender, id string, count int) (v1.Recipients, error) {
	query := url.Values{"count": {strconv.Itoa(count)}}
	if *o.all {
		query.Set("count", strconv.Itoa(v1.MaxPage))
	}
	if *o.status != "" {
		query.Set("status", *o.status)
	}
	whole := v1.Recipients{Recipients: []v1.Recipient{}, Next: *o.after}
	for {
		if whole.Next != "" {
			query.Set("after", whole.Next)
		}
		var page v1.Recipients
		if err := x.call(ctx, http.MethodGet, v1.RecipientsPath(id, query), nil, &page); err != nil {
			return whole, err
		}
		whole.Recipients, whole.Next = append(whole.Recipients, page.Recipients...), page.Next
		if whole.Next == "" || !*o.all {
			return whole, nil
		}
	}
}

func (s *session) showMessage(m v1.Status) {
	to := m.Audience
	if m.Recipient != m.Audience {
		to += " " + m.Recipient
	}
	rows := [][2]string{{"message", clean(m.ID)}, {"kind", clean(firstOf(m.Kind, "-"))}, {"to", clean(to)}, {"sent", s.ago(m.Received)}, {"status", s.ofDelivery(m.Status)}}
	if m.Reason != "" {
		rows = append(rows, [2]string{"reason", clean(m.Reason)})
	}
	s.pairs(s.Out, append(rows, [2]string{"people", clean(countsOf(m))}))
}

// countsOf is how far a message is, in one line.
func countsOf(m v1.Status) string {
	total := strconv.Itoa(m.Total)
	if !m.Complete && m.Reason == "" {
		total += " so far"
	}
	text := fmt.Sprintf("%s: %d queued, %d delivered, %d failed", total, m.Queued, m.Delivered, m.Failed)
	skipped, why := 0, []string{}
	for _, reason := range slices.Sorted(maps.Keys(m.Skipped)) {
		skipped += m.Skipped[reason]
		why = append(why, fmt.Sprintf("%d %s", m.Skipped[reason], strings.ReplaceAll(reason, "_", " ")))
	}
	if skipped > 0 {
		text += fmt.Sprintf(", %d passed over (%s)", skipped, strings.Join(why, ", "))
	}
	return text
}

func (e *Env) ofDelivery(state v1.State) string {
	switch text := clean(string(state)); state {
	case v1.Delivered:
		return e.green(text)
	case v1.Failed:
		return e.red(text)
	default:
		return e.yellow(text)
	}
}

func (s *session) showPeople(people []v1.Recipient) {
	if len(people) == 0 {
		return
	}
	rows := make([][]string, len(people))
	for i, p := range people {
		why := p.Reason
		if last := len(p.Tries) - 1; last >= 0 {
			why = strings.TrimSpace(p.Tries[last].Code + " " + firstOf(p.Reason, p.Tries[last].Reason))
		}
		rows[i] = []string{clean(firstOf(p.User, p.Address, "-")), s.ofDelivery(p.Status), strconv.Itoa(p.Attempts), s.ago(p.Changed), clean(firstOf(strings.ReplaceAll(why, "_", " "), "-"))}
	}
	fmt.Fprintln(s.Out)
	s.table(s.Out, []string{"recipient", "status", "attempts", "since", "reason"}, rows)
}

// follow shows how far a message is until nobody's mail is on the way any more.
func (x *sender) follow(ctx context.Context, id string) error {
	progress := &live{e: x.Env}
	for {
		m, err := x.message(ctx, id)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("Message %s to %s", m.ID, countsOf(m))
		if !x.flags.json {
			progress.show([]string{clean(line)}, clean(line))
		}
		if m.Status != v1.Queued {
			return x.settled(m)
		}
		if err := x.wait(ctx, x.Poll); err != nil {
			return err
		}
	}
}

// settled is the end: a command that has reached nobody, or not everybody it should have, has failed.
func (x *sender) settled(m v1.Status) error {
	if x.flags.json {
		if err := x.json(m); err != nil {
			return err
		}
	}
	look := "proa notify message " + shell(m.ID)
	switch {
	case m.Reason != "":
		return failed(look, "The message was not sent: %s", m.Reason)
	case m.Failed > 0:
		return failed(look+" --status failed", "The message did not reach %s.", plural(m.Failed, "recipient"))
	case m.Status == v1.Undeliverable:
		return failed(look, "The message reached nobody: all were passed over.")
	}
	if !x.flags.json {
		x.ok()
	}
	return nil
}
