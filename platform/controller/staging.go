package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/store"
)

// maxTries is how often a staging is begun. What it stood on may be lost once.
const maxTries = 2

// actOnStagings looks after each build that is under way, in a goroutine of its own, and removes stagings that no build has.
func (t *term) actOnStagings(ctx context.Context, p picture, asked map[string]bool) {
	wanted := map[string]bool{}
	for _, task := range p.tasks {
		build := task.Build.GUID
		name := "stage " + build
		wanted[build], asked[name] = true, true
		if _, running := t.running[build]; running {
			continue
		}
		if _, waits := t.delays.waits(name, t.Now()); waits {
			continue
		}
		if err := t.ensure(ctx, task.Space.GUID, task.Space.Namespace(), asked); err != nil {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		t.running[build] = cancel
		t.stagings.Go(func() {
			_ = t.try(own, "stage", name, "Build "+build+" is under way.", func(ctx context.Context) error { return t.stage(ctx, task) })
			t.ended <- build
		})
	}
	for build, cancel := range t.running {
		if !wanted[build] {
			cancel() // its app is gone
		}
	}
	for _, s := range p.stagings {
		if wanted[s.Build] || s.Deleting {
			continue
		}
		name := "delete-staging " + s.Build
		asked[name] = true
		_ = t.try(ctx, "delete-staging", name, "No build needs this staging any more.", func(ctx context.Context) error {
			return t.Cluster.DeleteStaging(ctx, s.Namespace, s.Build)
		})
	}
}

func (t *term) forget(build string) {
	if cancel := t.running[build]; cancel != nil {
		cancel()
		delete(t.running, build)
	}
}

// tools are what apps are staged with. They are found when they are first needed, and looked for again after a while: an operator may
// have pushed a new builder.
type tools struct {
	mu       sync.Mutex
	at       time.Time
	builder  bits.Builder
	runImage string
}

const toolsFor = 10 * time.Minute

func (c *Controller) stagingTools(ctx context.Context) (bits.Builder, string, error) {
	c.tools.mu.Lock()
	defer c.tools.mu.Unlock()
	if c.tools.runImage != "" && c.Now().Sub(c.tools.at) < toolsFor {
		return c.tools.builder, c.tools.runImage, nil
	}
	builder, err := c.Registry.Builder(ctx, c.Builder)
	if err != nil {
		return builder, "", err
	}
	runImage, err := c.Registry.RunImage(ctx, c.RunImage, c.Programs)
	if err != nil {
		return builder, "", err
	}
	c.tools.at, c.tools.builder, c.tools.runImage = c.Now(), builder, runImage
	return builder, runImage, nil
}

// stage takes a build to its end, from wherever it is. It fails only for what may be better when it is tried again.
func (c *Controller) stage(ctx context.Context, task store.Task) error {
	timeout := cmp.Or(c.Timeout, stagingTime)
	end := task.Build.CreatedAt.Add(maxTries*timeout + waitingTime)
	limited, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	err := c.stageOf(limited, task, timeout)
	if !c.Now().Before(end) && ctx.Err() == nil && err != nil {
		late := platform.StagingFailure{Code: "StagingTimeExpired", Detail: fmt.Sprintf("The platform could not stage this app within %v. Try again; if it stays so, tell your operator.", end.Sub(task.Build.CreatedAt))}
		c.Log.Error("staging was too late", "build", task.Build.GUID, "error", err)
		return c.finish(ctx, task, nil, &late)
	}
	return err
}

func (c *Controller) stageOf(ctx context.Context, task store.Task, timeout time.Duration) error {
	if task.Package.Type == platform.PackageDocker {
		return c.stageDocker(ctx, task)
	}
	b, failure, err := c.staging(ctx, task, timeout)
	if err != nil {
		return err
	}
	if failure != nil {
		return c.finish(ctx, task, nil, failure)
	}
	staged, err := c.follow(ctx, task, b)
	switch {
	case err != nil:
		return err
	case staged.State == platform.StagingSucceeded:
		d, err := c.droplet(ctx, b, staged.Digest)
		return c.conclude(ctx, task, d, err)
	}
	return c.finish(ctx, task, nil, staged.Failure)
}

// staging is what the cluster is told. It can be the user's fault that there is none.
func (c *Controller) staging(ctx context.Context, task store.Task, timeout time.Duration) (b platform.Staging, failure *platform.StagingFailure, err error) {
	builder, runImage, err := c.stagingTools(ctx)
	if err != nil {
		return b, nil, err
	}
	target, err := c.Registry.DropletName(task.Build.AppGUID, task.Build.GUID)
	if err != nil {
		return b, nil, err
	}
	b = platform.Staging{
		BuildGUID: task.Build.GUID, AppGUID: task.Build.AppGUID, SpaceGUID: task.Space.GUID, Namespace: task.Space.Namespace(),
		SourceImage: task.Package.Image, Builder: builder.Image, RunImage: runImage, TargetImage: target,
		Env: task.Env, MemoryMB: task.Build.MemoryMB, DiskMB: task.Build.DiskMB, Timeout: timeout,
	}
	failure, err = c.buildpacks(ctx, &b, builder, task.Build.Lifecycle.Buildpacks)
	return b, failure, err
}

// follow begins a staging unless it has begun, writes down what it prints, and tells how it ended. A staging that vanished with its
// node begins again, once: the log says how often it has begun.
func (c *Controller) follow(ctx context.Context, task store.Task, b platform.Staging) (platform.Staged, error) {
	for {
		state, err := c.Store.StagingLog(ctx, b.AppGUID, task.Build.CreatedAt)
		if err != nil {
			return platform.Staged{}, err
		}
		staged, err := c.Cluster.Staged(ctx, b)
		if err != nil {
			return staged, err
		}
		try := max(len(state.Lines)-1, 0)
		if staged.State == platform.StagingLost {
			if try = len(state.Lines); try >= maxTries {
				return platform.Staged{State: platform.StagingFailed, Failure: &platform.StagingFailure{Code: "StagingError",
					Detail: "The machine that staged this app was lost, and the one after it too. Push again; if it stays so, tell your operator."}}, nil
			}
			if err := c.begin(ctx, b, newJournal(c.Store, b.AppGUID, try, state, c.Now())); err != nil {
				return staged, err
			}
			continue
		}
		if staged, err = c.listen(ctx, b, newJournal(c.Store, b.AppGUID, try, state, c.Now())); err != nil || staged.State != platform.StagingLost {
			return staged, err
		}
	}
}

// begin notes the try before it makes the pod, so that none goes uncounted.
func (c *Controller) begin(ctx context.Context, b platform.Staging, j *journal) error {
	text := "Staging begins."
	if j.try != "0" {
		text = "The staging was lost with the machine it ran on. It begins again."
	}
	j.say(ctx, text)
	if err := j.flush(ctx); err != nil {
		return err
	}
	c.Log.Info("staging begins", "build", b.BuildGUID, "app", b.AppGUID, "try", j.try)
	return c.Cluster.Stage(ctx, b)
}

// listen follows a try to its end. A log that could not be read to its end does not undo a staging that has ended.
func (c *Controller) listen(ctx context.Context, b platform.Staging, j *journal) (platform.Staged, error) {
	j.rewind()
	j.heard = min(1, j.written) // the line with which it began
	rest := j.keepFlushing(ctx)
	staged, err := c.Cluster.Follow(ctx, b, func(phase, text string) { j.line(ctx, phase, text) })
	if err != nil && staged.State != "" {
		c.Log.Warn("log of a staging is not whole", "build", b.BuildGUID, "error", err)
		err = nil
	}
	return staged, errors.Join(err, rest())
}

// droplet reads what the image tells of itself, of which buildpacks wrote every word.
func (c *Controller) droplet(ctx context.Context, b platform.Staging, digest string) (*platform.Droplet, error) {
	repository := b.TargetImage[:strings.LastIndex(b.TargetImage, ":")]
	d, err := c.Registry.Droplet(ctx, repository+"@"+digest)
	if err != nil {
		return nil, err
	}
	return &platform.Droplet{Image: d.Image, Stack: d.Stack, Processes: d.Processes, Buildpacks: d.Buildpacks}, nil
}

// stageDocker makes a droplet of an image that somebody else built: there is nothing to stage, but our programs have to get into it.
func (c *Controller) stageDocker(ctx context.Context, task store.Task) error {
	source := task.Package.Docker
	found, err := c.Registry.DockerImage(ctx, source.Image, source.Username, source.Password)
	if err != nil {
		return c.conclude(ctx, task, nil, err)
	}
	image, err := c.Registry.Adopt(ctx, task.Build.AppGUID, found, source, c.Programs)
	if err != nil {
		return c.conclude(ctx, task, nil, err)
	}
	d := &platform.Droplet{Image: image}
	if line := append(append([]string{}, found.Config.Entrypoint...), found.Config.Cmd...); len(line) > 0 {
		d.Processes = []platform.DropletProcess{{Type: platform.WebProcess, Command: line[0], Args: line[1:], Default: true}}
	}
	return c.conclude(ctx, task, d, nil)
}

// conclude ends a build unless the error may be gone when it is tried again.
func (c *Controller) conclude(ctx context.Context, task store.Task, d *platform.Droplet, err error) error {
	if err == nil {
		return c.finish(ctx, task, d, nil)
	}
	failure, again := blame(err)
	if again != nil {
		return again
	}
	c.Log.Info("staging made no droplet", "build", task.Build.GUID, "error", err)
	return c.finish(ctx, task, nil, failure)
}

// finish ends a build. The staging's pod goes after that; if it does not, a later pass sees it.
func (c *Controller) finish(ctx context.Context, task store.Task, d *platform.Droplet, failure *platform.StagingFailure) error {
	text, outcome := "", "staged"
	if d == nil {
		if failure == nil {
			failure = &platform.StagingFailure{Code: "StagingError", Detail: "Staging ended without a droplet. Push again; if it stays so, tell your operator."}
		}
		text, outcome = failure.String(), "failed"
	}
	if err := c.Store.FinishBuild(ctx, task.Build.GUID, d, text); err != nil {
		return err
	}
	took := c.Now().Sub(task.Build.CreatedAt)
	c.Metrics.staged(outcome, took)
	c.Log.Info("build ended", "build", task.Build.GUID, "app", task.Build.AppGUID, "outcome", outcome, "failure", text, "took", took)
	if err := c.Cluster.DeleteStaging(ctx, task.Space.Namespace(), task.Build.GUID); err != nil {
		c.Log.Warn("staging is not removed yet", "build", task.Build.GUID, "error", err)
	}
	return nil
}
