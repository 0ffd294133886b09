package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	v3 "github.com/proa-dev/proa/platform/v3"
)

type sshOptions struct {
	index                   **int
	process                 *string
	commands, forwards      *[]string
	noShell, pty, noPTY     *bool
	forcePTY, skipHostCheck *bool
}

var sshCommand = command{
	name: "ssh", args: "APP", group: "Shell", short: "Open a shell in an instance of an app, or run a command there",
	long: "The shell runs beside the app, in its container, with the app's environment. The exit code is that of the remote command. Without a " +
		"command and at a terminal there is a terminal on the other side too; -t wants one for a command, -T wants none. Ctrl-C reaches the " +
		"remote command.",
	examples: []string{"proa ssh shop", "proa ssh shop -i 1 -c 'ps aux'", "proa ssh shop -N -L 5005:localhost:5005    # a debugger's port, until Ctrl-C"},
	needs:    aSpace,
	setup: func(f *flags) action {
		o := sshOptions{
			index: f.number("app-instance-index,i", "INDEX", "which instance (0)"), process: f.text("process", "TYPE", "which process (web)"),
			commands: f.list("command,c", "COMMAND", "run this instead of a shell; may be repeated, and becomes one line"),
			forwards: f.list("L", "[ADDR:]PORT:HOST:PORT", "carry connections to PORT here to HOST:PORT as the app sees it; may be repeated"),
			noShell:  f.on("skip-remote-execution,N", "no shell and no command: only forward, until Ctrl-C"),
			pty:      f.on("request-pseudo-tty,t", "a terminal on the other side"), noPTY: f.on("disable-pseudo-tty,T", "no terminal on the other side"),
			forcePTY:      f.on("force-pseudo-tty", "a terminal on the other side, even if there is none here"),
			skipHostCheck: f.on("skip-host-validation,k", "do not check who answers (for trying things out)"),
		}
		return o.run
	},
}

func (o sshOptions) run(ctx context.Context, s *session, args []string) error {
	forwards, err := o.check()
	if err != nil {
		return err
	}
	door, err := s.sshDoor(ctx, *o.skipHostCheck)
	if err != nil {
		return err
	}
	a, err := s.findApp(ctx, args[0])
	if err != nil {
		return err
	}
	index := as(*o.index)
	process, err := s.instanceFor(ctx, a, firstOf(*o.process, "web"), index)
	if err != nil {
		return err
	}
	client, err := s.dialSSH(ctx, door, a, fmt.Sprintf("cf:%s/%d", process, index))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return o.use(ctx, s, client, forwards)
}

func (o sshOptions) check() ([]forward, error) {
	switch {
	case *o.noShell && len(*o.commands) > 0:
		return nil, usage("-N runs nothing, and -c names what to run: choose one.")
	case *o.noPTY && (*o.pty || *o.forcePTY):
		return nil, usage("-T wants no terminal, and -t or --force-pseudo-tty wants one: choose one.")
	}
	var all []forward
	for _, text := range *o.forwards {
		f, err := parseForward(text)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// use forwards, and runs a shell or a command until it ends.
func (o sshOptions) use(ctx context.Context, s *session, client *ssh.Client, forwards []forward) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &remote{session: s, client: client, command: strings.Join(*o.commands, " ")}
	switch {
	case *o.noShell || *o.noPTY:
	case *o.forcePTY:
		r.pty = true
	case *o.pty && !s.InTTY:
		s.warn("There is no terminal here, so there is none on the other side; --force-pseudo-tty wants one all the same.")
	case *o.pty || s.InTTY && r.command == "":
		r.pty = true
	}
	go r.keepAlive(within)
	if err := (&tunnel{client: client, say: tellInRaw(s.Err, r.pty && s.InTTY)}).open(within, forwards); err != nil {
		return err
	}
	if *o.noShell {
		return r.linger(ctx)
	}
	return r.run(ctx)
}

// instanceFor finds the process of a type whose instance runs.
func (s *session) instanceFor(ctx context.Context, a v3.App, kind string, index int) (process string, err error) {
	if a.State != "STARTED" {
		return "", failed("proa start "+shell(a.Name), "App %s is stopped.", a.Name)
	}
	all, err := v3.All[v3.Process](ctx, s.api, "/v3/apps/"+url.PathEscape(a.GUID)+"/processes")
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(all, func(p v3.Process) bool { return p.Type == kind })
	if at < 0 {
		var types []string
		for _, p := range all {
			types = append(types, p.Type)
		}
		return "", missing("proa ssh "+shell(a.Name)+" --process TYPE", "App %s has no process %s. It has: %s.", a.Name, kind, firstOf(strings.Join(types, ", "), "none"))
	}
	stats, err := s.stats(ctx, all[at].GUID)
	if err != nil {
		return "", err
	}
	for _, i := range stats {
		switch {
		case i.Index != index:
		case i.State == "RUNNING":
			return all[at].GUID, nil
		case i.State == "CRASHED":
			return "", failed("proa logs "+shell(a.Name)+" --recent", "Instance %d of %s is CRASHED.", index, kind)
		default:
			return "", failed("proa app "+shell(a.Name)+"    # shows how it is", "Instance %d of %s is %s.", index, kind, i.State)
		}
	}
	return "", missing("proa app "+shell(a.Name)+"    # shows those there are", "There is no instance %d of %s: it has %s.", index, kind, plural(len(stats), "instance"))
}
