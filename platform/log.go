package platform

import "time"

// A LogLine is one line of an app's stream.
type LogLine struct {
	App      string
	At       time.Time
	Source   string // such as STG, or APP/PROC/WEB
	Instance string
	Stderr   bool
	Text     string
}

// SourceStaging is the source of staging's lines. Clients compare it.
const SourceStaging = "STG"
