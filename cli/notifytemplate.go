package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/proa-dev/proa/notify/v1"
)

// contentFlags are the parts of a template, or of what it is tried with.
func contentFlags(f *flags, of string) func(*session) (v1.Content, error) {
	subject := f.text("subject", "SUBJECT", "the subject "+of)
	text, html := f.text("text", "TEXT", "the text "+of+": a text, @FILE or -"), f.text("html", "HTML", "the HTML "+of+": a text, @FILE or -")
	return func(s *session) (c v1.Content, err error) {
		if *text == "-" && *html == "-" {
			return c, usage("Only one of --text and --html can be read from the input.")
		}
		c.Subject = *subject
		if c.Text, err = s.words("--text", *text); err != nil {
			return c, err
		}
		c.HTML, err = s.words("--html", *html)
		return c, err
	}
}

var notifyTemplateCreateCommand = command{
	name: "notify template create", args: "NAME", group: notifications, short: "Create a template",
	long: "Placeholders such as {{.Subject}}, {{.Text}} and {{.HTML}} are filled in when a message is sent. A part that is left out says what the message says.\n" +
		"A template that would not work is refused.",
	examples: []string{`proa notify template create Harbour --subject '[harbour] {{.Subject}}' --text '{{.Text}}' --html @harbour.html`},
	setup: func(f *flags) action {
		content, as := contentFlags(f, "of the template"), senderFlags(f)
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			c, err := content(s)
			if err != nil {
				return err
			}
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			var made v1.Created
			if err := x.call(ctx, http.MethodPost, v1.Templates, v1.Template{Name: args[0], Subject: c.Subject, Text: c.Text, HTML: c.HTML}, &made); err != nil {
				return err
			}
			if s.flags.json {
				return s.json(made)
			}
			s.say("%s Template %s has the id %s.", s.green("OK"), s.bold(clean(args[0])), s.bold(clean(made.ID)))
			s.say("\nNext: proa notify template assign %s --kind KIND", shell(made.ID))
			return nil
		}
	},
}

// listedTemplate is a template as `notify template list` shows it.
type listedTemplate struct {
	ID   string `json:"template-id"`
	Name string `json:"name"`
}

var notifyTemplateListCommand = command{
	name: "notify template list", group: notifications, short: "List the templates beside the default one",
	setup: func(f *flags) action {
		as := senderFlags(f)
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			var named map[string]v1.Named
			if err := x.call(ctx, http.MethodGet, v1.Templates, nil, &named); err != nil {
				return err
			}
			all := []listedTemplate{}
			for id, t := range named {
				all = append(all, listedTemplate{id, t.Name})
			}
			slices.SortFunc(all, func(a, b listedTemplate) int { return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID) })
			return list(s, all, "There is only the default template. Next: proa notify template create NAME", []string{"id", "name"}, func(t listedTemplate) []string {
				return []string{clean(t.ID), clean(t.Name)}
			})
		}
	},
}

var notifyTemplateShowCommand = command{
	name: "notify template show", args: "ID", group: notifications, short: "Show a template; the id of the default one is default",
	examples: []string{"proa notify template show default", "proa notify template show 019a8b1c2d3e4f5061728394a5b6c7d8 --output json | jq -r .html"},
	setup: func(f *flags) action {
		as := senderFlags(f)
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			var t v1.Template
			if err := x.call(ctx, http.MethodGet, v1.TemplatePath(args[0]), nil, &t); err != nil {
				return err
			}
			if s.flags.json {
				return s.json(t)
			}
			s.pairs(s.Out, [][2]string{{"name", clean(t.Name)}, {"subject", clean(t.Subject)}})
			s.showContent(t.Text, t.HTML)
			return nil
		}
	},
}

// showContent shows the two parts of a mail.
func (s *session) showContent(text, html string) {
	for _, part := range [][2]string{{"text", text}, {"html", html}} {
		fmt.Fprintf(s.Out, "\n%s\n", s.bold(part[0]))
		for line := range strings.Lines(strings.TrimRight(part[1], "\n") + "\n") {
			fmt.Fprintln(s.Out, "  "+clean(strings.TrimRight(line, "\r\n")))
		}
	}
}

var notifyTemplatePreviewCommand = command{
	name: "notify template preview", args: "ID", group: notifications, short: "Show what a template makes of a message, without sending it",
	long:     "What is left out of the message is made up.",
	examples: []string{"proa notify template preview default --subject Ebb --text 'Ebb at 20:30.'", "proa notify template preview ID --output json | jq -r .html > preview.html"},
	setup: func(f *flags) action {
		content, as := contentFlags(f, "of the message"), senderFlags(f)
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			c, err := content(s)
			if err != nil {
				return err
			}
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			var made v1.Content
			if err := x.call(ctx, http.MethodPost, v1.PreviewPath(args[0]), c, &made); err != nil {
				return err
			}
			if s.flags.json {
				return s.json(made)
			}
			s.pairs(s.Out, [][2]string{{"subject", clean(made.Subject)}})
			s.showContent(made.Text, made.HTML)
			return nil
		}
	},
}

var notifyTemplateAssignCommand = command{
	name: "notify template assign", args: "ID", group: notifications, short: "Give a template to a kind, or to all kinds of the client",
	long:     "A kind's own template comes before its client's. The id default takes a template away again.",
	examples: []string{"proa notify template assign 019a8b1c2d3e4f5061728394a5b6c7d8 --kind tides", "proa notify template assign default --all-kinds"},
	setup: func(f *flags) action {
		kind, all := f.text("kind", "KIND", "the kind"), f.on("all-kinds", "all kinds of the client that have none of their own")
		as := senderFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			if (*kind == "") != *all {
				return usage("Say what gets the template, with --kind or with --all-kinds.")
			}
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			if err := x.call(ctx, http.MethodPut, v1.AssignPath(x.id, *kind), v1.Assignment{Template: args[0]}, nil); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

var notifyTemplateDeleteCommand = command{
	name: "notify template delete", args: "ID", group: notifications, short: "Delete a template that no kind uses",
	setup: func(f *flags) action {
		force, as := f.on("force,f", "do not ask"), senderFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			if err := s.confirm(ctx, *force, fmt.Sprintf("Really delete the template %s?", clean(args[0]))); err != nil {
				return err
			}
			x, err := as(ctx, s)
			if err != nil {
				return err
			}
			if err := x.call(ctx, http.MethodDelete, v1.TemplatePath(args[0]), nil, nil); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}
