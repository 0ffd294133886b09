package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proa-dev/proa/kit/env"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// Logs come from Kubernetes. The bare engine is kubectl logs --follow of the same pod: both read the same lines from the first to the last.
var logSpeed = figure{
	name:  logSpeedName,
	about: "lines per second of the log stream of a main process and two sidecars, beside kubectl logs --follow of the pod; needs a running Proa",
	run:   measureLogSpeed,
}

// Streams wait more than they work. One that is open for long must not cost more than one that was just opened.
var logStreams = figure{
	name:  logStreamsName,
	about: "memory of the API for 200 log streams of an app that writes five lines a second, beside one kubectl logs --follow; needs a running Proa",
	run:   measureLogStreams,
}

const (
	logSpeedName   = "platform.logs"
	logStreamsName = "platform.log_streams"
	logRounds      = 7
	logEach        = 22_000 // lines of each of the three: together they fit into the 10 MiB after which nodes begin another file
	logCount       = 200    // streams
)

func measureLogSpeed(ctx context.Context, _ *bench) ([]line, error) {
	var lines []line
	err := withProa(ctx, logSpeedName, func(p *proa) error {
		write := fmt.Sprintf(`seq -f "line %%.0f of a log, with as many words behind it as such lines have" %d; exec sleep 1d`, logEach)
		app, err := p.talker(ctx, write, map[string]string{"one": write, "two": write})
		if err != nil {
			return err
		}
		pod, err := podOf(ctx, app)
		if err != nil {
			return err
		}
		if err := pod.written(ctx, 3*logEach); err != nil {
			return err
		}
		say("%s: %d rounds of %d lines", logSpeedName, logRounds, 3*logEach)
		var ours, bare []float64
		for range logRounds {
			theirs, err := pod.readLog(ctx, 3*logEach)
			if err != nil {
				return fmt.Errorf("kubectl logs: %w", err)
			}
			mine, err := p.readStream(ctx, app, 3*logEach)
			if err != nil {
				return err
			}
			say("%.0f lines/s, kubectl %.0f", mine, theirs)
			ours, bare = append(ours, mine), append(bare, theirs)
		}
		lines = []line{{name: logSpeedName, ours: quantity{median(ours), "lines/s"}, bare: quantity{median(bare), "lines/s"}, aim: aim{of: "ratio", is: ">=", bound: 0.9},
			notes: []string{fmt.Sprintf("medians of %d rounds; both from their first lines to the last, so without what it takes to begin", logRounds)}}}
		return nil
	})
	return lines, err
}

// talker is an app that runs commands in a shell.
func (p *proa) talker(ctx context.Context, command string, sidecars map[string]string) (app string, err error) {
	if app, err = p.createApp(ctx); err != nil {
		return "", err
	}
	change := map[string]any{"command": command, "health_check": map[string]any{"type": "process"}}
	if err := p.Call(ctx, http.MethodPatch, "/v3/apps/"+app+"/processes/web", change, nil); err != nil {
		return "", err
	}
	for name, command := range sidecars {
		in := map[string]any{"name": name, "command": command, "process_types": []string{"web"}, "memory_in_mb": 8}
		if err := p.Call(ctx, http.MethodPost, "/v3/apps/"+app+"/sidecars", in, nil); err != nil {
			return "", err
		}
	}
	_, err = p.push(ctx, app, "talks")
	return app, err
}

// loggedPod is the pod of an app.
type loggedPod struct{ namespace, name string }

func podOf(ctx context.Context, app string) (loggedPod, error) {
	text, err := kubectl(ctx, nil, "get", "pods", "-A", "-l", "proa.dev/app="+app, "-o", "jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name} {end}")
	if err != nil {
		return loggedPod{}, err
	}
	f := strings.Fields(string(text))
	if len(f) != 2 {
		return loggedPod{}, fmt.Errorf("the app has %d pods; is this its cluster?", len(f)/2)
	}
	return loggedPod{f[0], f[1]}, nil
}

func (l loggedPod) written(ctx context.Context, lines int) error {
	return await(ctx, func() (bool, error) {
		text, err := kubectl(ctx, nil, "logs", "-n", l.namespace, l.name)
		return bytes.Count(text, []byte("\n")) >= lines, err
	})
}

// readLog gives the lines per second of kubectl.
func (l loggedPod) readLog(ctx context.Context, want int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", "logs", "--follow", "-n", l.namespace, l.name) //nolint:gosec // the arguments are ours
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, err
	}
	defer func() { cancel(); _ = cmd.Wait() }() // it ends by our signal
	var begin time.Time
	lines := bufio.NewReaderSize(out, 64<<10)
	for got := 0; got < want; got++ {
		if _, err := lines.ReadSlice('\n'); err != nil {
			return 0, fmt.Errorf("after %d lines: %w", got, err)
		}
		if got == 0 {
			begin = time.Now()
		}
	}
	return float64(want) / time.Since(begin).Seconds(), nil
}

// readStream gives those of our stream, and fails if one is lost or out of order.
func (p *proa) readStream(ctx context.Context, app string, want int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	got, first := 0, 0
	var begin time.Time
	var took time.Duration
	var wrong error
	next := map[string]int{}
	_, err := p.FollowLog(ctx, url.Values{"source_id": {app}, "start_time": {"1"}}, func(batch []v3.LogEnvelope) {
		for _, e := range batch {
			source := e.Tags["source_type"]
			number, isLine := strings.CutPrefix(string(e.Log.Payload), "line ")
			if !strings.HasPrefix(source, "APP/") || !isLine {
				if strings.Contains(string(e.Log.Payload), "dropped") {
					wrong = errors.New(string(e.Log.Payload))
				}
				continue
			}
			next[source]++
			if number, _, _ = strings.Cut(number, " "); number != strconv.Itoa(next[source]) {
				wrong = fmt.Errorf("line %s of %s comes where %d was to come", number, source, next[source])
			}
			got++
		}
		if first == 0 && got > 0 { // what was there when the clock starts does not count
			first, begin = got, time.Now()
		}
		if got >= want || wrong != nil {
			took = time.Since(begin)
			cancel()
		}
	})
	if wrong != nil {
		return 0, wrong
	}
	if took == 0 {
		return 0, fmt.Errorf("the stream ended after %d lines: %w", got, err)
	}
	return float64(got-first) / took.Seconds(), nil
}

// apiConfig is where the API tells how much memory it has.
type apiConfig struct {
	Metrics string `env:"PROA_API_METRICS_URL" default:"http://127.0.0.1:9080/metrics" help:"Where the metrics of the running API are."`
}

func (c apiConfig) memory(ctx context.Context) (megabytes float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Metrics, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "\nprocess_resident_memory_bytes ")
	if !found {
		return 0, fmt.Errorf("%s does not tell process_resident_memory_bytes", c.Metrics)
	}
	value, _, _ := strings.Cut(rest, "\n")
	bytes, err := strconv.ParseFloat(value, 64)
	return bytes / 1e6, err
}

func measureLogStreams(ctx context.Context, b *bench) ([]line, error) {
	var lines []line
	err := withProa(ctx, logStreamsName, func(p *proa) error {
		var c apiConfig
		if err := env.Load(&c, os.Getenv); err != nil {
			return err
		}
		app, err := p.talker(ctx, `n=0; while sleep 0.2; do n=$((n+1)); echo "line $n"; done`, nil)
		if err != nil {
			return err
		}
		before, err := c.memory(ctx)
		if err != nil {
			return err
		}
		say("%s: %d streams for %s; the API has %.1f MB before", logStreamsName, logCount, b.streams, before)
		var opened, after float64
		err = p.withStreams(ctx, app, func(ctx context.Context) error {
			for _, step := range []struct {
				wait time.Duration
				into *float64
			}{{10 * time.Second, &opened}, {b.streams, &after}} {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(step.wait):
				}
				if *step.into, err = c.memory(ctx); err != nil {
					return err
				}
				say("%.1f MB", *step.into)
			}
			return nil
		})
		if err != nil {
			return err
		}
		pod, err := podOf(ctx, app)
		if err != nil {
			return err
		}
		bare, err := pod.memory(ctx)
		if err != nil {
			return err
		}
		lines = []line{
			{name: logStreamsName, ours: quantity{(opened - before) * 1000 / logCount, "kB/stream"}, bare: quantity{bare * 1000, "kB, kubectl"},
				notes: []string{fmt.Sprintf("the API had %.1f MB before, %.1f MB with %d streams open, %.1f MB after %s of five lines a second in each", before, opened, logCount, after, b.streams)}},
			{name: logStreamsName + ".later", ours: quantity{after, "MB"}, bare: quantity{opened, "MB, at first"}, aim: aim{of: "ratio", is: "<=", bound: 1.15}},
		}
		return nil
	})
	return lines, err
}

// withStreams follows an app many times. A stream that ends, or misses a line, ends all.
func (p *proa) withStreams(ctx context.Context, app string, use func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	var open atomic.Int32
	for range logCount {
		group.Go(func() {
			last, begun := 0, false
			closing, err := p.FollowLog(ctx, url.Values{"source_id": {app}, "recent": {"1"}, "process": {"web"}}, func(batch []v3.LogEnvelope) {
				if !begun {
					begun = true
					open.Add(1)
				}
				for _, e := range batch {
					var number int
					if _, err := fmt.Sscanf(string(e.Log.Payload), "line %d", &number); err != nil || last > 0 && number != last+1 {
						cancel(fmt.Errorf("%q comes after line %d", e.Log.Payload, last))
					}
					last = number
				}
			})
			if ctx.Err() == nil {
				cancel(fmt.Errorf("a stream ended: %s %w", closing, err))
			}
		})
	}
	if err := await(ctx, func() (bool, error) { return open.Load() == logCount, context.Cause(ctx) }); err != nil {
		return err
	}
	return use(ctx)
}

// memory is what one kubectl that follows the log has.
func (l loggedPod) memory(ctx context.Context) (megabytes float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", "logs", "--follow", "--tail=1", "-n", l.namespace, l.name) //nolint:gosec // the arguments are ours
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, err
	}
	defer func() { cancel(); _ = cmd.Wait() }() // it ends by our signal
	lines := bufio.NewScanner(out)
	for range 5 {
		if !lines.Scan() {
			return 0, errors.New("kubectl stopped following")
		}
	}
	return peakMemory(cmd.Process.Pid)
}
