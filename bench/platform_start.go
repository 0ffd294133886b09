package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// What starts an app is Kubernetes. The bare engine is the same image as a StatefulSet by hand, in the same namespace. The kubelet tells
// that a container has started most of a second before it tells that its pod is ready, so each is compared with its own: RUNNING in the
// stats is the first, routable the second.
var startOne = figure{
	name:  startName,
	about: "start of an app with one instance until it runs and until it is ready, beside a bare StatefulSet of its image; needs a running Proa",
	run:   measureStart,
}

const (
	startName   = "platform.start"
	startRounds = 10
)

func measureStart(ctx context.Context, _ *bench) ([]line, error) {
	var lines []line
	err := withProa(ctx, startName, func(p *proa) error {
		app, err := p.createApp(ctx)
		if err != nil {
			return err
		}
		if _, err := p.push(ctx, app, "first"); err != nil { // the node has the image afterwards
			return err
		}
		bare, err := bareOf(ctx, app)
		if err != nil {
			return err
		}
		lines, err = p.compareStarts(ctx, app, bare)
		return err
	})
	return lines, err
}

// started is how long it took, in seconds, until the container had started and until its pod was ready.
type started struct{ running, ready float64 }

// compareStarts lets nothing run but what is measured.
func (p *proa) compareStarts(ctx context.Context, app string, bare bareSet) ([]line, error) {
	seen, end, err := bare.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	say("%s: %d rounds", startName, startRounds)
	var running, ready, bareRunning, bareReady, applied []float64
	for range startRounds {
		if err := p.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/actions/stop", nil, nil); err != nil {
			return nil, err
		}
		if err := bare.gone(ctx, "proa.dev/app="+app); err != nil {
			return nil, err
		}
		apply, theirs, err := bare.start(ctx, seen)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := p.start(ctx, app, "start"); err != nil {
			return nil, err
		}
		ours := started{running: time.Since(begin).Seconds()}
		if err := p.routable(ctx, app); err != nil {
			return nil, err
		}
		ours.ready = time.Since(begin).Seconds()
		running, ready = append(running, ours.running), append(ready, ours.ready)
		bareRunning, bareReady, applied = append(bareRunning, theirs.running), append(bareReady, theirs.ready), append(applied, apply)
		say("running after %.2f s, bare %.2f s; ready after %.2f s, bare %.2f s", ours.running, theirs.running, ours.ready, theirs.ready)
	}
	most := aim{of: "ratio", is: "<=", bound: 1.25}
	return []line{
		{name: startName + ".running", ours: quantity{median(running), "s"}, bare: quantity{median(bareRunning), "s"}, aim: most,
			notes: []string{fmt.Sprintf("medians of %d, with the same image, limits and startup probe; kubectl apply took %.2f s of the bare start", startRounds, median(applied))}},
		{name: startName + ".ready", ours: quantity{median(ready), "s"}, bare: quantity{median(bareReady), "s"}, aim: most},
	}, nil
}

// bareSet is a StatefulSet as people write it.
type bareSet struct {
	namespace string
	manifest  []byte
}

const bareName = "bench-bare"

// bareOf takes from what runs an app what makes the two comparable, and nothing else.
func bareOf(ctx context.Context, app string) (bareSet, error) {
	var found struct {
		Items []struct {
			Metadata struct{ Namespace string }
			Spec     struct {
				Template struct {
					Spec struct {
						Containers []struct{ Image, Ports, Resources, StartupProbe, SecurityContext json.RawMessage }

						ImagePullSecrets, SecurityContext json.RawMessage
					}
				}
			}
		}
	}
	text, err := kubectl(ctx, nil, "get", "statefulsets", "-A", "-l", "proa.dev/app="+app, "-o", "json")
	if err != nil {
		return bareSet{}, err
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return bareSet{}, err
	}
	if len(found.Items) != 1 || len(found.Items[0].Spec.Template.Spec.Containers) != 1 {
		return bareSet{}, fmt.Errorf("the app runs as %d StatefulSets; is this its cluster?", len(found.Items))
	}
	pod := found.Items[0].Spec.Template.Spec
	c := pod.Containers[0]
	type object = map[string]any
	labels := object{"bench": bareName}
	container := object{"name": "app", "image": c.Image, "ports": c.Ports, "resources": c.Resources, "startupProbe": c.StartupProbe,
		"securityContext": c.SecurityContext, "env": []object{{"name": "PORT", "value": "8080"}}}
	manifest, err := json.Marshal(object{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": object{"name": bareName}, "spec": object{
		"serviceName": bareName, "selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels}, "spec": object{
			"containers": []object{container}, "imagePullSecrets": pod.ImagePullSecrets, "securityContext": pod.SecurityContext, "automountServiceAccountToken": false,
		}},
	}})
	return bareSet{namespace: found.Items[0].Metadata.Namespace, manifest: manifest}, err
}

// sight is the pod as it was at a time.
type sight struct {
	at             time.Time
	started, ready bool
}

// watch tells how the pod becomes, as long as somebody listens.
func (s bareSet) watch(ctx context.Context) (seen <-chan sight, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "kubectl", "get", "pods", "-n", s.namespace, "-l", "bench="+bareName, "--watch", //nolint:gosec // the arguments are ours
		"-o", `jsonpath={.status.containerStatuses[0].started}/{.status.conditions[?(@.type=="Ready")].status}/{.metadata.deletionTimestamp}{"\n"}`)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	sights := make(chan sight)
	go func() {
		defer close(sights)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			now := sight{at: time.Now(), started: strings.HasPrefix(lines.Text(), "true/"), ready: strings.HasSuffix(lines.Text(), "/True/")}
			select {
			case sights <- now:
			case <-time.After(100 * time.Millisecond): // nobody listens
			case <-ctx.Done():
				return
			}
		}
	}()
	return sights, func() { cancel(); _ = cmd.Wait() }, nil // it ends by our signal
}

// start applies it, waits until it is ready, and takes it away again.
func (s bareSet) start(ctx context.Context, seen <-chan sight) (apply float64, took started, err error) {
	begin := time.Now()
	applied := make(chan error, 1)
	go func() {
		_, err := kubectl(ctx, s.manifest, "apply", "-n", s.namespace, "-f", "-")
		apply = time.Since(begin).Seconds()
		applied <- err
	}()
	for end := time.After(3 * time.Minute); took.ready == 0; {
		select {
		case now, ok := <-seen:
			if !ok {
				return 0, took, errors.New("kubectl stopped watching")
			}
			if now.started && took.running == 0 {
				took.running = now.at.Sub(begin).Seconds()
			}
			if now.ready {
				took.ready = now.at.Sub(begin).Seconds()
			}
		case <-end:
			return 0, took, errors.New("the bare StatefulSet was not ready after three minutes")
		}
	}
	if err := <-applied; err != nil {
		return 0, took, err
	}
	if _, err := kubectl(ctx, nil, "delete", "statefulset", bareName, "-n", s.namespace); err != nil {
		return 0, took, err
	}
	return apply, took, s.gone(ctx, "bench="+bareName)
}

// gone waits until no pod with a label is left.
func (s bareSet) gone(ctx context.Context, label string) error {
	return await(ctx, func() (bool, error) {
		left, err := kubectl(ctx, nil, "get", "pods", "-n", s.namespace, "-l", label, "-o", "name")
		return len(bytes.TrimSpace(left)) == 0, err
	})
}

func kubectl(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...) //nolint:gosec // the arguments are ours
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("kubectl %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
