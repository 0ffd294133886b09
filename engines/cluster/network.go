package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Clusters have networks from the first to before the last.
const firstNet, lastNet = 87, 127

// claim takes the first network that nobody uses, by making its bridge: two clusters that start at once cannot both
// have it.
func (c *Cluster) claim(ctx context.Context) error {
	routes, err := output(ctx, nil, "ip", "-4", "route", "show", "table", "all")
	if err != nil {
		return err
	}
	links, err := output(ctx, nil, "ip", "-o", "link")
	if err != nil {
		return err
	}
	for c.Net = firstNet; c.Net < lastNet; c.Net++ {
		if regexp.MustCompile(fmt.Sprintf(`\b10\.%d\.`, c.Net)).MatchString(routes) || strings.Contains(links, " "+c.Bridge()) {
			continue
		}
		if _, err = output(ctx, nil, "ip", "link", "add", c.Bridge(), "type", "bridge"); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no network of 10.%d.0.0/16 to 10.%d.0.0/16 is free. Take a cluster down that you do not need (%w)", firstNet, lastNet-1, err)
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
func (c *Cluster) unlay(ctx context.Context) error { return unplug(ctx, c.Bridge()) }

// unplug removes a link, if it is there.
func unplug(ctx context.Context, link string) error {
	if !linked(link) {
		return nil
	}
	if err := run(ctx, "ip", "link", "delete", link); err != nil && linked(link) { // it may have gone by itself meanwhile
		return err
	}
	return nil
}

func linked(link string) bool {
	_, err := os.Stat("/sys/class/net/" + link)
	return err == nil
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
