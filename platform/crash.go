package platform

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Crash is the death of one run of an instance: nobody had asked for it.
type Crash struct {
	App     string
	Process string
	Release string
	Index   int
	PodUID  string
	Node    string
	Exit    Exit
	Up      time.Duration // since its container was started; zero if it was never well
	Log     []LogLine     // the last that it printed

	Count   int       // of crashes in a row, this one included
	NextTry time.Time // when the instance is started again; zero means at once
}

// Restarts are Cloud Foundry's: three at once, then after half a minute and twice as long each time, up to 16 minutes.
const (
	restartsAtOnce = 3
	firstWait      = 30 * time.Second
	lastWait       = 16 * time.Minute
)

// ForgetAfter is how long an instance that became well must have been up, its start included, for its earlier crashes to be forgotten.
const ForgetAfter = 5 * time.Minute

// RestartWait is how long an instance waits after so many crashes in a row before it is started again.
func RestartWait(crashes int) time.Duration {
	if crashes <= restartsAtOnce {
		return 0
	}
	return min(firstWait<<min(crashes-restartsAtOnce-1, 10), lastWait)
}

// Counted is the crash with its number, after so many before it, and with the time of the next try.
func (c Crash) Counted(before int) Crash {
	if c.Up >= ForgetAfter {
		before = 0
	}
	c.Count, c.NextTry = before+1, time.Time{}
	if wait := RestartWait(c.Count); wait > 0 && !c.Exit.Moved {
		c.NextTry = c.Exit.Time.Add(wait)
	}
	return c
}

// crashed is the reason of every exit record.
const crashed = "CRASHED"

// Line is the exit record as the app's stream tells it. Clients read its keys.
func (c Crash) Line() (string, error) {
	payload, err := json.Marshal(struct {
		Instance    string `json:"instance"`
		Index       int    `json:"index"`
		Cell        string `json:"cellid"`
		Reason      string `json:"reason"`
		Description string `json:"exitdescription"`
		Count       int    `json:"crashcount"`
		Time        int64  `json:"crashtimestamp"`
		Version     string `json:"version"`
	}{c.PodUID, c.Index, c.Node, crashed, c.Exit.Description, c.Count, c.Exit.Time.UnixNano(), c.Release})
	if err != nil {
		return "", fmt.Errorf("encode exit record: %w", err)
	}
	return fmt.Sprintf("%s with guid %s payload: %s", ExitRecord, c.App, payload), nil
}

// Data is the exit record as the audit trail tells it.
func (c Crash) Data() map[string]any {
	return map[string]any{
		"instance": c.PodUID, "index": c.Index, "cell_id": c.Node, "reason": crashed, "exit_description": c.Exit.Description,
		"crash_count": c.Count, "crash_timestamp": c.Exit.Time.UnixNano(), "version": c.Release,
	}
}

// Ended says who of an instance ended first, and with which status. The main process has no sidecar's name.
func Ended(processType, sidecar string, status int, outOfMemory bool) string {
	text := fmt.Sprintf("%s: Exited with status %d", AppSource(processType, sidecar), status)
	if outOfMemory {
		text += " (out of memory)"
	}
	return OneLine(text)
}

// Unwell says what a health check found: later, or until the time within which the instance should have been well was over.
func Unwell(processType string, never bool, within time.Duration, found string) string {
	if never {
		return OneLine(fmt.Sprintf("%s: Not well within %g s: %s", AppSource(processType, ""), within.Seconds(), found))
	}
	return OneLine(AppSource(processType, "") + ": Failed its health check: " + found)
}

// Uncreated says why a container could not be made.
func Uncreated(processType, why string) string {
	return OneLine(AppSource(processType, "") + ": Its container could not be started: " + why)
}

// Deleted says that an instance is gone because somebody took it away.
func Deleted(processType string) string {
	return OneLine(AppSource(processType, "") + ": The instance was deleted from its node")
}

// NodeLost says that an instance is gone with its node.
func NodeLost(processType, node string) string {
	return OneLine(fmt.Sprintf("%s: Its node %s was lost", AppSource(processType, ""), node))
}

// Refused says why a node ended an instance, or did not take it.
func Refused(processType, reason, message string) string {
	return OneLine(fmt.Sprintf("%s: %s: %s", AppSource(processType, ""), reason, message))
}

// Unseen says that a run ended while nobody was there to see how.
func Unseen(processType string) string {
	return OneLine(AppSource(processType, "") + ": Exited, and was started again before the platform could see how")
}

const maxDescription = 300

// OneLine makes a line of plain text of whatever an app or a node said, and cuts it.
func OneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ")
	if len(text) > maxDescription {
		text = strings.ToValidUTF8(text[:maxDescription], "") + "…"
	}
	return text
}
