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
		ObjectMeta: metav1.ObjectMeta{Name: "r-" + index, UID: "uid", Labels: map[string]string{podIndex: index}, Annotations: map[string]string{AnnotationType: "web"}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: appContainer, State: state, Started: &started}},
		},
	}
}

// TestEnding takes pid 1 at its word, but only for a line: the app could have written it.
func TestEnding(t *testing.T) {
	of := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationType: "web"}}}
	for message, want := range map[string]string{
		`{"process":"web","cause":"exited","status":7,"sidecar":"s1","description":"anything"}`:                  "APP/PROC/WEB/SIDECAR/S1: Exited with status 7",
		`{"process":"web","cause":"exited","status":137,"out_of_memory":true}`:                                   "APP/PROC/WEB: Exited with status 137 (out of memory)",
		`{"process":"other","cause":"unstartable","status":127,"sidecar":"s1","reason":"Check\u0007 the file."}`: "APP/PROC/WEB/SIDECAR/S1: Exited with status 127. Check the file.",
		`{"process":"web","cause":"stopped","description":"APP/PROC/WEB: Stopped by the platform"}`:              "APP/PROC/WEB: Exited with status 3",
		"not a record": "APP/PROC/WEB: Exited with status 3",
		"{}":           "APP/PROC/WEB: Exited with status 3",
	} {
		if got := ending(of, &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: message}); got != want {
			t.Errorf("%s: %q", message, got)
		}
	}
	if got := ending(of, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: oomKilled}); got != "APP/PROC/WEB: Exited with status 137 (out of memory)" {
		t.Errorf("out of memory, and pid 1 with it: %q", got)
	}
	hostile := `{"process":"web","cause":"exited","sidecar":"\u001b[31m` + strings.Repeat("x", 2000) + `"}`
	if got := described(of, &corev1.ContainerStateTerminated{Message: hostile}); strings.Contains(got, "\x1b") || len(got) > 304 {
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
	leaves := func(state corev1.ContainerState, change func(*corev1.Pod)) *corev1.Pod {
		p := pod("0", state, true)
		p.Status.ContainerStatuses[0].ContainerID = "containerd://1"
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(at.Add(25*time.Second))), new(int64(25))
		change(p)
		return p
	}
	asIs := func(*corev1.Pod) {}
	stopped := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, Message: `{"cause":"stopped"}`, FinishedAt: metav1.NewTime(at), ContainerID: "containerd://1"}}
	lost := func(p *corev1.Pod) {
		p.Spec.NodeName = "node-2"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager"}}
	}
	hold := func(p *corev1.Pod) { p.Finalizers = []string{holdFinalizer} }

	for _, c := range []struct {
		name    string
		pod     *corev1.Pod
		state   platform.InstanceState
		exit    string
		details string
	}{
		{"not yet healthy", pod("0", running, false), platform.InstanceStarting, "", ""},
		{"healthy", pod("0", running, true), platform.InstanceRunning, "", ""},
		{"just ended", pod("0", ended, false), platform.InstanceCrashed, "uid/containerd://1 APP/PROC/WEB: Exited with status 137 (out of memory)", "APP/PROC/WEB: Exited with status 137 (out of memory)"},
		{"started again", again, platform.InstanceRunning, "uid/containerd://1 APP/PROC/WEB: Exited with status 137 (out of memory)", ""},
		{"waits to be started again", backoff, platform.InstanceCrashed, "uid/containerd://1 APP/PROC/WEB: Exited with status 137 (out of memory)", "APP/PROC/WEB: Exited with status 137 (out of memory)"},
		{"no image", pod("0", waiting("ErrImagePull", "not found"), false), platform.InstanceDown, "", "ErrImagePull: not found"},
		{"is being made", pod("0", waiting("ContainerCreating", ""), false), platform.InstanceStarting, "", ""},
		{"no room", unscheduled, platform.InstanceDown, "", "0/1 nodes are available"},
		{"deleted", leaves(running, asIs), platform.InstanceRunning, "uid/containerd://1 APP/PROC/WEB: The instance was deleted from its node", ""},
		{"deleted and stopped", leaves(stopped, asIs), platform.InstanceCrashed, "uid/containerd://1 APP/PROC/WEB: The instance was deleted from its node", "APP/PROC/WEB: Exited with status 143"},
		{"deleted after it ended", leaves(ended, asIs), platform.InstanceCrashed, "uid/containerd://1 APP/PROC/WEB: Exited with status 137 (out of memory)", "APP/PROC/WEB: Exited with status 137 (out of memory)"},
		{"lost", leaves(running, lost), platform.InstanceRunning, "uid/containerd://1 APP/PROC/WEB: Its node node-2 was lost", ""},
		{"held", leaves(running, hold), platform.InstanceCrashed, "", ""},
		{"evicted", evicted, platform.InstanceCrashed, "uid/ APP/PROC/WEB: Evicted: ephemeral local storage", "ephemeral local storage"},
	} {
		got := instance(c.pod)
		id := ""
		if got.LastExit != nil {
			id = got.LastExit.ID + " " + got.LastExit.Description
		}
		if got.State != c.state || id != c.exit || got.Details != c.details {
			t.Errorf("%s: %+v with exit %q", c.name, got, id)
		}
	}
	if got := instance(leaves(running, asIs)); !got.LastExit.Moved || !got.LastExit.Time.Equal(at) {
		t.Errorf("deleted: %+v", got.LastExit)
	}
	if got := instance(pod("0", stopped, false)); !got.LastExit.Stopped {
		t.Errorf("stopped: %+v", got.LastExit)
	}
	if got := instance(pod("0", waiting("ErrImagePull", "not found"), false)); got.Blocked != "APP/PROC/WEB: Its container could not be started: ErrImagePull: not found" || got.Run != "uid/" {
		t.Errorf("blocked: %+v", got)
	}
	if got := instance(leaves(running, hold)); !got.Held || got.Ready {
		t.Errorf("held: %+v", got)
	}
	if got := instance(again); !got.Since.Equal(at) || got.Restarts != 1 || !got.LastExit.Time.Equal(at) {
		t.Errorf("%+v %+v", got, got.LastExit)
	}
}

// TestUnhealthyEvents finds out why the kubelet stopped a container, although another one of its pod is there by now.
func TestUnhealthyEvents(t *testing.T) {
	stopped := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	event := func(message string, first, last time.Duration) corev1.Event {
		return corev1.Event{Message: message, FirstTimestamp: metav1.NewTime(stopped.Add(first).Truncate(time.Second)), LastTimestamp: metav1.NewTime(stopped.Add(last).Truncate(time.Second))}
	}
	const refused = "dial tcp 10.1.1.1:8080: connect: connection refused"
	starts := event("Startup probe failed: "+refused, -30*time.Second, 2*time.Second) // the next container too
	for name, c := range map[string]struct {
		events []corev1.Event
		want   string
		never  bool
	}{
		"nothing":        {},
		"never well":     {events: []corev1.Event{starts}, want: refused, never: true},
		"later":          {events: []corev1.Event{starts, event("Liveness probe failed: slow", -9*time.Second, -8*time.Second), event("Liveness probe failed: HTTP probe failed with statuscode: 500", -3*time.Second, 0)}, want: "HTTP probe failed with statuscode: 500"},
		"not ready":      {events: []corev1.Event{event("Readiness probe failed: "+refused, -3*time.Second, 0)}},
		"the next":       {events: []corev1.Event{event("Startup probe failed: "+refused, 2*time.Second, 2*time.Second)}},
		"long ago":       {events: []corev1.Event{event("Liveness probe failed: "+refused, -time.Hour, -2*time.Minute)}},
		"something else": {events: []corev1.Event{event("Liveness", -time.Second, 0)}},
	} {
		if got, never := unhealthy(c.events, stopped); got != c.want || never != c.never {
			t.Errorf("%s: %q, never %t", name, got, never)
		}
	}
}

func TestSeen(t *testing.T) {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r", Labels: map[string]string{LabelRelease: "release"}, Annotations: map[string]string{AnnotationType: "web"}},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3))},
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	leaving, held := pod("1", running, true), pod("2", running, true)
	leaving.DeletionTimestamp, held.DeletionTimestamp, held.Finalizers = &metav1.Time{}, &metav1.Time{}, []string{holdFinalizer}
	kept := func(o any) any { o, _ = digest(o); o, _ = digest(o); return o }
	var pods []*watchedPod
	for _, p := range []*corev1.Pod{pod("0", running, true), leaving, held, pod("7", running, true), pod("none", running, true)} {
		pods = append(pods, kept(p).(*watchedPod))
	}
	got := kept(set).(*watchedSet).with(pods)
	var states []string
	for _, i := range got.Instances {
		states = append(states, string(i.State))
	}
	if strings.Join(states, " ") != "RUNNING DOWN CRASHED" || got.Count != 3 || got.Release != "release" || got.Type != "web" || pods[0].set != "/r" {
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
