package kube

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/proa-dev/proa/platform"
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
		i.State, i.Since = platform.InstanceCrashed, ended.FinishedAt.Time
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

// exit takes the container's id for its own: it is another one after each restart.
func exit(uid string, t *corev1.ContainerStateTerminated) *platform.Exit {
	id := t.ContainerID
	if id == "" {
		id = t.FinishedAt.UTC().Format(time.RFC3339)
	}
	return &platform.Exit{ID: uid + "/" + id, Time: t.FinishedAt.Time, Code: int(t.ExitCode), Reason: t.Reason, Message: t.Message}
}
