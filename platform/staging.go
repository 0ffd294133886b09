package platform

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Staging is one build: what is built, with what, and where the droplet goes.
type Staging struct {
	BuildGUID   string
	AppGUID     string
	SpaceGUID   string
	Namespace   string   // of the space, in the cluster
	SourceImage string   // holds the app's files in /source, and a cp
	Builder     string   // image with the lifecycle and the buildpacks
	BuildImage  string   // the same with the user's own buildpacks, for phases without credentials; empty means Builder
	User        string   // UID:GID of the builder; empty means 2000:2000
	RunImage    string   // what the droplet stands on
	TargetImage string   // where the droplet goes
	Buildpacks  []string // as id@version, all of which must fit; those that end in ? may. None: detect
	Env         map[string]string
	MemoryMB    int
	DiskMB      int
	Timeout     time.Duration
}

// The phases of a staging, in order. Code of the app and of buildpacks runs in detector and builder only.
const (
	PhaseFetch   = "fetch"
	PhaseAnalyze = "analyzer"
	PhaseDetect  = "detector"
	PhaseRestore = "restorer"
	PhaseBuild   = "builder"
	PhaseExport  = "exporter"
)

var buildpackRef = regexp.MustCompile(`^([A-Za-z0-9./_-]+)@([A-Za-z0-9.+_-]+)(\??)$`)

// Order is the order.toml for the detector: one group of the buildpacks asked for. Empty means the builder's own.
func (s Staging) Order() (string, error) {
	if len(s.Buildpacks) == 0 {
		return "", nil
	}
	var text strings.Builder
	text.WriteString("[[order]]\n")
	for _, b := range s.Buildpacks {
		m := buildpackRef.FindStringSubmatch(b)
		if m == nil {
			return "", fmt.Errorf("build %s: the buildpack %q is not named as id@version", s.BuildGUID, b)
		}
		fmt.Fprintf(&text, "[[order.group]]\nid = %q\nversion = %q\noptional = %t\n", m[1], m[2], m[3] != "")
	}
	return text.String(), nil
}

// StagingState is how far a staging is.
type StagingState string

// A staging is lost when the cluster does not know it: it never began, or its node went away.
const (
	StagingWaiting   StagingState = "waiting"
	StagingRunning   StagingState = "running"
	StagingSucceeded StagingState = "succeeded"
	StagingFailed    StagingState = "failed"
	StagingLost      StagingState = "lost"
)

// Staged is how a staging stands. Digest is that of the droplet, once it succeeded.
type Staged struct {
	State   StagingState
	Phase   string // the one that runs, or that failed
	Details string // why it waits, as the cluster says it
	Digest  string
	Failure *StagingFailure
}

// StagingEnd is how the phase that failed ended, as the cluster saw it.
type StagingEnd struct {
	Phase    string
	Code     int
	OutOf    StagingResource // what it ran out of
	MemoryMB int
	DiskMB   int
	Timeout  time.Duration
}

// StagingResource is what a staging can run out of.
type StagingResource string

// Nothing, when it ended by itself.
const (
	OutOfNothing StagingResource = ""
	OutOfMemory  StagingResource = "memory"
	OutOfDisk    StagingResource = "disk"
	OutOfTime    StagingResource = "time"
)

// StagingFailure is why there is no droplet: Cloud Foundry's name for it, which clients look for, and a sentence.
type StagingFailure struct{ Code, Detail string }

func (f StagingFailure) String() string { return f.Code + " - " + f.Detail }

// Exit codes of the lifecycle, see the CNB platform specification.
const (
	exitNoneFits       = 20
	exitNoneFitsErrors = 21
	exitBuildFailed    = 51
)

// Explain says what the end of a phase means to who pushed the app.
func (e StagingEnd) Explain() StagingFailure {
	switch {
	case e.OutOf == OutOfTime:
		return StagingFailure{"StagingTimeExpired", fmt.Sprintf("Staging took longer than %v, and was stopped in its phase %s. Push less, or ask your operator for more time.", e.Timeout, e.Phase)}
	case e.OutOf == OutOfMemory:
		return StagingFailure{"StagingError", fmt.Sprintf("Staging needed more than its %s of memory in its phase %s. Give the app more memory, and push again.", FormatMegabytes(e.MemoryMB), e.Phase)}
	case e.OutOf == OutOfDisk:
		return StagingFailure{"StagingError", fmt.Sprintf("Staging needed more than its %s of disk. Give the app more disk, or leave out files with .cfignore, and push again.", FormatMegabytes(e.DiskMB))}
	case e.Phase == PhaseDetect && e.Code == exitNoneFits:
		return StagingFailure{"NoAppDetectedError", "None of the builder's buildpacks fits this app. Push the directory that holds the app's files, or name a buildpack with -b; the log above says what each looked for."}
	case e.Phase == PhaseDetect && e.Code == exitNoneFitsErrors:
		return StagingFailure{"BuildpackDetectFailed", "No buildpack fits this app, and at least one failed while it looked. The log above has its words."}
	case e.Phase == PhaseBuild && e.Code == exitBuildFailed:
		return StagingFailure{"BuildpackCompileFailed", "A buildpack failed while it built the app. The log above has its words."}
	}
	return StagingFailure{"StagingError", fmt.Sprintf("Staging failed in its phase %s with status %d. The log above may say why; if not, ask your operator.", e.Phase, e.Code)}
}
