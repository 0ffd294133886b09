package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var eventsCommand = command{
	name: "events", args: "APP", group: "Apps", short: "Show what happened to an app lately, newest first",
	needs: aSpace,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			var page v3.List[v3.Event]
			if err := s.get(ctx, "/v3/audit_events?order_by=-created_at&page=1&target_guids="+url.QueryEscape(a.GUID), &page); err != nil {
				return err
			}
			layout := "2006-01-02 15:04:05"
			if s.OutTTY && s.Width() < narrow {
				layout = "01-02 15:04:05"
			}
			if !s.flags.json {
				page.Resources = crashesOnce(page.Resources)
			}
			return list(s, page.Resources, "Nothing happened to this app lately.", []string{"time", "event", "actor", "description"}, func(e v3.Event) []string {
				return []string{time.Time(e.CreatedAt).Local().Format(layout), clean(e.Type), clean(e.Actor.Name), clean(describe(e.Data))}
			})
		}
	},
}

const eventOfCrash, eventOfProcess = "app.crash", "audit.app.process.crash"

// crashesOnce leaves one of the two events that there are of each crash.
func crashesOnce(events []v3.Event) []v3.Event {
	crash := func(e v3.Event) string {
		return fmt.Sprint(e.Data["instance"], e.Data["index"], e.Data["crash_timestamp"])
	}
	known := map[string]bool{}
	for _, e := range events {
		if e.Type == eventOfProcess {
			known[crash(e)] = true
		}
	}
	return slices.DeleteFunc(events, func(e v3.Event) bool { return e.Type == eventOfCrash && known[crash(e)] })
}

// told are the facts of an event that a person wants to read, in this order.
var told = []string{"index", "reason", "kind", "target", "exit_status", "recursive", "disk_quota",
	"instances", "memory", "state", "command", "environment_json"}

func describe(data map[string]any) string {
	if request, ok := data["request"].(map[string]any); ok {
		data = request
	}
	if exit, ok := data["exit_description"].(string); ok && exit != "" {
		return fmt.Sprintf("#%v %s", data["index"], strings.TrimPrefix(exit, "APP/PROC/"))
	}
	var parts []string
	for _, key := range told {
		if value, ok := data[key]; ok && value != nil {
			parts = append(parts, fmt.Sprintf("%s: %v", strings.ReplaceAll(key, "_", " "), value))
		}
	}
	return strings.Join(parts, ", ")
}
