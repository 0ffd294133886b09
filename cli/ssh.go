package cli

import (
	"context"
	"fmt"
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
	surplus:  asCommand,
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
	return o.use(ctx, s, shell(a.Name), client, forwards)
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
func (o sshOptions) use(ctx context.Context, s *session, app string, client *ssh.Client, forwards []forward) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &remote{session: s, client: client, app: app, command: strings.Join(*o.commands, " ")}
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
		if len(forwards) == 0 {
			fmt.Fprintln(s.Err, "-N without -L forwards nothing.")
		}
		fmt.Fprintln(s.Err, s.dim("Ctrl-C ends it."))
		return r.linger(ctx)
	}
	return r.run(ctx)
}

// instanceFor finds the process of a type whose instance runs, or is about to: one that does not get well is to be looked at.
func (s *session) instanceFor(ctx context.Context, a v3.App, kind string, index int) (process string, err error) {
	if a.State != "STARTED" {
		return "", failed("proa start "+shell(a.Name), "App %s is stopped.", a.Name)
	}
	all, err := s.processesOf(ctx, a)
	if err != nil {
		return "", err
	}
	if all, err = ofType(all, a, kind, "proa ssh"); err != nil {
		return "", err
	}
	stats, err := s.stats(ctx, all[0].GUID)
	if err != nil {
		return "", err
	}
	for _, i := range stats {
		switch {
		case i.Index != index:
		case i.State == "RUNNING", i.State == "STARTING":
			return all[0].GUID, nil
		case i.State == "CRASHED":
			return "", failed("proa logs "+shell(a.Name)+" --recent", "Instance %d of %s is CRASHED.", index, kind)
		default:
			return "", failed("proa app "+shell(a.Name)+"    # shows how it is", "Instance %d of %s is %s.", index, kind, i.State)
		}
	}
	return "", missing("proa app "+shell(a.Name)+"    # shows those there are", "There is no instance %d of %s: it has %s.", index, kind, plural(len(stats), "instance"))
}

// asCommand says where a command belongs that was written as arguments.
func asCommand(args, rest []string) *problem {
	p := usage("A command goes in -c.")
	p.next = "proa ssh " + shell(args[0]) + " -c " + shell(strings.Join(rest, " "))
	return p
}
