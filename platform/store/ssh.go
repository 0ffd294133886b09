package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// Shell is where somebody may log in: an instance that runs.
type Shell struct {
	Cluster   string
	Namespace string
	Pod       string
	App       platform.App
	Process   platform.Process
}

// An Entry is what somebody did with a Shell, or wanted to.
type Entry struct {
	Index   int
	Kind    string
	Target  string // of a tunnel
	Refused bool
}

// FindShell finds the instance that somebody wants to log in to. With a refusal comes as much of it as they can see.
func (s *Store) FindShell(ctx context.Context, who platform.Who, process string, index int) (Shell, error) {
	var refused error
	shell, err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) (Shell, error) {
		var shell Shell
		shell, refused = findShell(ctx, tx, who, process, index)
		if _, known := errors.AsType[*fault.Error](refused); refused != nil && !known {
			return Shell{}, refused
		}
		return shell, nil
	})
	if err != nil {
		return Shell{}, err
	}
	return shell, refused
}

// RecordShell writes down in the app's audit trail that somebody was let into an instance, or refused.
func (s *Store) RecordShell(ctx context.Context, who platform.Who, shell Shell, e Entry) error {
	kind, data := "ssh-authorized", map[string]any{"index": e.Index, "process_type": shell.Process.Type, "kind": e.Kind}
	if e.Refused {
		kind = "ssh-unauthorized"
	}
	if e.Target != "" {
		data["target"] = e.Target
	}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error { return s.recordApp(ctx, tx, who, kind, shell.App, data) })
}

// MayShell refuses somebody who may not be logged in to a process any more.
func (s *Store) MayShell(ctx context.Context, who platform.Who, process string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := mayShell(ctx, tx, who, process)
		return err
	})
}

// findShell answers with a refusal and as much as the person can see.
func findShell(ctx context.Context, tx pgx.Tx, who platform.Who, process string, index int) (Shell, error) {
	shell, err := mayShell(ctx, tx, who, process)
	switch {
	case err != nil:
		return shell, err
	case shell.App.State != platform.Started:
		return shell, fault.Unprocessable("App %s is stopped. Start it with: proa start %s", shell.App.Name, shell.App.Name)
	case index < 0 || index >= shell.Process.Instances:
		return shell, fault.Unprocessable("Process %s of app %s has no instance %d. See: proa app %s", shell.Process.Type, shell.App.Name, index, shell.App.Name)
	}
	state := platform.InstanceStarting
	err = tx.QueryRow(ctx, `select i.state, i.pod from instances i join processes p on p.guid = i.process_guid and p.release_guid = i.release_guid
		where i.process_guid = $1 and i.index = $2`, process, index).Scan(&state, &shell.Pod)
	if err != nil && !pg.NoRows(err) {
		return Shell{}, fmt.Errorf("find instance: %w", err)
	}
	if state != platform.InstanceRunning && state != platform.InstanceStarting || shell.Pod == "" { // one that never becomes well is to be looked at
		return shell, fault.Unprocessable("Instance %d of %s is not running. See: proa app %s", index, shell.Process.Type, shell.App.Name)
	}
	return shell, nil
}

// mayShell decides without a look at the instances.
func mayShell(ctx context.Context, tx pgx.Tx, who platform.Who, process string) (Shell, error) {
	p, err := processes.find(ctx, tx, who, platform.Read, process)
	if err != nil {
		return Shell{}, err
	}
	app, err := apps.read(ctx, tx, p.AppGUID)
	if err != nil {
		return Shell{}, err
	}
	space, err := spaces.read(ctx, tx, app.SpaceGUID)
	if err != nil {
		return Shell{}, err
	}
	shell := Shell{Cluster: space.Cluster, Namespace: space.Namespace(), App: app, Process: p}
	_, err = apps.find(ctx, tx, who, platform.Develop, app.GUID)
	switch {
	case errors.Is(err, platform.ErrForbidden):
		return shell, fault.Forbidden("You may not log in to app %s. Ask a space manager to make you a space developer.", app.Name)
	case err != nil:
		return shell, err
	case !space.AllowSSH:
		return shell, fault.Forbidden("ssh is disabled in space %s. Let a space manager run: proa allow-space-ssh %s", space.Name, space.Name)
	case !app.SSH:
		return shell, fault.Forbidden("ssh is disabled for app %s. Let a space developer run: proa enable-ssh %s", app.Name, app.Name)
	}
	return shell, nil
}
