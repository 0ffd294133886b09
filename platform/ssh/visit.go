package ssh

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/time/rate"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// A visit is one connection of somebody, to one instance.
type visit struct {
	server  *Server
	conn    *xssh.ServerConn
	from    netip.Addr
	place   *place
	log     *slog.Logger
	who     platform.Who
	process string
	index   int

	mu                 sync.Mutex
	sessions, forwards int
	noted              map[note]bool
	open               map[xssh.Channel]bool // sessions that can be told something
}

// Channels of a connection that may be opened at once, and in a second: each asks the database and the cluster.
const (
	channelBurst = 50
	channelRate  = 10
)

var keepalives = map[string]bool{"keepalive@cloudfoundry.org": true, "keepalive@openssh.com": true}

// serve answers everything that comes over the connection, until that ends.
func (v *visit) serve(ctx context.Context, channels <-chan xssh.NewChannel, requests <-chan *xssh.Request) {
	begun := v.server.Now()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
		v.log.Info("logout", "user", v.who.Name, "process", v.process, "index", v.index, "seconds", v.server.Now().Sub(begun).Seconds())
	}()
	all.Go(func() {
		for r := range requests {
			if r.WantReply {
				_ = r.Reply(keepalives[r.Type], nil) // no listening here, and nothing else either
			}
		}
	})
	all.Go(func() { v.recheck(ctx) })
	pace := rate.NewLimiter(channelRate, channelBurst)
	for c := range channels {
		if pace.Wait(ctx) != nil {
			return
		}
		count, most, handle := &v.sessions, v.server.Limits.Sessions, v.session
		switch c.ChannelType() {
		case "session":
		case "direct-tcpip":
			count, most, handle = &v.forwards, v.server.Limits.Forwards, v.forward
		default:
			_ = c.Reject(xssh.UnknownChannelType, "This is not offered here.")
			continue
		}
		if err := v.take(count, most); err != nil {
			_ = c.Reject(xssh.ResourceShortage, sentence(err))
			continue
		}
		all.Go(func() {
			defer v.server.recover()
			defer v.give(count)
			handle(ctx, c)
		})
	}
}

func (v *visit) take(count *int, most int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if *count >= most {
		return errChannels
	}
	if err := v.server.gate.open(v.place); err != nil {
		return err
	}
	*count++
	return nil
}

func (v *visit) give(count *int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*count--
	v.server.gate.shut(v.place)
}

// enter asks anew for each channel: a role may be gone since the login, or the instance elsewhere. Nothing is done that is not
// written down first.
func (v *visit) enter(ctx context.Context, kind, target string) (store.Shell, *kube.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	shell, refused := v.server.Store.FindShell(ctx, v.who, v.process, v.index)
	cluster := v.server.Clusters[shell.Cluster]
	if refused == nil && cluster == nil {
		v.log.Error("the cluster of an app is not reached from here", "cluster", shell.Cluster, "app", shell.App.GUID)
		return shell, nil, fault.Unavailable("The app runs on a cluster that this ssh server does not reach. Tell your operator.")
	}
	entry := store.Entry{Index: v.index, Kind: kind, Target: target, Refused: refused != nil}
	if n := (note{v.process, entry}); shell.App.GUID != "" && v.note(n) {
		if err := v.server.Store.RecordShell(ctx, v.who, shell, entry); err != nil {
			v.forget(n)
			return shell, nil, err
		}
	}
	return shell, cluster, refused
}

// recheck ends the visit of somebody who has lost the right to it. While nobody can say, nobody has.
func (v *visit) recheck(ctx context.Context) {
	again := time.NewTicker(v.server.Limits.Recheck)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		within, cancel := context.WithTimeout(ctx, storeTime)
		err := v.server.Store.MayShell(within, v.who, v.process)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case fault.Is(err, fault.KindNotFound), fault.Is(err, fault.KindForbidden):
			v.log.Info("visit ended", "user", v.who.Name, "process", v.process, "error", err)
			go v.end(sentence(err))
			return
		case err != nil:
			v.log.Warn("a visit cannot be checked", "error", err)
		}
	}
}

// end says why to every session, and hangs up.
func (v *visit) end(why string) {
	v.mu.Lock()
	var notices sync.WaitGroup
	for channel := range v.open {
		notices.Go(func() { _, _ = channel.Stderr().Write([]byte("\r\n" + why + "\r\n")) }) // it may be closed by now
	}
	v.mu.Unlock()
	said := make(chan struct{})
	go func() {
		notices.Wait()
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(noticeTime): // who does not read is not waited for
	}
	_ = v.conn.Close()
}

// hangup ends what runs in the instance without us. It outlives the connection, and Serve waits for it.
func (v *visit) hangup(ctx context.Context, cluster *kube.Cluster, shell store.Shell, id string) {
	v.server.endings.Go(func() {
		v.inside(ctx, cluster, shell, "hangup", id)
	})
}

// inside has launch do something in the instance, and does not mind if there is nothing left to do.
func (v *visit) inside(ctx context.Context, cluster *kube.Cluster, shell store.Shell, args ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingTime)
	defer cancel()
	status, err := cluster.Exec(ctx, shell.Namespace, shell.Pod, kube.Exec{Command: append([]string{kube.Launcher}, args...)})
	v.log.Debug("told launch", "args", args, "status", status, "error", err)
}
