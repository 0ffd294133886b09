package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// waiting says how long to wait for an app, and for what.
type waiting struct {
	first bool // one running instance is enough
}

func waitFlags(f *flags) func() waiting {
	first := f.on("no-wait", "return when the first instance of web runs, not when all do")
	return func() waiting { return waiting{*first} }
}

// timeout is a duration from the environment.
func (s *session) timeout(name string, otherwise time.Duration) (time.Duration, error) {
	text := s.Getenv(name)
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usage("%s must be a duration such as 30s or 10m, not %q.", name, text)
	}
	return d, nil
}

// comeUp shows how the instances of an app start, until they have or will not, and then the app.
func (s *session) comeUp(ctx context.Context, a v3.App, w waiting) error {
	patience, err := s.timeout("PROA_STARTUP_TIMEOUT", 5*time.Minute)
	if err != nil {
		return err
	}
	processes, err := s.processesOf(ctx, a)
	if err != nil {
		return err
	}
	s.say("\nWaiting for app %s to start...", s.bold(clean(a.Name)))
	begun, view := s.Now(), &live{e: s.Env}
	var verdict error
	for {
		var all []v3.InstanceStats
		for _, p := range processes {
			if w.first && p.Type != "web" {
				continue
			}
			stats, err := s.stats(ctx, p.GUID)
			if err != nil {
				return err
			}
			all = append(all, stats...)
		}
		view.show(s.instanceLines(all), tally(all))
		done, crashed := settled(all, w.first)
		if crashed != nil {
			p := failed("proa logs "+shell(a.Name)+" --recent", "The process %s of app %s did not start: all of its instances crashed.%s", crashed.Type, a.Name, whyCrashed(*crashed))
			p.below = s.lastSaid(ctx, a, crashed.Type)
			verdict = p
			break
		}
		if done {
			break
		}
		if s.Now().Sub(begun) > patience {
			p := failed("proa logs "+shell(a.Name)+" --recent    # proa app "+shell(a.Name)+" shows how it is", "App %s has not started within %s.", a.Name, patience)
			p.below = s.lastSaid(ctx, a, "")
			verdict = p
			break
		}
		if err := s.wait(ctx, s.Poll); err != nil {
			return err
		}
	}
	s.say("")
	if a, err = s.findApp(ctx, a.Name); err == nil {
		err = s.showApp(ctx, a)
	}
	if verdict != nil {
		return verdict
	}
	return err
}

// settled tells whether nothing is about to change any more, and an instance of a process of which all crashed.
func settled(all []v3.InstanceStats, first bool) (done bool, crashed *v3.InstanceStats) {
	type count struct {
		total, up, lost int
		last            v3.InstanceStats
	}
	counts := map[string]count{}
	for _, i := range all {
		c := counts[i.Type]
		c.total++
		switch {
		case steady(i):
			c.up++
		case hopeless(i):
			c.lost++
			c.last = i
		}
		counts[i.Type] = c
	}
	done = true
	for _, c := range counts {
		if c.lost == c.total {
			return false, &c.last
		}
		if c.up+c.lost < c.total && (!first || c.up == 0) {
			done = false
		}
	}
	return done, nil
}

// steadyAfter is how many seconds an instance that has crashed must run to be believed: it may be about to do so again.
const steadyAfter = 5

func steady(i v3.InstanceStats) bool {
	return i.State == "RUNNING" && (as(i.Crashes) == 0 || i.Uptime >= steadyAfter)
}

// hopeless tells whether nobody should wait for an instance. The platform starts one that crashed again, the first times at once: one
// crash is not the end, but two are, also if the third try is under way. A Cloud Foundry does not say how often it was, so any counts.
func hopeless(i v3.InstanceStats) bool {
	if i.Crashes == nil {
		return i.State == "CRASHED"
	}
	return i.State != "RUNNING" && (*i.Crashes >= 2 || i.State == "CRASHED" && i.NextTry != nil)
}

const lastSaid = 10 // lines

// lastSaid is what a process wrote last, or any of them if none is named, as far as it can be read: it says best why an app does not run.
func (s *session) lastSaid(ctx context.Context, a v3.App, process string) []string {
	l, err := s.logsOf(a.GUID)
	if err != nil {
		return nil
	}
	l.only.process = process
	batch, err := l.recent(ctx, logPage)
	if err != nil {
		return nil
	}
	batch = slices.DeleteFunc(batch, func(e v3.LogEnvelope) bool { return !strings.HasPrefix(e.Tags["source_type"], "APP/") })
	var lines []string
	for _, e := range batch[max(0, len(batch)-lastSaid):] {
		lines = append(lines, s.dim("   ["+clean(e.Tags["source_type"]+"/"+e.InstanceID)+"] ")+clean(strings.TrimRight(string(e.Log.Payload), "\r\n")))
	}
	return lines
}

// whyCrashed says how an instance ended, if that is known.
func whyCrashed(i v3.InstanceStats) string {
	why := ending(i)
	if why == "" {
		return ""
	}
	text := fmt.Sprintf(" Instance %d: %s.", i.Index, strings.TrimRight(why, "."))
	if strings.Contains(why, ": Not well within ") && strings.Contains(why, "connection refused") {
		text += "\nNothing listened on $PORT in time. A process that answers no requests is pushed with -u process, one that needs longer with -t and the seconds."
	}
	return text
}

// ending is how the last run of an instance ended, or why it is not there.
func ending(i v3.InstanceStats) string {
	if i.LastExit != nil && i.State != "RUNNING" {
		return clean(i.LastExit.Description)
	}
	return clean(as(i.Details))
}

func (s *session) instanceLines(all []v3.InstanceStats) []string {
	lines := make([]string, len(all))
	for n, i := range all {
		details := ending(i)
		if n := as(i.Crashes); n > 0 && i.State != "RUNNING" {
			details = fmt.Sprintf("crash %d: %s", n, details)
		}
		if details != "" {
			details = s.dim("  " + details)
		}
		state := s.ofState(i.State)
		lines[n] = fmt.Sprintf("  %s #%-3d %s%s%s", clean(i.Type), i.Index, state, strings.Repeat(" ", max(0, 8-width(state))), details)
	}
	return lines
}

// tally is how many instances are in each state, and what is said of those that are not well.
func tally(all []v3.InstanceStats) string {
	up, why := 0, ""
	for _, i := range all {
		if i.State == "RUNNING" {
			up++
		} else if said := ending(i); said != "" {
			why = ": " + said
		}
	}
	crashed := 0
	for _, i := range all {
		if i.State == "CRASHED" {
			crashed++
		}
	}
	text := fmt.Sprintf("  %d of %s running", up, plural(len(all), "instance"))
	if crashed > 0 {
		text += fmt.Sprintf(", %d crashed", crashed)
	}
	return text + why
}
