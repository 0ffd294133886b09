package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// stage makes a droplet of a package, and shows what staging says meanwhile.
func (s *session) stage(ctx context.Context, a v3.App, pkg string) (string, error) {
	patience, err := s.timeout("PROA_STAGING_TIMEOUT", 15*time.Minute)
	if err != nil {
		return "", err
	}
	s.say("\nStaging app %s...", s.bold(clean(a.Name)))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	finish := s.followStaging(ctx, a)
	b, err := s.runBuild(ctx, pkg)
	finish()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", failed("PROA_STAGING_TIMEOUT=30m proa restage "+shell(a.Name), "Staging has not finished within %s.", patience)
	case ctx.Err() != nil && b.GUID != "":
		s.warn("Staging goes on without you. proa logs " + shell(a.Name) + " shows how.")
		return "", err
	case err != nil && strings.Contains(err.Error(), "Only one build can be STAGING"):
		p := problemOf(err)
		p.next = "proa logs " + shell(a.Name) + "    # until that staging is done; then push again"
		return "", p
	case err != nil:
		return "", err
	case b.State != "STAGED" || b.Droplet == nil:
		reason := "no reason was given"
		if b.Error != nil {
			reason = *b.Error
		}
		return "", failed("proa logs "+shell(a.Name)+" --recent", "Staging failed: %s.", strings.TrimSuffix(reason, "."))
	}
	return b.Droplet.GUID, nil
}

func (s *session) runBuild(ctx context.Context, pkg string) (v3.Build, error) {
	var b v3.Build
	if err := s.post(ctx, "/v3/builds", map[string]any{"package": v3.Ref{GUID: pkg}}, &b); err != nil {
		return b, err
	}
	for b.State == "STAGING" {
		if err := s.wait(ctx, s.Poll); err != nil {
			return b, err
		}
		if err := s.get(ctx, "/v3/builds/"+url.PathEscape(b.GUID), &b); err != nil {
			return b, err
		}
	}
	return b, nil
}

// lastWords is how long the end of staging's output may take to arrive.
const lastWords = 5 * time.Second

// followStaging shows the lines of staging until the returned function is called. Staging goes on when they cannot be read.
func (s *session) followStaging(ctx context.Context, a v3.App) (finish func()) {
	l, err := s.logsOf(a.GUID)
	var from int64
	if err == nil {
		l.only.source = "STG"
		from, err = l.now(ctx)
	}
	if err != nil {
		s.warn("The output of staging cannot be shown: " + problemOf(err).says)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		err := l.follow(ctx, from, s.Poll/2, done, s.printStaging)
		if err != nil && ctx.Err() == nil {
			s.warn("The rest of the output of staging cannot be shown: " + problemOf(err).says)
		}
	})
	return func() {
		close(done)
		late := time.AfterFunc(lastWords, cancel)
		reading.Wait()
		late.Stop()
		cancel()
	}
}

func (s *session) printStaging(e v3.LogEnvelope) {
	if e.Tags["source_type"] != "STG" {
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(string(e.Log.Payload), "\r\n"), "\n") {
		fmt.Fprintln(s.Out, "   "+s.logText(strings.TrimRight(line, "\r")))
	}
}
