package kube

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/proa-dev/proa/platform"
)

// holdFinalizer keeps a pod that was deleted in the cluster's books: as long as it is there, its StatefulSet makes no other.
const holdFinalizer = "proa.dev/backoff"

// What is saved of a container that crashed.
const (
	tailLines = 500
	tailBytes = 256 << 10
	tailRead  = 16 << 20 // what the node may send for that: to it a longer line is several of 16 KiB
	tailTime  = 5 * time.Second
	eventTime = 5 * time.Second
)

// Bury takes away an instance whose processes are dead, without giving them time; the cluster places it anew at once. Nothing happens
// if it is another one by now.
func (c *Cluster) Bury(ctx context.Context, namespace string, i platform.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.core.Pods(namespace).Delete(ctx, i.Pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(i.PodUID)})
	if apierrors.IsConflict(err) {
		return nil
	}
	return gone("bury "+i.Pod, err)
}

// Hold takes away an instance as Bury does, but keeps the cluster from placing it anew until it is let go.
func (c *Cluster) Hold(ctx context.Context, namespace string, i platform.Instance) error {
	if err := c.patchPod(ctx, namespace, i, `"finalizers"`); err != nil {
		return err
	}
	return c.Bury(ctx, namespace, i)
}

// LetGo ends a hold.
func (c *Cluster) LetGo(ctx context.Context, namespace string, i platform.Instance) error {
	return c.patchPod(ctx, namespace, i, `"$deleteFromPrimitiveList/finalizers"`)
}

// patchPod leaves a pod of another uid alone.
func (c *Cluster) patchPod(ctx context.Context, namespace string, i platform.Instance, field string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,%s:[%q]}}`, i.PodUID, field, holdFinalizer)
	_, err := c.core.Pods(namespace).Patch(ctx, i.Pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // it has another uid, or is on its way out already
		return nil
	}
	return gone("hold or let go "+i.Pod, err)
}

// Unhealthy is what the last health check found that failed before a run of a pod was stopped, and whether that run had never been well.
// Nothing is found where none failed within a minute.
func (c *Cluster) Unhealthy(ctx context.Context, namespace, uid string, stopped time.Time) (found string, never bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, eventTime)
	defer cancel()
	events, err := c.core.Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.uid", uid), fields.OneTermEqualSelector("reason", "Unhealthy")).String(),
		Limit:         100,
	})
	if err != nil {
		return "", false, fmt.Errorf("events of %s: %w", uid, err)
	}
	found, never = unhealthy(events.Items, stopped)
	return found, never, nil
}

// unhealthy leaves out what was found after a restart in place, and checks of readiness, which stop nobody. Only those who have been well
// are asked whether they are alive: if that failed, what they said when they started does not count.
func unhealthy(events []corev1.Event, stopped time.Time) (found string, never bool) {
	last := map[string]corev1.Event{}
	for _, e := range events {
		kind, _, _ := strings.Cut(e.Message, unhealthyMark)
		if e.FirstTimestamp.After(stopped) || e.LastTimestamp.Before(new(metav1.NewTime(stopped.Add(-time.Minute)))) {
			continue
		}
		if before, known := last[kind]; !known || before.LastTimestamp.Before(&e.LastTimestamp) {
			last[kind] = e
		}
	}
	for _, kind := range []string{"Liveness", "Startup"} {
		if e, known := last[kind]; known {
			_, found, _ = strings.Cut(e.Message, unhealthyMark)
			return found, kind == "Startup"
		}
	}
	return "", false
}

// unhealthyMark is between the kind of a check and what it found, in the kubelet's words.
const unhealthyMark = " probe failed: "

// Tail is the last that the run of an instance printed that has ended.
func (c *Cluster) Tail(ctx context.Context, r platform.Release, i platform.Instance) ([]platform.LogLine, error) {
	ctx, cancel := context.WithTimeout(ctx, tailTime)
	defer cancel()
	lines, err := c.lastRun(ctx, r, i)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	if _, err := c.AppRun(ctx, AppPod{Namespace: r.Namespace, Name: i.Pod, UID: i.PodUID}); err != nil {
		return nil, err // a log is asked for by name, and the next pod has the same
	}
	return lines, nil
}

// lastRun asks for the log where it should be, and then for the other one: the container may have been started again in its place just
// now, and while one takes the place of another, the node may have either log and say nothing of the other.
func (c *Cluster) lastRun(ctx context.Context, r platform.Release, i platform.Instance) ([]platform.LogLine, error) {
	before := i.Run != i.LastExit.ID
	lines, err := c.tail(ctx, r, i, before)
	if err == nil && (before || len(lines) > 0) { // a run that goes on has nothing to do with one before it that said nothing
		return lines, nil
	}
	other, otherErr := c.tail(ctx, r, i, !before)
	if len(other) > 0 && otherErr == nil {
		return other, nil
	}
	return nil, cmp.Or(err, otherErr)
}

func (c *Cluster) tail(ctx context.Context, r platform.Release, i platform.Instance, previous bool) ([]platform.LogLine, error) {
	var lines []platform.LogLine
	read, size := 0, 0
	last := i.LastExit.Time.Add(gracePeriod * time.Second)
	err := c.ReadAppLog(ctx, AppPod{Namespace: r.Namespace, Name: i.Pod, UID: i.PodUID}, AppLog{Tail: new(tailLines), Previous: previous}, func(l AppLine) bool {
		line := savedLine(r, i, l)
		if line.At.After(last) {
			return false
		}
		lines = append(lines, line)
		for size += len(line.Text); size > tailBytes || len(lines) > tailLines; lines = lines[1:] {
			size -= len(lines[0].Text)
		}
		read += len(l.Text)
		return read < tailRead
	}, func() {})
	if apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
		return nil, nil // there is none
	}
	return lines, err
}

// savedLine names where a line is from.
func savedLine(r platform.Release, i platform.Instance, l AppLine) platform.LogLine {
	return platform.LogLine{
		App: r.AppGUID, At: time.Unix(0, l.At), Source: platform.AppSource(r.ProcessType, l.Sidecar), Instance: strconv.Itoa(i.Index),
		Text: strings.ReplaceAll(strings.ToValidUTF8(string(l.Text), "\uFFFD"), "\x00", "\uFFFD"),
	}
}
