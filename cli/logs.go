package cli

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var logsCommand = command{
	name: "logs", args: "APP", group: "Apps", short: "Show what an app writes, as it writes it",
	long: "Lines of all instances of all processes are shown until Ctrl-C, with those of staging and of the platform itself. " +
		"With --recent the newest ones are shown, and that is all.",
	examples: []string{"proa logs shop", "proa logs shop --recent", "proa logs shop --process worker --instance 0", "proa logs shop --sidecar config-server"},
	needs:    aSpace,
	setup: func(f *flags) action {
		recent := f.on("recent", "show the newest lines and end")
		process := f.text("process", "TYPE", "only lines of this process, its sidecars included")
		instance := f.number("instance", "N", "only lines of this instance")
		sidecar := f.text("sidecar", "NAME", "only lines of this sidecar")
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			l, err := s.logsOf(a.GUID)
			if err != nil {
				return err
			}
			l.only = logsOnly{process: *process, sidecar: *sidecar}
			if *instance != nil {
				l.only.instance = strconv.Itoa(**instance)
			}
			if *recent {
				return s.showRecent(ctx, l, a)
			}
			return s.followLogs(ctx, l, a)
		}
	},
}

func (s *session) showRecent(ctx context.Context, l *logs, a v3.App) error {
	batch, err := l.recent(ctx, logPage)
	if err != nil {
		return err
	}
	s.printLogs(batch)
	if len(batch) == 0 {
		fmt.Fprintf(s.Err, "%s has written nothing lately.\n", clean(a.Name))
	}
	return nil
}

// firstLines are shown before following begins: a few, so that one sees where one is.
const firstLines = 10

func (s *session) followLogs(ctx context.Context, l *logs, a v3.App) error {
	ours, err := s.streamsLogs(ctx)
	if err != nil {
		return err
	}
	note := s.dim("Following the logs of " + clean(a.Name) + ". Ctrl-C ends it.")
	if ours {
		fmt.Fprintf(s.Err, "%s\n", note)
		return l.stream(ctx, s)
	}
	batch, err := l.recent(ctx, firstLines)
	if err != nil {
		return err
	}
	s.printLogs(batch)
	from := longAgo
	if len(batch) > 0 {
		from = batch[len(batch)-1].Timestamp + 1
	}
	fmt.Fprintf(s.Err, "%s\n", note)
	return l.follow(ctx, from, s.Poll/4, nil, func(e v3.LogEnvelope) { s.printLogs([]v3.LogEnvelope{e}) })
}

// narrow is the width of a terminal on which the date is left out, so that there is room for what was written.
const narrow = 120

// printLogs writes all lines at once: a stream may bring a hundred thousand in a second.
func (s *session) printLogs(batch []v3.LogEnvelope) {
	layout := "2006-01-02T15:04:05.00-0700"
	if s.OutTTY && s.Width() < narrow {
		layout = "15:04:05.00"
	}
	var out bytes.Buffer
	for _, e := range batch {
		source := e.Tags["source_type"]
		if e.InstanceID != "" {
			source += "/" + e.InstanceID
		}
		lead := s.dim(time.Unix(0, e.Timestamp).Local().Format(layout)+" ["+clean(source)+"]") + " OUT "
		if e.Log.Type == "ERR" {
			lead = strings.TrimSuffix(lead, "OUT ") + s.red("ERR ")
		}
		for line := range strings.SplitSeq(strings.TrimRight(string(e.Log.Payload), "\r\n"), "\n") {
			out.WriteString(lead)
			out.WriteString(s.logText(strings.TrimRight(line, "\r")))
			out.WriteByte('\n')
		}
	}
	_, _ = s.Out.Write(out.Bytes()) // to whom should it be told?
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
