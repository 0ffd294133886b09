package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// A tally follows the pods of an app through every change that the cluster tells, and keeps the extremes.
type tally struct {
	mu   sync.Mutex
	pods map[string]podSeen
	from bool // the extremes are being kept

	least, most int // ready, and in all; those that are about to leave are neither
	worst       string
}

type podSeen struct {
	Release string
	Ready   bool
}

// tally begins to follow the pods of an app until the test ends.
func (w *world) tally(a platform.App) *tally {
	w.Helper()
	c := &tally{pods: map[string]podSeen{}}
	cmd := exec.Command("kubectl", "--namespace="+w.space.Namespace(), "get", "pods", "--watch", "--output-watch-events", "-o", "json", "-l", "proa.dev/app="+a.GUID)
	out, err := cmd.StdoutPipe()
	must(w, err)
	must(w, cmd.Start())
	w.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	go c.follow(out)
	return c
}

func (c *tally) follow(events io.Reader) {
	for in := json.NewDecoder(events); ; {
		var e struct {
			Type   string
			Object struct {
				Metadata struct {
					Name              string
					Labels            map[string]string
					DeletionTimestamp *time.Time
				}
				Status struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		if in.Decode(&e) != nil {
			return
		}
		about := e.Object.Metadata
		c.mu.Lock()
		delete(c.pods, about.Name)
		if e.Type != "DELETED" && about.DeletionTimestamp == nil {
			p := podSeen{Release: about.Labels["proa.dev/release"]}
			for _, condition := range e.Object.Status.Conditions {
				p.Ready = p.Ready || condition.Type == "Ready" && condition.Status == "True"
			}
			c.pods[about.Name] = p
		}
		c.note()
		c.mu.Unlock()
	}
}

func (c *tally) note() {
	ready := 0
	for _, p := range c.pods {
		if p.Ready {
			ready++
		}
	}
	if c.from {
		if ready < c.least {
			c.least, c.worst = ready, fmt.Sprint(c.pods)
		}
		c.most = max(c.most, len(c.pods))
	}
}

// begin waits for so many that are ready, and keeps the extremes from then on.
func (c *tally) begin(w *world, n int) {
	w.Helper()
	w.until(time.Minute, fmt.Sprintf("%d are ready", n), func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.from, c.least, c.most, c.worst = true, 1<<30, 0, ""
		if c.note(); c.least != n || c.most != n {
			c.from = false
			return fmt.Errorf("the pods are %v", c.pods)
		}
		return nil
	})
}

// check wants that never fewer were ready, nor more there.
func (c *tally) check(t *testing.T, least, most int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("at least %d were ready, at most %d were there", c.least, c.most)
	if c.least < least || c.most > most {
		t.Errorf("at least %d were ready, want %d; at most %d were there, want %d: %s", c.least, least, c.most, most, c.worst)
	}
}

// of counts the pods of a release that are ready, and those of others.
func (c *tally) of(release string) (its, others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		switch {
		case p.Release != release:
			others++
		case p.Ready:
			its++
		}
	}
	return its, others
}

func (c *tally) has(release string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if p.Release == release {
			return nil
		}
	}
	return fmt.Errorf("the pods are %v", c.pods)
}

func (w *world) deploy(d platform.Deployment) platform.Deployment {
	w.Helper()
	return get[platform.Deployment](w)(w.store.CreateDeployment(w.Context(), admin, d, store.Settings{API: "https://api.example.org"}))
}

// status waits until a deployment is at this.
func (w *world) status(d platform.Deployment, want platform.DeploymentReason) time.Duration {
	w.Helper()
	return w.until(2*time.Minute, "the deployment is "+string(want), func() error {
		if now := get[platform.Deployment](w)(w.store.Deployment(w.Context(), admin, d.GUID)); now.Reason != want {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
}

// alone waits until all pods are of the release that is to run.
func (w *world) alone(a platform.App, c *tally, n int) {
	w.Helper()
	release := w.web(a).Version
	w.until(time.Minute, fmt.Sprintf("%d of the release", n), func() error {
		if its, others := c.of(release); its != n || others > 0 {
			return fmt.Errorf("%d are, %d are not", its, others)
		}
		return nil
	})
}

func (w *world) scale(a platform.App, n int) {
	w.Helper()
	get[platform.Process](w)(w.store.ScaleProcess(w.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: &n}))
	w.instances(a, strings.TrimSpace(strings.Repeat("RUNNING ", n)))
}

func (w *world) command(a platform.App, command string) {
	w.Helper()
	get[platform.Process](w)(w.store.UpdateProcess(w.Context(), admin, w.web(a).GUID, func(p *platform.Process) error {
		return p.Update(platform.ProcessChange{Command: &command})
	}))
}

// TestDeployments takes an app through every kind of deployment. All the while as many instances as there should be are ready, and no
// more are there than may be in flight.
func TestDeployments(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	a := w.routed("shop")
	c := w.tally(a)

	t.Run("one instance", func(t *testing.T) {
		c.begin(w, 1)
		d := w.deploy(platform.Deployment{AppGUID: a.GUID})
		t.Logf("DEPLOYED after %.1f s", w.status(d, platform.Deployed).Seconds())
		w.alone(a, c, 1)
		c.check(t, 1, 2)
		if all := get[map[string][]platform.Instance](w)(w.store.Instances(t.Context(), []string{a.GUID})); len(all[a.GUID]) != 1 || !all[a.GUID][0].Ready {
			t.Errorf("the records have %+v", all)
		}
	})
	w.scale(a, 2)
	t.Run("two instances", func(t *testing.T) {
		c.begin(w, 2)
		d := w.deploy(platform.Deployment{AppGUID: a.GUID})
		t.Logf("DEPLOYED after %.1f s", w.status(d, platform.Deployed).Seconds())
		w.alone(a, c, 2)
		c.check(t, 2, 3)
	})
	t.Run("two at a time", func(t *testing.T) {
		c.begin(w, 2)
		d := w.deploy(platform.Deployment{AppGUID: a.GUID, MaxInFlight: 2})
		t.Logf("DEPLOYED after %.1f s", w.status(d, platform.Deployed).Seconds())
		w.alone(a, c, 2)
		c.check(t, 2, 4)
	})
	t.Run("canary", func(t *testing.T) {
		c.begin(w, 2)
		d := w.deploy(platform.Deployment{AppGUID: a.GUID, Strategy: platform.Canary})
		t.Logf("PAUSED after %.1f s", w.status(d, platform.Paused).Seconds())
		fresh := w.web(a).Version
		w.until(time.Minute, "one new and one old", func() error {
			if its, others := c.of(fresh); its != 1 || others != 1 {
				return fmt.Errorf("%d new, %d old", its, others)
			}
			return nil
		})
		time.Sleep(12 * time.Second) // longer than between two full passes
		if its, others := c.of(fresh); its != 1 || others != 1 {
			t.Errorf("while it pauses there are %d new, %d old", its, others)
		}
		get[platform.Deployment](w)(w.store.ContinueDeployment(t.Context(), admin, d.GUID))
		t.Logf("DEPLOYED %.1f s after that", w.status(d, platform.Deployed).Seconds())
		w.alone(a, c, 2)
		c.check(t, 2, 3)
	})
	good := w.web(a).Version
	t.Run("cancel", func(t *testing.T) {
		c.begin(w, 2)
		w.command(a, "sleep 1000") // which never listens
		d := w.deploy(platform.Deployment{AppGUID: a.GUID})
		bad := w.web(a).Version
		w.until(time.Minute, "a new one", func() error { return c.has(bad) })
		time.Sleep(5 * time.Second) // in which others would be ready
		if its, others := c.of(bad); its != 0 || others != 2 {
			t.Errorf("%d new are ready, %d old are there", its, others)
		}
		get[platform.Deployment](w)(w.store.CancelDeployment(t.Context(), admin, d.GUID))
		t.Logf("CANCELED after %.1f s", w.status(d, platform.Canceled).Seconds())
		if now := w.web(a).Version; now != good {
			t.Errorf("it runs %s, want %s", now, good)
		}
		w.alone(a, c, 2)
		c.check(t, 2, 3)
	})
	t.Run("cancel a canary", func(t *testing.T) {
		w.command(a, "")
		c.begin(w, 2)
		d := w.deploy(platform.Deployment{AppGUID: a.GUID, Strategy: platform.Canary})
		w.status(d, platform.Paused)
		get[platform.Deployment](w)(w.store.CancelDeployment(t.Context(), admin, d.GUID))
		t.Logf("CANCELED after %.1f s", w.status(d, platform.Canceled).Seconds())
		if now := w.web(a).Version; now != good {
			t.Errorf("it runs %s, want %s", now, good)
		}
		w.alone(a, c, 2)
		c.check(t, 2, 3)
	})
	t.Run("supersede", func(t *testing.T) {
		w.command(a, "sleep 1000")
		c.begin(w, 2)
		one := w.deploy(platform.Deployment{AppGUID: a.GUID}) // of the command that never listens
		w.until(time.Minute, "a new one", func() error { return c.has(w.web(a).Version) })
		w.command(a, "")
		two := w.deploy(platform.Deployment{AppGUID: a.GUID})
		w.status(one, platform.Superseded)
		t.Logf("DEPLOYED after %.1f s", w.status(two, platform.Deployed).Seconds())
		w.alone(a, c, 2)
		c.check(t, 2, 3)
	})
	t.Run("scale meanwhile", func(t *testing.T) {
		c.begin(w, 2)
		d := w.deploy(platform.Deployment{AppGUID: a.GUID})
		get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(3)}))
		w.status(d, platform.Deployed)
		w.alone(a, c, 3)
		c.check(t, 2, 4)
	})
	t.Run("killed", func(t *testing.T) {
		c.begin(w, 3)
		d := w.deploy(platform.Deployment{AppGUID: a.GUID})
		kills := 0
		w.until(3*time.Minute, "the deployment is done", func() error {
			if now := get[platform.Deployment](w)(w.store.Deployment(t.Context(), admin, d.GUID)); now.Reason != platform.Deployed {
				time.Sleep(2 * time.Second)
				p.kill()
				kills++
				p = w.start()
				return fmt.Errorf("it is %+v", now)
			}
			return nil
		})
		t.Logf("the controller was killed %d times", kills)
		w.alone(a, c, 3)
		c.check(t, 3, 4)
	})
	t.Run("stop", func(t *testing.T) {
		d := w.deploy(platform.Deployment{AppGUID: a.GUID})
		get[platform.App](w)(w.store.StopApp(t.Context(), admin, a.GUID))
		w.status(d, platform.Canceled)
		w.until(time.Minute, "nothing left", func() error {
			if left := w.there("statefulsets,pods,secrets", "app"); len(left) > 0 {
				return fmt.Errorf("still there: %v", left)
			}
			return nil
		})
	})
}

// TestRollback goes back to the droplet and the environment of an earlier revision.
func TestRollback(t *testing.T) {
	w := newWorld(t)
	w.start()
	a := w.routed("shop")
	ctx := t.Context()
	first := get[platform.Droplet](w)(w.store.CurrentDroplet(ctx, admin, a.GUID))
	get[platform.App](w)(w.store.UpdateApp(ctx, admin, a.GUID, func(a *platform.App) error { return a.SetEnv(map[string]*string{"COLOUR": new("blue")}) }))
	w.deploy(platform.Deployment{AppGUID: a.GUID})

	files := w.traffic("exec ./traffic $PORT")
	files["another"] = "file\n"
	z := archive(w, files)
	pkg := get[platform.Package](w)(w.store.CreatePackage(ctx, admin, platform.Package{AppGUID: a.GUID, Type: platform.PackageBits}))
	pkg = get[platform.Package](w)(w.store.BeginUpload(ctx, admin, pkg.GUID))
	up, err := w.packer.Upload(ctx, a.GUID, z, z.Size())
	must(w, err)
	pkg.Image, pkg.Size, pkg.State = up.Image, up.Size, platform.PackageReady
	b := w.build(get[platform.Package](w)(w.store.EndUpload(ctx, pkg)))
	get[platform.App](w)(w.store.UpdateApp(ctx, admin, a.GUID, func(a *platform.App) error { return a.SetEnv(map[string]*string{"COLOUR": new("red")}) }))
	d := w.deploy(platform.Deployment{AppGUID: a.GUID, Droplet: b.DropletGUID})
	w.status(d, platform.Deployed)

	c := w.tally(a)
	runs := func(colour, image string) {
		t.Helper()
		w.alone(a, c, 1)
		in := "--namespace=" + w.space.Namespace()
		pod := w.try(in, "get", "pods", "-o", "name", "-l", "proa.dev/release="+w.web(a).Version)
		if got := w.try(in, "exec", pod, "--", "sh", "-c", "echo $COLOUR"); got != colour {
			t.Errorf("the colour is %q, want %q", got, colour)
		}
		if got := w.try(in, "get", pod, "-o", "jsonpath={.spec.containers[0].image}"); got != image {
			t.Errorf("the image is %q, want %q", got, image)
		}
	}
	runs("red", get[platform.Droplet](w)(w.store.Droplet(ctx, admin, b.DropletGUID)).Image)
	l := platform.List{Page: 1, PerPage: 10, Values: map[string][]string{"versions": {"2"}}}
	second := get[platform.Page[platform.Revision]](w)(w.store.RevisionsOf(ctx, admin, a.GUID, l)).Records[0]
	c.begin(w, 1)
	d = w.deploy(platform.Deployment{AppGUID: a.GUID, RevisionGUID: second.GUID})
	t.Logf("rolled back after %.1f s", w.status(d, platform.Deployed).Seconds())
	runs("blue", first.Image)
	c.check(t, 1, 2)
}

// leastRate is how many requests in a second all loads together must send: fewer could miss a gap of some milliseconds.
const leastRate = 200

// TestRollingUnderLoad restarts an app of two instances again and again while requests come, and loses none.
func TestRollingUnderLoad(t *testing.T) {
	w := newWorld(t)
	w.start()
	a := w.routed("shop")
	r := w.route("shop", "", to(a, 0))
	url := "http://" + r.URL()
	w.scale(a, 2)
	w.answers(gateway(), url, "on 8080")
	w.pods(2)
	c := w.tally(a)
	c.begin(w, 2)

	loads := []*load{newLoad("kept alive", url, true), newLoad("a connection each", url, false)}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, l := range loads {
		all.Go(func() { l.run(ctx) })
	}
	defer all.Wait()
	defer stop()
	for _, d := range []platform.Deployment{{Strategy: platform.Rolling}, {Strategy: platform.Rolling, MaxInFlight: 2}, {Strategy: platform.Canary}} {
		d.AppGUID = a.GUID
		began := time.Now()
		made := w.deploy(d)
		if d.Strategy == platform.Canary {
			w.status(made, platform.Paused)
			get[platform.Deployment](w)(w.store.ContinueDeployment(t.Context(), admin, made.GUID))
		}
		w.status(made, platform.Deployed)
		took := time.Since(began)
		w.pods(2) // those that leave have left
		time.Sleep(time.Second)
		together, lasted := 0, time.Since(began).Seconds()
		for _, l := range loads {
			sent, failed, text := l.count()
			together += sent
			t.Logf("%s, %d in flight, DEPLOYED after %.1f s: %s", d.Strategy, made.MaxInFlight, took.Seconds(), text)
			if failed > 0 || sent == 0 {
				t.Errorf("%s: requests failed, or none was sent: %s", d.Strategy, text)
			}
		}
		if rate := float64(together) / lasted; rate < leastRate {
			t.Errorf("%s: %.0f requests in a second show nothing, it takes %d", d.Strategy, rate, leastRate)
		} else {
			t.Logf("%s: %.0f requests in a second", d.Strategy, rate)
		}
	}
	c.check(t, 2, 4)
}
