package cli

import (
	"fmt"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// printInstances shows instances in a table, each with the processes in it if it has sidecars, and below it what there is to say about
// those that are not well: sentences do not fit into columns.
func (s *session) printInstances(all []v3.InstanceStats) {
	var rows [][]string
	for _, i := range all {
		since := "-"
		if i.State != "DOWN" {
			since = age(time.Duration(i.Uptime) * time.Second)
		}
		rows = append(rows, []string{fmt.Sprintf("#%d", i.Index), s.ofState(i.State), since, percent(i.Usage.CPU), measured(i.Usage.Memory, i.MemoryQuota), measured(i.Usage.Disk, i.DiskQuota)})
		if len(i.Processes) < 2 { // the only process is the instance
			continue
		}
		for _, p := range i.Processes {
			since := "-"
			if p.Since != nil {
				since = age(s.Now().Sub(time.Time(*p.Since)))
			}
			rows = append(rows, []string{"  " + clean(p.Name), s.ofProcess(p), since, percent(p.CPU), measured(&p.Memory, p.Reserved), ""})
		}
	}
	s.table(s.Out, []string{"", "state", "for", "cpu", "memory", "disk"}, rows)
	for _, i := range all {
		s.printNotes(i)
	}
}

// ofProcess is the number of a process that runs, and the state of another.
func (s *session) ofProcess(p v3.ProcessStats) string {
	if p.State == "running" {
		return fmt.Sprintf("pid %d", p.PID)
	}
	return s.yellow(clean(p.State))
}

func (s *session) printNotes(i v3.InstanceStats) {
	label := fmt.Sprintf("#%d  ", i.Index)
	for _, note := range s.notes(i) {
		limit := max(1, width(note))
		if room := s.room() - width(label); room >= narrowed {
			limit = room
		}
		for _, line := range wrap(note, limit) {
			s.say("%s%s", label, line)
			label = strings.Repeat(" ", width(label))
		}
	}
}

// notes are sentences about an instance: how often it crashed and when it is tried again, and how it ended last; or why it is not there.
func (s *session) notes(i v3.InstanceStats) []string {
	if as(i.Crashes) == 0 || i.LastExit == nil {
		if details := clean(as(i.Details)); details != "" {
			return []string{details}
		}
		return nil
	}
	often := "crashed once"
	if n := *i.Crashes; n > 1 {
		often = fmt.Sprintf("crashed %d times", n)
	}
	if i.NextTry != nil {
		often += ", " + s.restarts(*i.NextTry)
	}
	return []string{often, fmt.Sprintf("last exit %s: %s", s.ago(time.Time(i.LastExit.At)), clean(i.LastExit.Description))}
}

func (s *session) restarts(next v3.Time) string {
	wait := time.Time(next).Sub(s.Now()).Round(time.Second)
	if wait <= 0 {
		return "restarts now"
	}
	return "restarts in " + wait.String()
}

// percent is a share of a processor, if anybody has measured it.
func percent(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", *share*100)
}

// measured is a size, if anybody has measured it, of what there is for it, if that is said.
func measured(bytes *int64, of int64) string {
	text := "-"
	if bytes != nil {
		text = size(*bytes)
	}
	if of > 0 {
		text += " of " + size(of)
	}
	return text
}

// size is a number of bytes as people read it, in powers of 1024.
func size(n int64) string {
	for _, u := range []struct {
		unit int64
		name string
	}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if n >= u.unit {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.unit)), ".0") + u.name
		}
	}
	return fmt.Sprintf("%dB", max(n, 0))
}
