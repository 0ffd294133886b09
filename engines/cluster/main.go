// Command cluster runs a real Kubernetes cluster on this machine for development and CI, without Docker: etcd, the
// control plane, a registry and a gateway as processes of the host, and nodes that are namespaces of their own with a
// containerd, a kubelet and a kube-proxy in them. It needs root, and the engines that engines/build.sh builds.
//
//	cluster up [NODES]        bring it up, or add what is missing; again is fine
//	cluster down              take it down; nothing but the registry's content stays
//	cluster clean             take it down and delete that too
//	cluster status            say what runs; exits 3 when something does not
//	cluster node stop N       turn node N off, as a power cut would
//	cluster node start N      turn it on again
//	cluster traces            list what on this machine a cluster may leave behind
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

var errDown = errors.New("the cluster is not up. Bring it up: make cluster-up")

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func command(ctx context.Context, args []string) (int, error) {
	if len(args) == 3 && args[0] == "init" {
		return 1, initAt(ctx, args[1], args[2])
	}
	root, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	if _, err := os.Stat(filepath.Join(root, "engines", "cluster")); err != nil {
		return 1, errors.New("run this from the root of the checkout, or use make cluster-up")
	}
	if os.Geteuid() != 0 {
		return 1, errors.New("a cluster makes namespaces, mounts and a bridge, so it needs root. Run this again as root")
	}
	dir, run := place(root)
	if len(args) == 1 && args[0] == "traces" {
		return exit(ctx, traces(ctx, dir))
	}
	if err := makeOurs(dir); err != nil {
		return 1, err
	}
	defer func() { _ = os.Remove(dir) }() // does nothing unless it is empty
	if len(args) == 1 && args[0] == "status" {
		return status(ctx, dir)
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return exit(ctx, err)
	}
	defer unlock()
	switch {
	case len(args) == 1 && args[0] == "up":
		err = up(ctx, root, dir, run, 1)
	case len(args) == 2 && args[0] == "up":
		var nodes int
		if nodes, err = number(args[1]); err == nil {
			err = up(ctx, root, dir, run, nodes)
		}
	case len(args) == 1 && args[0] == "down":
		err = down(ctx, dir)
	case len(args) == 1 && args[0] == "clean":
		if err = down(ctx, dir); err == nil {
			err = os.RemoveAll((&Cluster{Dir: dir}).RegistryDir())
		}
	case len(args) == 3 && args[0] == "node":
		err = node(ctx, dir, args[1], args[2])
	default:
		return 2, errors.New("say what to do: up [NODES], down, clean, status, node stop N, node start N or traces; with make: cluster-up NODES=2, node-stop NODE=2 and so on")
	}
	return exit(ctx, err)
}

// exit is the code for an error, which an interrupted command explains.
func exit(ctx context.Context, err error) (int, error) {
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return 130, errors.New("Interrupted. What was started runs on: make cluster-up finishes it, make cluster-down clears it")
	}
	return 1, err
}

func number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxNodes {
		return 0, fmt.Errorf("a cluster can have up to %d nodes, so give a number from 1 to %d instead of %q", maxNodes, maxNodes, text)
	}
	return n, nil
}

func initAt(ctx context.Context, dir, text string) error {
	n, err := number(text)
	if err != nil {
		return err
	}
	c, err := load(dir)
	if err != nil || c == nil {
		return errors.Join(errDown, err)
	}
	return initNode(ctx, c.node(n))
}

// lock keeps two commands for the same cluster apart. It is on the directory itself, so that it goes when that goes.
func lock(ctx context.Context, dir string) (func(), error) {
	for try := 0; ; try++ {
		file, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && sameFile(file, dir) {
			return func() { _ = file.Close() }, nil
		}
		_ = file.Close()
		if err == nil { // the one before us has taken the directory away
			if err := makeOurs(dir); err != nil {
				return nil, err
			}
			continue
		}
		if try == 0 {
			say("Another command works on this cluster; waiting for it.")
		}
		if err := pauseFor(ctx); err != nil {
			return nil, err
		}
	}
}

func sameFile(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(held, there)
}

func node(ctx context.Context, dir, what, text string) error {
	number, err := number(text)
	if err != nil {
		return err
	}
	c, err := load(dir)
	if err != nil || c == nil {
		return errors.Join(errDown, err)
	}
	if number > c.Nodes {
		return fmt.Errorf("the cluster has %d node(s). Add more: make cluster-up NODES=%d", c.Nodes, number)
	}
	n := c.node(number)
	switch what {
	case "stop":
		if err := n.halt(ctx); err != nil {
			return err
		}
		say("%s is off.", n.Name())
		return nil
	case "start":
		ctx, cancel := context.WithTimeout(ctx, upTimeout)
		defer cancel()
		since := time.Now()
		if err := n.start(ctx); err != nil {
			return err
		}
		if err := n.ready(ctx, since); err != nil {
			return err
		}
		say("%s is on.", n.Name())
		return nil
	default:
		return errors.New("say whether to stop or start the node: make node-stop NODE=2, make node-start NODE=2")
	}
}
