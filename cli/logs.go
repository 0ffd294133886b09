package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var logsCommand = command{
	name: "logs", args: "APP", group: "Apps", short: "Show what an app writes, as it writes it",
	long:     "Lines are shown until Ctrl-C. With --recent the newest ones are shown, and that is all.",
	examples: []string{"proa logs shop", "proa logs shop --recent"},
	needs:    aSpace,
	setup: func(f *flags) action {
		recent := f.on("recent", "show the newest lines and end")
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			l, err := s.logsOf(a.GUID)
			if err != nil {
				return err
			}
			batch, err := l.recent(ctx, recentLines(*recent))
			if err != nil {
				return err
			}
			for _, e := range batch {
				s.printLog(e)
			}
			if *recent {
				if len(batch) == 0 {
					fmt.Fprintf(s.Err, "%s has written nothing lately.\n", clean(a.Name))
				}
				return nil
			}
			from := longAgo
			if len(batch) > 0 {
				from = batch[len(batch)-1].Timestamp + 1
			}
			fmt.Fprintf(s.Err, "%s\n", s.dim("Following the logs of "+clean(a.Name)+". Ctrl-C ends it."))
			return l.follow(ctx, from, s.Poll/4, nil, s.printLog)
		}
	},
}

// recentLines is how many lines are shown before following begins: a few, so that one sees where one is.
func recentLines(only bool) int {
	if only {
		return logPage
	}
	return 10
}

func (s *session) printLog(e v3.LogEnvelope) {
	kind := "OUT"
	if e.Log.Type == "ERR" {
		kind = "ERR"
	}
	source := e.Tags["source_type"]
	if e.InstanceID != "" {
		source += "/" + e.InstanceID
	}
	at := time.Unix(0, e.Timestamp).Local().Format("2006-01-02T15:04:05.00-0700")
	lead := s.dim(at+" ["+clean(source)+"]") + " "
	for line := range strings.SplitSeq(strings.TrimRight(string(e.Log.Payload), "\r\n"), "\n") {
		line = s.logText(strings.TrimRight(line, "\r"))
		if kind == "ERR" {
			fmt.Fprintln(s.Out, lead+s.red("ERR ")+line)
		} else {
			fmt.Fprintln(s.Out, lead+"OUT "+line)
		}
	}
}

// logText is what an app wrote, as it is in a file, and harmless on a terminal.
func (s *session) logText(line string) string {
	if !s.OutTTY {
		return line
	}
	if !s.Colour {
		return clean(line)
	}
	return cleanLog(line)
}
