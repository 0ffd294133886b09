package kube

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/launch"
)

// Why a container cannot be made. Kubernetes tries again, and tells so; what is being tried for the first time has another reason.
var blocked = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// instance reads a pod of a release.
func instance(p *corev1.Pod) platform.Instance {
	index, err := strconv.Atoi(p.Labels[podIndex])
	if err != nil {
		index = -1 // a pod that no StatefulSet made
	}
	i := platform.Instance{
		Index: index, Pod: p.Name, PodUID: string(p.UID), Run: runID(p, ""), Node: p.Spec.NodeName, Address: p.Status.PodIP,
		State: platform.InstanceStarting, Since: p.CreationTimestamp.Time,
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			i.Ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			i.State, i.Details = platform.InstanceDown, c.Message
		case c.Type == corev1.PodScheduled:
			i.Since = c.LastTransitionTime.Time
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == appContainer {
			readContainer(&i, p, s)
		}
	}
	if p.Status.Phase == corev1.PodFailed { // evicted, or refused by its node
		readFailure(&i, p)
	}
	if p.DeletionTimestamp != nil {
		readLeaving(&i, p)
	}
	return i
}

// runID names a run after its container, which is another one after each restart; before there is one, after the pod.
func runID(p *corev1.Pod, container string) string { return string(p.UID) + "/" + container }

func readContainer(i *platform.Instance, p *corev1.Pod, s corev1.ContainerStatus) {
	i.Restarts, i.Run = int(s.RestartCount), runID(p, s.ContainerID)
	ended := s.State.Terminated
	if ended == nil {
		ended = s.LastTerminationState.Terminated
	}
	if ended != nil {
		i.LastExit = exit(p, s, ended)
	}
	switch {
	case s.State.Running != nil:
		i.Since = s.State.Running.StartedAt.Time
		if s.Started != nil && *s.Started {
			i.State = platform.InstanceRunning
		}
	case ended != nil: // and not running again: the kubelet waits
		i.State, i.Since, i.Details = platform.InstanceCrashed, ended.FinishedAt.Time, ending(p, ended)
	case s.State.Waiting != nil && s.State.Waiting.Message != "":
		i.State, i.Details = platform.InstanceDown, s.State.Waiting.Reason+": "+s.State.Waiting.Message
		if slices.Contains(blocked, s.State.Waiting.Reason) {
			i.Blocked = platform.Uncreated(p.Annotations[AnnotationType], i.Details)
		}
	}
}

// readFailure makes an exit of a pod that the node ended as a whole, where the container does not tell of one.
func readFailure(i *platform.Instance, p *corev1.Pod) {
	i.State, i.Details = platform.InstanceCrashed, p.Status.Message
	if p.Status.Reason == "" && i.LastExit != nil {
		return
	}
	e := platform.Exit{
		ID: i.Run, Time: failedAt(p), Moved: true, // a StatefulSet places what has failed anew
		Description: platform.Refused(p.Annotations[AnnotationType], p.Status.Reason, p.Status.Message),
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

// readLeaving makes an exit of a pod that is being taken away, unless it had ended before by itself. Those that we hold have.
func readLeaving(i *platform.Instance, p *corev1.Pod) {
	if slices.Contains(p.Finalizers, holdFinalizer) {
		i.Held, i.Ready, i.State = true, false, platform.InstanceCrashed
		return
	}
	if i.LastExit != nil && i.LastExit.ID == i.Run && !i.LastExit.Stopped {
		return
	}
	kind := p.Annotations[AnnotationType]
	e := platform.Exit{ID: i.Run, Time: p.DeletionTimestamp.Time, Description: platform.Deleted(kind), Moved: true}
	if p.DeletionGracePeriodSeconds != nil { // the time of deletion is when it is due
		e.Time = e.Time.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && (c.Reason == "DeletionByTaintManager" || c.Reason == "DeletionByPodGC") {
			e.Description = platform.NodeLost(kind, p.Spec.NodeName)
		}
	}
	i.LastExit = &e
}

// ending says in a line how a run ended, for whoever looks at the app.
func ending(p *corev1.Pod, t *corev1.ContainerStateTerminated) string {
	text := described(p, t)
	if r, err := launch.DecodeRecord(t.Message); err == nil && r.Cause != launch.CauseExited && r.Cause != launch.CauseStopped && r.Reason != "" {
		text += ". " + r.Reason
	}
	return platform.OneLine(text)
}

// described names who ended and how: as pid 1 says it, or the kubelet where that left no record. The app could have written that: of
// its words only a sidecar's name is taken, in a line of plain text.
func described(p *corev1.Pod, t *corev1.ContainerStateTerminated) string {
	kind := p.Annotations[AnnotationType]
	r, err := launch.DecodeRecord(t.Message)
	if err != nil || r.Cause == "" || r.Cause == launch.CauseStopped {
		return platform.Ended(kind, "", int(t.ExitCode), t.Reason == oomKilled)
	}
	return platform.Ended(kind, r.Sidecar, r.Status, r.OutOfMemory)
}

const oomKilled = "OOMKilled"

func exit(p *corev1.Pod, s corev1.ContainerStatus, t *corev1.ContainerStateTerminated) *platform.Exit {
	id := t.ContainerID
	if id == "" && s.State.Terminated == t {
		id = s.ContainerID
	}
	r, err := launch.DecodeRecord(t.Message)
	e := &platform.Exit{
		ID: runID(p, id), Time: t.FinishedAt.Time,
		Description: described(p, t), Stopped: err == nil && r.Cause == launch.CauseStopped,
	}
	// The kubelet tells seconds, and when the last process had gone; pid 1 knows when the first went. It is not believed anything else.
	if err == nil && r.Time.After(e.Time.Add(-gracePeriod*time.Second)) && r.Time.Before(e.Time.Add(time.Second)) {
		e.Time = r.Time
	}
	return e
}
