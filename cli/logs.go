package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
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
			if err := s.checkOnly(ctx, a, l.only); err != nil {
				return err
			}
			if *recent {
				return s.showRecent(ctx, l, a)
			}
			return s.followLogs(ctx, l, a)
		}
	},
}

// checkOnly refuses what the app does not have: it would never write anything.
func (s *session) checkOnly(ctx context.Context, a v3.App, o logsOnly) error {
	if o == (logsOnly{}) {
		return nil
	}
	processes, err := s.processesOf(ctx, a)
	if err != nil {
		return err
	}
	if o.process != "" {
		if processes, err = ofType(processes, a, o.process, "proa logs"); err != nil {
			return err
		}
	}
	most := 0
	for _, p := range processes {
		most = max(most, p.Instances)
	}
	if index, err := strconv.Atoi(o.instance); err == nil && index >= most {
		return missing("proa app "+shell(a.Name)+"    # shows those there are", "There is no instance %d of %s: it has %s.", index, firstOf(o.process, a.Name), plural(most, "instance"))
	}
	if o.sidecar == "" {
		return nil
	}
	var names []string
	for _, p := range processes {
		sidecars, err := v3.All[v3.Sidecar](ctx, s.api, "/v3/processes/"+url.PathEscape(p.GUID)+"/sidecars")
		if err != nil {
			return err
		}
		for _, c := range sidecars {
			if strings.EqualFold(c.Name, o.sidecar) {
				return nil
			}
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return missing("proa logs "+shell(a.Name)+" --sidecar NAME", "%s has no sidecar %s. It has: %s.", firstOf(o.process, "App "+a.Name), o.sidecar, firstOf(strings.Join(slices.Compact(names), ", "), "none"))
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

// firstLines are shown before following begins: a few, so that one sees where one is. Those of staging, which is over, are not among them.
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
	batch, err := l.recent(ctx, logPage)
	if err != nil {
		return err
	}
	from := longAgo
	if len(batch) > 0 {
		from = batch[len(batch)-1].Timestamp + 1
	}
	batch = slices.DeleteFunc(batch, func(e v3.LogEnvelope) bool { return e.Tags["source_type"] == "STG" })
	s.printLogs(batch[max(0, len(batch)-firstLines):])
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
