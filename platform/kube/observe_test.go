package kube

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/proa-dev/proa/platform"
)

func pod(index string, state corev1.ContainerState, started bool) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "r-" + index, UID: "uid", Labels: map[string]string{podIndex: index}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: appContainer, State: state, Started: &started}},
		},
	}
}

// TestEnding takes pid 1 at its word, but only for a line: the app could have written it.
func TestEnding(t *testing.T) {
	for message, want := range map[string]string{
		`{"process":"web","cause":"exited","status":7,"description":"APP/PROC/WEB/SIDECAR/S1: Exited with status 7"}`: "APP/PROC/WEB/SIDECAR/S1: Exited with status 7",
		`{"process":"web","cause":"stopped","description":"APP/PROC/WEB: Stopped by the platform"}`:                   "The health check failed, so the instance was stopped. See that the app listens on $PORT in time.",
		"not a record": "Exited with status 3 (Error)",
	} {
		if got := ending(&corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: message}); got != want {
			t.Errorf("%s: %q", message, got)
		}
	}
	hostile := `{"process":"web","cause":"exited","description":"\u001b[31m` + strings.Repeat("x", 2000) + `"}`
	if got := ending(&corev1.ContainerStateTerminated{Message: hostile}); strings.Contains(got, "\x1b") || len(got) > maxEnding+4 {
		t.Errorf("%q", got)
	}
}

func TestInstance(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", Message: "record", FinishedAt: metav1.NewTime(at), ContainerID: "containerd://1"}}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	again := pod("0", running, true)
	again.Status.ContainerStatuses[0].LastTerminationState, again.Status.ContainerStatuses[0].RestartCount = ended, 1
	backoff := pod("0", waiting("CrashLoopBackOff", "back-off 10s"), false)
	backoff.Status.ContainerStatuses[0].LastTerminationState = ended
	unscheduled := pod("0", corev1.ContainerState{}, false)
	unscheduled.Status.ContainerStatuses = nil
	unscheduled.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}
	evicted := pod("0", corev1.ContainerState{}, false)
	evicted.Status.Phase, evicted.Status.Reason, evicted.Status.Message = corev1.PodFailed, "Evicted", "ephemeral local storage"

	for _, c := range []struct {
		name    string
		pod     *corev1.Pod
		state   platform.InstanceState
		exit    string
		details string
	}{
		{"not yet healthy", pod("0", running, false), platform.InstanceStarting, "", ""},
		{"healthy", pod("0", running, true), platform.InstanceRunning, "", ""},
		{"just ended", pod("0", ended, false), platform.InstanceCrashed, "uid/containerd://1", "Exited with status 137 (OOMKilled)"},
		{"started again", again, platform.InstanceRunning, "uid/containerd://1", ""},
		{"waits to be started again", backoff, platform.InstanceCrashed, "uid/containerd://1", "Exited with status 137 (OOMKilled)"},
		{"no image", pod("0", waiting("ErrImagePull", "not found"), false), platform.InstanceDown, "", "ErrImagePull: not found"},
		{"is being made", pod("0", waiting("ContainerCreating", ""), false), platform.InstanceStarting, "", ""},
		{"no room", unscheduled, platform.InstanceDown, "", "0/1 nodes are available"},
		{"evicted", evicted, platform.InstanceCrashed, "uid/Evicted", "ephemeral local storage"},
	} {
		got := instance(c.pod)
		id := ""
		if got.LastExit != nil {
			id = got.LastExit.ID
		}
		if got.State != c.state || id != c.exit || got.Details != c.details {
			t.Errorf("%s: %+v with exit %q", c.name, got, id)
		}
	}
	if got := instance(again); !got.Since.Equal(at) || got.Restarts != 1 || got.LastExit.Code != 137 || got.LastExit.Reason != "OOMKilled" || got.LastExit.Message != "record" {
		t.Errorf("%+v %+v", got, got.LastExit)
	}
}

func TestSeen(t *testing.T) {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r", Labels: map[string]string{LabelRelease: "release"}, Annotations: map[string]string{AnnotationType: "web"}},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3))},
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	leaving := pod("1", running, true)
	leaving.DeletionTimestamp = &metav1.Time{}
	kept := func(o any) any { o, _ = digest(o); o, _ = digest(o); return o }
	var pods []*watchedPod
	for _, p := range []*corev1.Pod{pod("0", running, true), leaving, pod("7", running, true), pod("none", running, true)} {
		pods = append(pods, kept(p).(*watchedPod))
	}
	got := kept(set).(*watchedSet).with(pods)
	var states []string
	for _, i := range got.Instances {
		states = append(states, string(i.State))
	}
	if strings.Join(states, " ") != "RUNNING DOWN DOWN" || got.Count != 3 || got.Release != "release" || got.Type != "web" || pods[0].set != "/r" {
		t.Errorf("%+v", got)
	}
}

func TestStaged(t *testing.T) {
	digest := "sha256:" + strings.Repeat("b", 64)
	status := func(name string, code int32, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}}
	}
	build := func(phase corev1.PodPhase, statuses ...corev1.ContainerStatus) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		for _, s := range statuses {
			if s.Name == platform.PhaseExport {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
			} else {
				p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, s)
			}
		}
		return p
	}
	report := "[build]\n  digest = \"sha256:" + strings.Repeat("c", 64) + "\"\n\n[image]\n  tags = [\"x\"]\n  digest = \"" + digest + "\"\n  manifest-size = 1\n"
	late := build(corev1.PodFailed, status("fetch", 0, ""), status("detector", 137, ""))
	late.Status.Reason = "DeadlineExceeded"
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		state platform.StagingState
		says  string
	}{
		"succeeded":  {build(corev1.PodSucceeded, status("exporter", 0, report)), platform.StagingSucceeded, digest},
		"no report":  {build(corev1.PodSucceeded, status("exporter", 0, "")), platform.StagingFailed, "StagingError"},
		"none fits":  {build(corev1.PodFailed, status("fetch", 0, ""), status("detector", 20, "")), platform.StagingFailed, "NoAppDetectedError"},
		"build fail": {build(corev1.PodFailed, status("detector", 0, ""), status("builder", 51, "")), platform.StagingFailed, "BuildpackCompileFailed"},
		"too late":   {late, platform.StagingFailed, "StagingTimeExpired"},
		"running":    {build(corev1.PodPending, status("fetch", 0, "")), platform.StagingRunning, "fetch"},
		"waiting":    {build(corev1.PodPending), platform.StagingWaiting, ""},
	} {
		got := staged(staging(), c.pod)
		said := got.Digest + " " + got.Phase
		if got.Failure != nil {
			said += " " + got.Failure.String()
		}
		if got.State != c.state || !strings.Contains(said, c.says) {
			t.Errorf("%s: %+v says %q", name, got, said)
		}
	}
}
