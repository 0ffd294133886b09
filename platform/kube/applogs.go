package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppPod is the container of an instance. The pod that replaces a pod has its name, and another UID; without one, either is meant.
type AppPod struct {
	Namespace, Name, UID string
}

// AppRun is how that container stands.
type AppRun struct {
	UID      string
	Begun    bool // there is a log
	Ended    bool // nothing is added to it, unless the container is started again
	Leaving  bool // its pod is being deleted
	Restarts int  // in its place; the log of the run before is still there after one
}

// ErrPodGone says that a pod is not there, or not as the one that was meant.
var ErrPodGone = errors.New("the pod is gone")

// ErrNoLog says that the node does not have the log that was asked for, or not any more.
var ErrNoLog = errors.New("there is no log")

// AppRun tells how a container stands.
func (c *Cluster) AppRun(ctx context.Context, p AppPod) (AppRun, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod, err := c.logs.Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && p.UID != "" && string(pod.UID) != p.UID:
		return AppRun{}, ErrPodGone
	case err != nil:
		return AppRun{}, fmt.Errorf("get pod %s: %w", p.Name, err)
	}
	run := AppRun{UID: string(pod.UID), Leaving: pod.DeletionTimestamp != nil}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == appContainer {
			run.Restarts, run.Begun = int(s.RestartCount), s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
			run.Ended = run.Begun && s.State.Running == nil
		}
	}
	return run, nil
}

// AppLog says which part of a container's log is asked for.
type AppLog struct {
	Since    time.Time // lines from then on; zero is from the first that the node still has
	Tail     *int      // only so many of the newest, and of no more than the node has in its newest file
	Previous bool      // of the run before the last restart in place
	Follow   bool      // and go on until the run ends, or the node says so
}

// ReadAppLog hands on the lines of a container in the order in which they were written, until take answers no. No line has an older time
// than the one before it. Idle is called when nothing more is at hand behind a line just now. What is given to take is only good until it returns.
func (c *Cluster) ReadAppLog(ctx context.Context, p AppPod, l AppLog, take func(AppLine) bool, idle func()) error {
	options := &corev1.PodLogOptions{Container: appContainer, Follow: l.Follow, Previous: l.Previous, Timestamps: true}
	if !l.Since.IsZero() {
		since := metav1.NewTime(l.Since.Add(-slack).Truncate(time.Second)) // Kubernetes drops what is below a second
		options.SinceTime = &since
	}
	if l.Tail != nil {
		options.TailLines = new(int64(*l.Tail))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.logs.Pods(p.Namespace).GetLogs(p.Name, options).Stream(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		err = fmt.Errorf("%w: %w", ErrNoLog, err)
	}
	if err != nil {
		return fmt.Errorf("log of pod %s: %w", p.Name, err)
	}
	defer func() { _ = stream.Close() }()
	since := int64(0)
	if !l.Since.IsZero() {
		since = l.Since.UnixNano()
	}
	lines := appLines{from: stream}
	err = lines.each(func(line AppLine) bool { return line.At < since || take(line) }, idle)
	if err != nil {
		return fmt.Errorf("log of pod %s: %w", p.Name, err)
	}
	return nil
}

// slack is by how much lines of stdout and stderr may stand in the wrong order: each takes the time before it waits for its turn to be
// written.
const slack = 100 * time.Millisecond
