package kube

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/proa-dev/proa/platform"
)

// confined is the least a container can have.
func confined() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// podSecurity runs a pod as UID:GID, or as the user of its image, whom the kubelet refuses if it is root.
func podSecurity(user string) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	uid, gid, _ := strings.Cut(user, ":")
	if n, err := strconv.ParseInt(uid, 10, 64); err == nil {
		security.RunAsUser = &n
	}
	if n, err := strconv.ParseInt(gid, 10, 64); err == nil {
		security.RunAsGroup = &n
	}
	return security
}

// resources are Cloud Foundry's: memory and disk are limits, and the processor is shared in proportion to memory, a
// tenth of one for each GB. How much of memory and disk is set aside on the node is the operator's choice.
func (s Settings) resources(memoryMB, diskMB int) corev1.ResourceRequirements {
	mega := func(mb int) resource.Quantity { return *resource.NewQuantity(int64(max(mb, 1))<<20, resource.BinarySI) }
	return corev1.ResourceRequirements{
		Limits: corev1.ResourceList{
			corev1.ResourceMemory:           mega(memoryMB),
			corev1.ResourceEphemeralStorage: mega(diskMB),
		},
		Requests: corev1.ResourceList{
			corev1.ResourceMemory:           mega(memoryMB * s.MemoryRequestPercent / 100),
			corev1.ResourceEphemeralStorage: mega(diskMB * s.DiskRequestPercent / 100),
			corev1.ResourceCPU:              *resource.NewMilliQuantity(int64(platform.MilliCPU(memoryMB)), resource.DecimalSI),
		},
	}
}

// What holds where a probe says nothing else, and how often an instance is asked until it is well.
const (
	DefaultTimeout    = time.Minute
	defaultInvocation = time.Second
	defaultInterval   = 30 * time.Second
	startupPeriod     = 1
)

// setProbes asks until the health check passes for the first time, and from then on three times within its interval: a
// failure is noticed as soon as in Cloud Foundry, but one late answer ends nobody.
func setProbes(c *corev1.Container, r platform.Release) {
	if handler, asks := probe(r.Health, r.Ports); asks {
		startup, alive := handler, handler
		startup.PeriodSeconds = startupPeriod
		startup.FailureThreshold = max(1, (seconds(r.Health.Timeout, DefaultTimeout)+startupPeriod-1)/startupPeriod)
		spread(&alive, r.Health)
		c.StartupProbe, c.LivenessProbe = &startup, &alive
	}
	if handler, asks := probe(r.Readiness, r.Ports); asks {
		spread(&handler, r.Readiness)
		c.ReadinessProbe = &handler
	}
}

func spread(p *corev1.Probe, asked platform.Probe) {
	p.PeriodSeconds, p.FailureThreshold = max(1, seconds(asked.Interval, defaultInterval)/3), 3
}

// probe asks nothing of a process that merely has to be there.
func probe(p platform.Probe, ports []int) (corev1.Probe, bool) {
	made := corev1.Probe{TimeoutSeconds: seconds(p.InvocationTimeout, defaultInvocation), SuccessThreshold: 1}
	if len(ports) == 0 {
		return made, false
	}
	port := intstr.FromInt32(int32(ports[0]))
	switch p.Type {
	case platform.ProbeHTTP:
		made.HTTPGet = &corev1.HTTPGetAction{Path: "/" + strings.TrimPrefix(p.Endpoint, "/"), Port: port, Scheme: corev1.URISchemeHTTP}
	case platform.ProbePort:
		made.TCPSocket = &corev1.TCPSocketAction{Port: port}
	default:
		return made, false
	}
	return made, true
}

func seconds(d, otherwise time.Duration) int32 {
	if d <= 0 {
		d = otherwise
	}
	return int32((d + time.Second - 1) / time.Second)
}
