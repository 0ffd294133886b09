package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	appsDomain = "apps.proa.localhost"
	tcpDomain  = "tcp." + appsDomain
	maxNodes   = 4 // each node knows the way to the pods of this many
)

// A Cluster is where everything is and which addresses it has. Several can stand side by side: each has a network
// 10.Net.0.0/16 and an address 127.Net.0.1 of its own, so that no port is ever contended.
//
//	10.Net.0.1        the host: API server, registry
//	10.Net.0.10+n     node n
//	10.Net.n.0/24     the pods of node n
//	10.Net.128.0/20   services
//	127.Net.0.1       etcd, controller manager, scheduler
type Cluster struct {
	Dir     string            `json:"-"` // what it keeps
	Run     string            // what its users read: kubeconfig and cluster.env
	Net     int               // the second part of all its addresses
	HTTP    string            // where the gateway listens
	HTTPS   string            //
	TCP     []int             // and for routes of tcp, at the address of HTTP
	Nodes   int               // how many it was asked to have
	Engines map[string]string // where each engine was built
	Images  map[string]string // the file of each image that nodes import
	Groups  string            // which controllers the host's control groups shared out before, in version 2

	GatewayAPI string // the module with its definitions
}

func (c *Cluster) at(part ...string) string {
	return filepath.Join(append([]string{c.Dir}, part...)...)
}

func (c *Cluster) Host() string        { return fmt.Sprintf("10.%d.0.1", c.Net) }
func (c *Cluster) Loopback() string    { return fmt.Sprintf("127.%d.0.1", c.Net) }
func (c *Cluster) Bridge() string      { return fmt.Sprintf("proa%d", c.Net) }
func (c *Cluster) NodesNet() string    { return fmt.Sprintf("10.%d.0.0/24", c.Net) }
func (c *Cluster) PodsNet() string     { return fmt.Sprintf("10.%d.0.0/17", c.Net) }
func (c *Cluster) ServicesNet() string { return fmt.Sprintf("10.%d.128.0/20", c.Net) }
func (c *Cluster) DNS() string         { return fmt.Sprintf("10.%d.128.10", c.Net) }
func (c *Cluster) Registry() string    { return c.Host() + ":5000" }
func (c *Cluster) API() string         { return "https://" + c.Host() + ":6443" }
func (c *Cluster) CA() string          { return c.at("pki", "ca.crt") }
func (c *Cluster) etcdCA() string      { return c.at("pki", "etcd-ca.crt") }
func (c *Cluster) RegistryDir() string { return c.Dir + "-registry" }
func (c *Cluster) HTTPPort() string    { return port(c.HTTP) }
func (c *Cluster) HTTPSPort() string   { return port(c.HTTPS) }

func (c *Cluster) PauseImage() string   { return imageName("pause") }
func (c *Cluster) CoreDNSImage() string { return imageName("coredns") }
func (c *Cluster) PolicyImage() string  { return imageName("policy") }

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// A Node is one machine of the cluster: namespaces of its own with a containerd, a kubelet and a kube-proxy in them.
type Node struct {
	*Cluster
	Number int
}

func (c *Cluster) node(number int) Node { return Node{c, number} }

func (n Node) Name() string    { return fmt.Sprintf("node-%d", n.Number) }
func (n Node) Dir() string     { return n.at(n.Name()) }
func (n Node) Address() string { return fmt.Sprintf("10.%d.0.%d", n.Net, 10+n.Number) }
func (n Node) PodNet() string  { return fmt.Sprintf("10.%d.%d.0/24", n.Net, n.Number) }
func (n Node) Cgroup() string  { return fmt.Sprintf("/%s/%s", n.Bridge(), n.Name()) }
func (n Node) Socket() string  { return "/run/containerd.sock" } // of the node's own /run
func (n Node) Veth() string    { return fmt.Sprintf("%sn%d", n.Bridge(), n.Number) }

// place answers where a cluster of this checkout keeps what it keeps: beside the state of the other engines.
func place(root string) (dir, run string) {
	state := os.Getenv("PROA_STATE")
	if state == "" {
		state = fmt.Sprintf("/var/tmp/proa-%x", sha256.Sum256([]byte(root)))[:len("/var/tmp/proa-")+8]
	}
	run = os.Getenv("PROA_RUN")
	if run == "" {
		run = filepath.Join(root, ".run")
	}
	return strings.TrimRight(state, "/") + "-cluster", run
}

// load reads back the cluster of a directory; nil where none was brought up.
func load(dir string) (*Cluster, error) {
	file := filepath.Join(dir, "cluster.json")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w). End what runs from %s, delete that directory, then run make cluster-up", file, err, dir)
	}
	c.Dir = dir
	return c, nil
}

// save writes the file whole or not at all.
func (c *Cluster) save() error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.at("cluster.json.new"), data, 0o600); err != nil {
		return err
	}
	return os.Rename(c.at("cluster.json.new"), c.at("cluster.json"))
}

// makeOurs makes a directory that is ours alone. Others may write where it lies, and what lies in it is run as root: so
// one that somebody else made, or could change, is refused.
func makeOurs(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // as /var/tmp would be
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a directory of yours alone. Find out who made it and delete it, or choose another place with PROA_STATE", dir)
	}
	return nil
}
