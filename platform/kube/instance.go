package kube

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/launch"
)

// instance reads a pod of a release.
func instance(p *corev1.Pod) platform.Instance {
	index, err := strconv.Atoi(p.Labels[podIndex])
	if err != nil {
		index = -1 // a pod that no StatefulSet made
	}
	i := platform.Instance{
		Index: index, Pod: p.Name, PodUID: string(p.UID), Node: p.Spec.NodeName, Address: p.Status.PodIP,
		State: platform.InstanceStarting, Since: p.CreationTimestamp.Time,
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			i.Ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			i.State, i.Details = platform.InstanceDown, c.Message
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == appContainer {
			readContainer(&i, s)
		}
	}
	if p.Status.Phase == corev1.PodFailed { // evicted, or refused by its node
		readFailure(&i, p)
	}
	return i
}

func readContainer(i *platform.Instance, s corev1.ContainerStatus) {
	i.Restarts = int(s.RestartCount)
	ended := s.State.Terminated
	if ended == nil {
		ended = s.LastTerminationState.Terminated
	}
	if ended != nil {
		i.LastExit = exit(i.PodUID, ended)
	}
	switch {
	case s.State.Running != nil:
		i.Since = s.State.Running.StartedAt.Time
		if s.Started != nil && *s.Started {
			i.State = platform.InstanceRunning
		}
	case ended != nil: // and not running again: the kubelet waits
		i.State, i.Since, i.Details = platform.InstanceCrashed, ended.FinishedAt.Time, ending(ended)
	case s.State.Waiting != nil && s.State.Waiting.Message != "":
		i.State, i.Details = platform.InstanceDown, s.State.Waiting.Reason+": "+s.State.Waiting.Message
	}
}

// readFailure makes an exit of a pod that the node ended as a whole, where the container does not tell of one.
func readFailure(i *platform.Instance, p *corev1.Pod) {
	i.State, i.Details = platform.InstanceCrashed, p.Status.Message
	if p.Status.Reason == "" && i.LastExit != nil {
		return
	}
	e := platform.Exit{ID: i.PodUID + "/" + p.Status.Reason, Time: failedAt(p), Reason: p.Status.Reason}
	if i.LastExit != nil {
		e.Code, e.Message = i.LastExit.Code, i.LastExit.Message
	}
	i.Since, i.LastExit = e.Time, &e
}

func failedAt(p *corev1.Pod) time.Time {
	at := p.CreationTimestamp.Time
	for _, c := range p.Status.Conditions {
		if c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}

// ending says in a line how a run ended: in the words of pid 1, or the kubelet's where it left none. They reach whoever
// looks at the app, and the app could have written them: so no more than a line of plain text is taken.
func ending(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("Exited with status %d (%s)", t.ExitCode, t.Reason)
	if r, err := launch.DecodeRecord(t.Message); err == nil && r.Description != "" {
		text = r.Description
		if r.Cause == launch.CauseStopped { // nobody asked for that but the kubelet, when the health check failed
			text = "The health check failed, so the instance was stopped. See that the app listens on $PORT in time."
		} else if r.Cause != launch.CauseExited && r.Reason != "" {
			text += ". " + r.Reason
		}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxEnding {
		text = strings.ToValidUTF8(text[:maxEnding], "") + "…"
	}
	return text
}

const maxEnding = 300

// exit takes the container's id for its own: it is another one after each restart.
func exit(uid string, t *corev1.ContainerStateTerminated) *platform.Exit {
	id := t.ContainerID
	if id == "" {
		id = t.FinishedAt.UTC().Format(time.RFC3339)
	}
	return &platform.Exit{ID: uid + "/" + id, Time: t.FinishedAt.Time, Code: int(t.ExitCode), Reason: t.Reason, Message: t.Message}
}
