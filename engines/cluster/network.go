package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// claim takes the first network that nobody uses, by making its bridge: two clusters that start at once cannot both
// have it.
func (c *Cluster) claim(ctx context.Context) error {
	routes, err := output(ctx, nil, "ip", "-4", "route", "show", "table", "all")
	if err != nil {
		return err
	}
	for c.Net = 87; c.Net < 127; c.Net++ {
		if regexp.MustCompile(fmt.Sprintf(`\b10\.%d\.`, c.Net)).MatchString(routes) {
			continue
		}
		if _, err = output(ctx, nil, "ip", "link", "add", c.Bridge(), "type", "bridge"); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no network of 10.87.0.0/16 to 10.126.0.0/16 is free: %w", err)
}

// lay gives the host its address on the bridge and the way to the pods of each node.
func (c *Cluster) lay(ctx context.Context) error {
	commands := [][]string{
		{"ip", "address", "add", c.Host() + "/24", "dev", c.Bridge()},
		{"ip", "link", "set", c.Bridge(), "up"},
	}
	for number := 1; number <= maxNodes; number++ {
		commands = append(commands, []string{"ip", "route", "add", c.node(number).PodNet(), "via", c.node(number).Address()})
	}
	for _, command := range commands {
		if err := run(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// unlay removes the bridge, and with it addresses and routes.
func (c *Cluster) unlay(ctx context.Context) error {
	if _, err := os.Stat("/sys/class/net/" + c.Bridge()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return run(ctx, "ip", "link", "delete", c.Bridge())
}

// The kernel settings of the host that a kubelet changes on its own. They are put back.
var sysctls = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

func readSysctls() map[string]string {
	values := map[string]string{}
	for _, name := range sysctls {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			values[name] = strings.TrimSpace(string(value))
		}
	}
	return values
}

func writeSysctls(values map[string]string) error {
	for name, value := range values {
		if now := readSysctls()[name]; now == value {
			continue
		}
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
			return fmt.Errorf("put %s back to %s: %w", name, value, err)
		}
	}
	return nil
}

// removeEmpty removes a control group, which stays busy for a moment after its last process was killed.
func removeEmpty(group string) error {
	end := time.Now().Add(5 * time.Second)
	for {
		err := syscall.Rmdir(group)
		if err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("remove control group %s: %w", group, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
