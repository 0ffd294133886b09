package kube

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/proa-dev/proa/platform"
)

// staged reads a staging's pod.
func staged(b platform.Staging, p *corev1.Pod) platform.Staged {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return succeeded(b, p)
	case corev1.PodFailed:
		end := failedPhase(b, p)
		return platform.Staged{State: platform.StagingFailed, Phase: end.Phase, Failure: new(end.Explain())}
	}
	s := platform.Staged{State: platform.StagingWaiting, Details: waitsFor(p)}
	for _, phase := range phases {
		if begun(p, phase) {
			s.State, s.Phase = platform.StagingRunning, phase
		}
	}
	return s
}

func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func begun(p *corev1.Pod, phase string) bool {
	s, found := statusOf(p, phase)
	return found && (s.State.Running != nil || s.State.Terminated != nil)
}

func statusOf(p *corev1.Pod, phase string) (corev1.ContainerStatus, bool) {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			if s.Name == phase {
				return s, true
			}
		}
	}
	return corev1.ContainerStatus{}, false
}

func waitsFor(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, phase := range phases {
		s, _ := statusOf(p, phase)
		if w := s.State.Waiting; w != nil && w.Message != "" {
			return w.Reason + ": " + w.Message
		}
	}
	return ""
}

// The report of the exporter ends with what it says about the image. Before that, buildpacks may have had their say.
var digestLine = regexp.MustCompile(`(?m)^\s*digest = "(sha256:[0-9a-f]{64})"\s*$`)

func succeeded(b platform.Staging, p *corev1.Pod) platform.Staged {
	s, _ := statusOf(p, platform.PhaseExport)
	if s.State.Terminated != nil {
		report := s.State.Terminated.Message
		if at := strings.LastIndex(report, "[image]"); at >= 0 {
			if m := digestLine.FindStringSubmatch(report[at:]); m != nil {
				return platform.Staged{State: platform.StagingSucceeded, Phase: platform.PhaseExport, Digest: m[1]}
			}
		}
	}
	end := platform.StagingEnd{Phase: platform.PhaseExport, Timeout: b.Timeout}
	return platform.Staged{State: platform.StagingFailed, Phase: platform.PhaseExport, Failure: new(end.Explain())}
}

// failedPhase finds the first phase that did not end well. Where the node ended the pod, that is the one that ran.
func failedPhase(b platform.Staging, p *corev1.Pod) platform.StagingEnd {
	end := platform.StagingEnd{Phase: platform.PhaseFetch, MemoryMB: b.MemoryMB, DiskMB: b.DiskMB, Timeout: b.Timeout}
	for _, phase := range phases {
		s, _ := statusOf(p, phase)
		t := s.State.Terminated
		if t == nil && s.State.Running == nil {
			continue
		}
		end.Phase = phase
		if t != nil && t.ExitCode != 0 {
			end.Code = int(t.ExitCode)
			if t.Reason == "OOMKilled" {
				end.OutOf = platform.OutOfMemory
			}
			break
		}
	}
	switch {
	case p.Status.Reason == "DeadlineExceeded":
		end.OutOf = platform.OutOfTime
	case p.Status.Reason == "Evicted" && strings.Contains(p.Status.Message, "phemeral"), strings.Contains(p.Status.Message, "emptyDir"):
		end.OutOf = platform.OutOfDisk
	}
	return end
}
