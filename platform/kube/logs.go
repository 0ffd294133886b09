package kube

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/proa-dev/proa/platform"
)

const maxLine = 64 << 10

// Staged tells how a staging stands.
func (c *Cluster) Staged(ctx context.Context, b platform.Staging) (platform.Staged, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod, err := c.core.Pods(b.Namespace).Get(ctx, StagingName(b.BuildGUID), metav1.GetOptions{})
	if err != nil {
		return lost(fmt.Errorf("get staging %s: %w", b.BuildGUID, err))
	}
	return staged(b, pod), nil
}

// Follow passes on what a staging prints, phase by phase and line by line, until it has ended, and tells how. A line
// longer than 64 KiB comes in pieces. Where a log could not be read to its end, the outcome comes with an error.
func (c *Cluster) Follow(ctx context.Context, b platform.Staging, line func(phase, text string)) (platform.Staged, error) {
	var unread error
	for _, phase := range phases {
		pod, err := c.wait(ctx, b, func(p *corev1.Pod) bool { return over(p) || begun(p, phase) })
		if err != nil {
			return lost(err)
		}
		if !begun(pod, phase) {
			break
		}
		unread = errors.Join(unread, c.copyLog(ctx, b, phase, line))
	}
	pod, err := c.wait(ctx, b, over)
	if err != nil {
		return lost(err)
	}
	return staged(b, pod), unread
}

func lost(err error) (platform.Staged, error) {
	if apierrors.IsNotFound(err) {
		return platform.Staged{State: platform.StagingLost}, nil
	}
	return platform.Staged{}, err
}

// wait watches a staging's pod until it is as asked for. A watch that ends begins again.
func (c *Cluster) wait(ctx context.Context, b platform.Staging, until func(*corev1.Pod) bool) (*corev1.Pod, error) {
	name := StagingName(b.BuildGUID)
	for {
		pod, err := c.core.Pods(b.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("get staging %s: %w", b.BuildGUID, err)
		}
		if until(pod) {
			return pod, nil
		}
		events, err := c.core.Pods(b.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), ResourceVersion: pod.ResourceVersion,
		})
		if err != nil {
			return nil, fmt.Errorf("watch staging %s: %w", b.BuildGUID, err)
		}
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && until(pod) {
				events.Stop()
				return pod, nil
			}
			if event.Type == watch.Deleted {
				events.Stop() // ends the loop; the next look says that it is gone
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (c *Cluster) copyLog(ctx context.Context, b platform.Staging, phase string, line func(phase, text string)) error {
	options := &corev1.PodLogOptions{Container: phase, Follow: true}
	stream, err := c.core.Pods(b.Namespace).GetLogs(StagingName(b.BuildGUID), options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("log of staging %s: %w", b.BuildGUID, err)
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewReaderSize(stream, maxLine)
	for {
		text, _, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("log of staging %s: %w", b.BuildGUID, err)
		}
		line(phase, string(text))
	}
}
