package platform

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// NoticeKind is a sort of what developers can be told about their apps, as the notification service knows it.
type NoticeKind string

// The kinds.
const (
	NoticeCrashing NoticeKind = "app.crashing"
	NoticeFailed   NoticeKind = "service.failed"
)

// NoticeKinds says what each is about. Nobody's life depends on one: people may unsubscribe from all of them.
var NoticeKinds = map[NoticeKind]string{
	NoticeCrashing: "An app has crashed three times in a row",
	NoticeFailed:   "An operation on a service of an app has failed",
}

// Notice is what the developers of a space are told, as a mail. It holds nothing that they could not see, no secret and no line of a log.
type Notice struct {
	Kind    NoticeKind `json:"kind"`
	Subject string     `json:"subject"`
	Text    string     `json:"text"`
	HTML    string     `json:"html"`
}

// Where names the space of an app or a service as people do.
type Where struct{ Org, Space string }

func (w Where) target() string {
	return "proa target -o " + quoted(w.Org) + " -s " + quoted(w.Space)
}

// CrashesTold is the crash in a row of which developers are told, once for each streak. Where nobody asked for it then, it is the next.
const CrashesTold = 3

// StreakLasts is how long after a crash an instance may still be in its streak: it waits for its next try, and is then up for too short
// a time to be well.
const StreakLasts = lastWait + ForgetAfter

// ErrNoNotices refuses what this installation cannot do.
var ErrNoNotices = fault.Unprocessable("Notifications are not available here, because this installation knows no notification service. Ask its operator to set PROA_NOTIFY_URL.")

// Notice tells of the crash.
func (c Crash) Notice(app, process string, in Where) Notice {
	called, times := OneLine(app), "three times"
	if c.Count > CrashesTold {
		times = fmt.Sprintf("%d times", c.Count)
	}
	return letter{
		kind: NoticeCrashing, subject: fmt.Sprintf("App %s crashed %s", called, times),
		lead: fmt.Sprintf("Instance %d of process %s of app %s has crashed %s in a row.", c.Index, process, called, times),
		facts: [][2]string{
			{"What ended", c.Exit.Description}, {"When", c.Exit.Time.UTC().Format(noticeTime)}, {"Space", OneLine(in.Space) + ", of organization " + OneLine(in.Org)},
		},
		more:     "It is being started again. Should it go on like that, it waits longer before each start, up to 16 minutes. You are told once, not for each crash that follows.",
		commands: []string{in.target(), "proa logs " + quoted(app) + " --recent", "proa events " + quoted(app)},
		last:     "You get this because the app asks for it. No more of them: proa disable-notifications " + quoted(app),
	}.write()
}

// FailedOperation is an operation on a service that has failed, as those who are told of it see it.
type FailedOperation struct {
	Kind     OperationKind
	Title    string // what people call the subject
	Words    string // why
	Instance string // the name of the service instance
	At       time.Time
	Apps     []string // that ask for it, at least one
}

// Notice tells of the failure.
func (f FailedOperation) Notice(in Where) Notice {
	failed := OneLine(strings.TrimSuffix(f.Kind.Failure(f.Title, "").Detail, ". "))
	return letter{
		kind: NoticeFailed, subject: failed, lead: failed + ".",
		facts: [][2]string{
			{"Why", f.Words}, {"When", f.At.UTC().Format(noticeTime)}, {"Space", OneLine(in.Space) + ", of organization " + OneLine(in.Org)},
		},
		commands: []string{in.target(), "proa service " + quoted(f.Instance)},
		last:     f.asked(),
	}.write()
}

// appsNamed is how many apps a notice names. It is to be read, and to fit into a mail.
const appsNamed = 20

// asked says which apps ask for the notice. It comes until none of them does.
func (f FailedOperation) asked() string {
	if len(f.Apps) == 1 {
		return "You get this because an app of the space asks for it. No more of them: proa disable-notifications " + quoted(f.Apps[0])
	}
	var names, commands []string
	for _, app := range f.Apps[:min(len(f.Apps), appsNamed)] {
		names, commands = append(names, OneLine(app)), append(commands, "proa disable-notifications "+quoted(app))
	}
	more, rest := "", len(f.Apps)-len(names)
	if rest > 0 {
		more = fmt.Sprintf(", and %d more", rest)
	}
	return "You get this because these apps of the space ask for it: " + strings.Join(names, ", ") + more + ". No more of them: " + strings.Join(commands, "; ") + more
}

const noticeTime = "2 January 2006, 15:04:05 MST"

// letter is a notice before it is written, once as text and once as HTML.
type letter struct {
	kind          NoticeKind
	subject, lead string
	facts         [][2]string
	more          string
	commands      []string
	last          string
}

func (l letter) write() Notice {
	var text, page strings.Builder
	text.WriteString(l.lead + "\n\n")
	page.WriteString("<p>" + html.EscapeString(l.lead) + "</p>\n<table>\n")
	for _, f := range l.facts {
		fmt.Fprintf(&text, "  %-11s %s\n", f[0]+":", f[1])
		fmt.Fprintf(&page, "<tr><td>%s:&nbsp;</td><td><b>%s</b></td></tr>\n", html.EscapeString(f[0]), html.EscapeString(f[1]))
	}
	page.WriteString("</table>\n")
	if l.more != "" {
		text.WriteString("\n" + l.more + "\n")
		page.WriteString("<p>" + html.EscapeString(l.more) + "</p>\n")
	}
	text.WriteString("\nTo see more:\n\n  " + strings.Join(l.commands, "\n  ") + "\n\n" + l.last + "\n")
	page.WriteString("<p>To see more:</p>\n<pre>" + html.EscapeString(strings.Join(l.commands, "\n")) + "</pre>\n<p>" + html.EscapeString(l.last) + "</p>\n")
	return Notice{Kind: l.kind, Subject: l.subject, Text: text.String(), HTML: page.String()}
}
