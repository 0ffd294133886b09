package cli

import (
	"context"
	"fmt"
	"net/url"
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
			return list(s, page.Resources, "Nothing happened to this app lately.", []string{"time", "event", "actor", "description"}, func(e v3.Event) []string {
				return []string{time.Time(e.CreatedAt).Local().Format("2006-01-02 15:04:05"), clean(e.Type), clean(e.Actor.Name), clean(describe(e.Data))}
			})
		}
	},
}

// told are the facts of an event that a person wants to read, in this order.
var told = []string{"index", "reason", "cell_id", "instance", "exit_description", "exit_status", "recursive",
	"disk_quota", "instances", "memory", "state", "command", "environment_json"}

func describe(data map[string]any) string {
	if request, ok := data["request"].(map[string]any); ok {
		data = request
	}
	var parts []string
	for _, key := range told {
		if value, ok := data[key]; ok && value != nil {
			parts = append(parts, fmt.Sprintf("%s: %v", strings.ReplaceAll(key, "_", " "), value))
		}
	}
	return strings.Join(parts, ", ")
}
