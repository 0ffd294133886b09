package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A pki is a certificate authority that lives as long as one cluster-up: its key is never written down.
type pki struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// A subject is whom a certificate is for: a client, who is a user with groups to Kubernetes, or a server at some addresses.
// It is one of them: what a server shows must not open other doors. Only members of etcd are both to each other.
type subject struct {
	user   string
	groups []string
	hosts  []string
	both   bool
}

// newPKI makes an authority and writes its certificate to a file.
func newPKI(file string) (*pki, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	p := &pki{}
	template := certificate(subject{user: "Proa development cluster"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	p.cert, p.key, p.pem = template, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return p, os.WriteFile(file, p.pem, 0o644) //nolint:gosec // a certificate is public
}

func certificate(s subject) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand does not fail
	c := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.user, Organization: s.groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, host := range s.hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	if len(s.hosts) > 0 {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if s.both {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return c
}

// issue makes a key and a certificate for it.
func (p *pki) issue(s subject) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate(s), p.cert, k.Public(), p.key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// write issues into base.crt and base.key.
func (p *pki) write(base string, s subject) error {
	cert, key, err := p.issue(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".crt", cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(base+".key", key, 0o600)
}

// kubeconfig issues a client certificate, and writes it with everything else that a client needs to one file.
func (p *pki) kubeconfig(file, server string, s subject) error {
	cert, key, err := p.issue(s)
	if err != nil {
		return err
	}
	b64 := base64.StdEncoding.EncodeToString
	return os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
  - { name: proa, cluster: { server: %q, certificate-authority-data: %s } }
users:
  - { name: proa, user: { client-certificate-data: %s, client-key-data: %s } }
contexts:
  - { name: proa, context: { cluster: proa, user: proa } }
current-context: proa
`, server, b64(p.pem), b64(cert), b64(key)), 0o600)
}

// issueAll writes what the control plane needs.
func (c *Cluster) issueAll() (*pki, error) {
	p, err := newPKI(c.CA())
	if err != nil {
		return nil, err
	}
	store, err := newPKI(c.etcdCA()) // of its own: whoever reads etcd reads everything
	if err != nil {
		return nil, err
	}
	for name, s := range map[string]subject{"etcd": {user: "etcd", hosts: []string{c.Loopback()}, both: true}, "apiserver-etcd": {user: "kube-apiserver"}} {
		if err := store.write(c.at("pki", name), s); err != nil {
			return nil, err
		}
	}
	for name, s := range map[string]subject{
		"apiserver": {user: "kube-apiserver", hosts: []string{
			c.Host(), fmt.Sprintf("10.%d.128.1", c.Net), "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		"apiserver-kubelet": {user: "kube-apiserver", groups: []string{"system:masters"}},
		"service-accounts":  {user: "service-accounts"},
		"controllers":       {user: "controllers-server", hosts: []string{c.Loopback()}},
		"scheduler":         {user: "scheduler-server", hosts: []string{c.Loopback()}},
		"registry":          {user: "registry", hosts: []string{c.Host()}},
		"gateway":           {user: "gateway-server", hosts: []string{appsDomain, "*." + appsDomain}},
	} {
		if err := p.write(c.at("pki", name), s); err != nil {
			return nil, err
		}
	}
	for file, s := range map[string]subject{
		c.at("controllers.kubeconfig"): {user: "system:kube-controller-manager"},
		c.at("scheduler.kubeconfig"):   {user: "system:kube-scheduler"},
		c.at("gateway.kubeconfig"):     {user: "gateway"},
		c.Run + "/kubeconfig":          {user: "admin", groups: []string{"system:masters"}},
	} {
		if err := p.kubeconfig(file, c.API(), s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// issueNode writes what one node needs.
func (p *pki) issueNode(n Node) error {
	if err := p.write(n.Dir()+"/kubelet", subject{user: n.Name(), hosts: []string{n.Address(), n.Name()}}); err != nil {
		return err
	}
	if err := p.kubeconfig(n.Dir()+"/kubelet.kubeconfig", n.API(), subject{user: "system:node:" + n.Name(), groups: []string{"system:nodes"}}); err != nil {
		return err
	}
	return p.kubeconfig(n.Dir()+"/proxy.kubeconfig", n.API(), subject{user: "system:kube-proxy"})
}
