// Package kube owns Kubernetes: it turns releases, stagings and spaces into objects, gives those to a cluster and tells
// what the cluster makes of them. Functions that make objects are pure; Cluster is the only one that talks.
//
// What was made is found again by labels, and only what carries the labels of this installation is touched.
package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of everything that we make. Values are guids, except for the role, the installation and the process type.
const (
	LabelInstallation = "proa.dev/installation"
	LabelRole         = "proa.dev/role"
	LabelSpace        = "proa.dev/space"
	LabelApp          = "proa.dev/app"
	LabelProcess      = "proa.dev/process"
	LabelRelease      = "proa.dev/release"
	LabelType         = "proa.dev/type"
	LabelBuild        = "proa.dev/build"
	LabelRoute        = "proa.dev/route"
)

// Annotations hold what does not fit into a label.
const (
	AnnotationAppName = "proa.dev/app-name"
	AnnotationType    = "proa.dev/process-type"
	AnnotationVersion = "proa.dev/version"
)

// Roles of pods, by which network policies tell them apart, and of what stands beside them.
const (
	roleApp     = "app"
	roleStaging = "staging"
	roleSpace   = "space"
	roleRoute   = "route"
)

// Settings are what the objects of a cluster have in common.
type Settings struct {
	Installation         string // tells two installations on one cluster apart
	Registry             Registry
	Network              Network
	Gateway              Gateway // that serves routes
	TCPGateway           Gateway // that has the ports of tcp; none: the same
	MemoryRequestPercent int     // of the limit; less than 100 places more on a node than it could hold if all used theirs
	DiskRequestPercent   int
}

// Registry is where images are. Kubelets pull with one account, and stagings read and write with the other.
type Registry struct {
	Server string // host and port
	Pull   Account
	Push   Account
	CA     []byte // PEM; none where its certificate is from an authority that everyone knows
}

// Account of a registry.
type Account struct{ Username, Password string }

// Defaults fills in what is empty.
func (s Settings) Defaults() Settings {
	if s.Installation == "" {
		s.Installation = "proa"
	}
	if s.MemoryRequestPercent == 0 {
		s.MemoryRequestPercent = 50
	}
	if s.DiskRequestPercent == 0 {
		s.DiskRequestPercent = 10
	}
	if s.Gateway == (Gateway{}) {
		s.Gateway = Gateway{Namespace: "proa-gateway", Name: "apps"}
	}
	if s.TCPGateway == (Gateway{}) {
		s.TCPGateway = s.Gateway
	}
	s.Network = s.Network.defaults()
	return s
}

// labels are those of everything, and more.
func (s Settings) labels(role string, more map[string]string) map[string]string {
	all := map[string]string{"app.kubernetes.io/managed-by": "proa", LabelInstallation: s.Installation, LabelRole: role}
	for key, value := range more {
		all[key] = labelValue(value)
	}
	return all
}

func meta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

// maxName is what is left for the name of a StatefulSet: its pods carry it in a label of 63 characters, together with
// a dash and a hash of ten.
const maxName = 52

var (
	fitName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	fitLabel = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// objectName names an object after a guid. What is no guid of ours is replaced by its hash, so that names stay valid
// and different.
func objectName(prefix, guid string) string {
	name := prefix + guid
	if len(name) > maxName || !fitName.MatchString(name) {
		return prefix + hash(guid)
	}
	return name
}

// SetName is the name of a release's StatefulSet and of its Secret.
func SetName(release string) string { return objectName("r-", release) }

// filesName is the name of the Secret with a release's files: they are apart, because everything in the other becomes a variable.
func filesName(release string) string { return SetName(release) + filesSuffix }

const filesSuffix = "-files"

// StagingName is the name of a staging's pod and of its Secret.
func StagingName(build string) string { return objectName("b-", build) }

func labelValue(text string) string {
	if text == "" || fitLabel.MatchString(text) {
		return text
	}
	return hash(text)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
