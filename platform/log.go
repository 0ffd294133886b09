package platform

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A LogLine is one line of an app's stream.
type LogLine struct {
	App      string
	At       time.Time
	Source   string // such as STG, or APP/PROC/WEB
	Instance string
	Stderr   bool
	Text     string
	PodUID   string // of a line that was saved because its container is about to go: none for lines that only the records have
}

// LogFilter narrows the lines of an app. Where nothing is asked for, all fit.
type LogFilter struct {
	Process  string // type of the process
	Sidecar  string
	Instance string
	Source   string // exactly this one
	Except   string // not this source
}

// Narrow tells whether only lines of instances are asked for.
func (f LogFilter) Narrow() bool { return f.Process != "" || f.Sidecar != "" || f.Instance != "" }

// Pods tells whether lines that instances write can fit.
func (f LogFilter) Pods() bool { return f.Source == "" || strings.HasPrefix(f.Source, sourceApp) }

// Pod tells whether lines of an instance can fit.
func (f LogFilter) Pod(processType string, index int) bool {
	return f.Pods() && (f.Process == "" || strings.EqualFold(f.Process, processType)) && (f.Instance == "" || f.Instance == strconv.Itoa(index))
}

// Fits tells whether a line of that source and instance is one of those asked for. The exit record of an instance belongs to its lines,
// and to those of its sidecars, which have ended with it; it is told by its text.
func (f LogFilter) Fits(source, instance, text string) bool {
	if f.Source != "" && f.Source != source || f.Except != "" && f.Except == source || f.Instance != "" && f.Instance != instance {
		return false
	}
	if !f.Narrow() {
		return true
	}
	if source == SourceAPI && strings.HasPrefix(text, ExitRecord) {
		of := f.ExitOf()
		return f.Process == "" || strings.Contains(text, of+":") || strings.Contains(text, of+"/")
	}
	path, inApp := strings.CutPrefix(source, sourceApp)
	process, sidecar, _ := strings.Cut(path, sourceSidecar)
	return inApp && (f.Process == "" || strings.EqualFold(f.Process, process)) && (f.Sidecar == "" || strings.EqualFold(f.Sidecar, sidecar))
}

// ExitOf is what stands in exit records of the process asked for, before a colon or the path of a sidecar.
func (f LogFilter) ExitOf() string { return `"exitdescription":"` + AppSource(f.Process, "") }

// ExitRecord is how the line of an exit record begins. Clients compare it.
const ExitRecord = "App instance exited"

// SourceStaging is the source of staging's lines, and SourceAPI of what the platform itself tells about an app. Clients compare them.
const (
	SourceStaging = "STG"
	SourceAPI     = "API"
)

// AppSource is the source of what a process prints, and the path that an exit record names it by: APP/PROC/WEB/SIDECAR/CLOCK. The main
// process has no sidecar.
func AppSource(processType, sidecar string) string {
	source := sourceApp + strings.ToUpper(processType)
	if sidecar != "" {
		source += sourceSidecar + strings.ToUpper(sidecar)
	}
	return source
}

const (
	sourceApp     = "APP/PROC/"
	sourceSidecar = "/SIDECAR/"
)

// AppChange says in a sentence what was done to an app, as its stream tells it; nothing about what does not belong there. The data is that
// of the event.
func AppChange(kind, app string, data map[string]any) string {
	switch kind {
	case "create":
		return fmt.Sprintf("Created app %s.", app)
	case "update":
		return fmt.Sprintf("Updated app %s.", app)
	case "apply_manifest":
		return fmt.Sprintf("Applied a manifest to app %s.", app)
	case "start":
		return fmt.Sprintf("Started app %s.", app)
	case "stop":
		return fmt.Sprintf("Stopped app %s.", app)
	case "restart":
		return fmt.Sprintf("Restarted app %s.", app)
	case "process.scale":
		request, _ := data["request"].(map[string]any)
		return fmt.Sprintf("Scaled process %v of app %s to %v instances with %v MB of memory and %v MB of disk.", data["process_type"], app, request["instances"], request["memory_in_mb"], request["disk_in_mb"])
	case "process.update":
		return fmt.Sprintf("Updated process %v of app %s.", data["process_type"], app)
	case "sidecar.create":
		return fmt.Sprintf("Added sidecar %v to app %s.", data["sidecar"], app)
	case "sidecar.update":
		return fmt.Sprintf("Updated sidecar %v of app %s.", data["sidecar"], app)
	case "sidecar.delete":
		return fmt.Sprintf("Removed sidecar %v from app %s.", data["sidecar"], app)
	case "package.create":
		return fmt.Sprintf("Created package %v of app %s.", data["package_guid"], app)
	case "package.upload":
		return fmt.Sprintf("Uploading to package %v of app %s.", data["package_guid"], app)
	case "build.create":
		return fmt.Sprintf("Staging package %v of app %s as build %v.", data["package_guid"], app, data["build_guid"])
	case "droplet.mapped":
		request, _ := data["request"].(map[string]any)
		return fmt.Sprintf("Set the droplet of app %s to %v.", app, request["droplet_guid"])
	}
	return ""
}
