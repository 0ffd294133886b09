package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Network says who may talk to whom. Apps are reached by the gateway and by nobody else, not even by apps of their own
// space. They reach the DNS, the world, and what Allowed names, but nothing in Blocked: that is where the API server,
// the registry, nodes, pods of others and the cloud's metadata are. This is what Cloud Foundry's security groups
// public_networks and dns say.
type Network struct {
	Gateway  []Peer   // from where requests come to apps
	DNS      []Peer   // none: the pods of kube-system that are called kube-dns
	Registry []Peer   // where stagings find the registry
	Blocked  []string // networks that are not the world; none: all private and link-local ones
	Allowed  []Peer   // what apps and stagings may reach in Blocked nevertheless, such as databases
}

// Peer is a network, or the pods of some namespaces. No ports means all.
type Peer struct {
	CIDR       string
	Namespaces map[string]string // labels
	Pods       map[string]string // labels; none: all in those namespaces
	Ports      []int32
}

func (n Network) defaults() Network {
	if n.DNS == nil {
		n.DNS = []Peer{{
			Namespaces: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem},
			Pods:       map[string]string{"k8s-app": "kube-dns"},
			Ports:      []int32{53, 5353}, // policies see the pod's port, and a server that is not root has another than the service
		}}
	}
	if n.Blocked == nil {
		n.Blocked = []string{
			"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", // private, carriers', link-local
			"fc00::/7", "fe80::/10",
		}
	}
	return n
}

// policies of a space: everything is denied, and then some of it allowed, by role.
func (s Settings) policies(namespace string) []*networkingv1.NetworkPolicy {
	n := s.Network
	out := append(n.dns(), n.world()...)
	out = append(out, egress(n.Allowed)...)
	policy := func(name string, pods map[string]string, spec networkingv1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
		spec.PodSelector = metav1.LabelSelector{MatchLabels: pods}
		spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
		return &networkingv1.NetworkPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
			ObjectMeta: meta(namespace, name, s.labels(roleSpace, nil)),
			Spec:       spec,
		}
	}
	return []*networkingv1.NetworkPolicy{
		policy("deny", nil, networkingv1.NetworkPolicySpec{}),
		policy("apps", map[string]string{LabelRole: roleApp}, networkingv1.NetworkPolicySpec{Ingress: ingress(n.Gateway), Egress: out}),
		policy("staging", map[string]string{LabelRole: roleStaging}, networkingv1.NetworkPolicySpec{Egress: append(slices.Clone(out), egress(n.Registry)...)}),
	}
}

func (n Network) dns() []networkingv1.NetworkPolicyEgressRule {
	rules := egress(n.DNS)
	for i, p := range n.DNS {
		rules[i].Ports = ports([]corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP}, p.Ports...)
	}
	return rules
}

// world is everything but what is blocked, for both families of addresses.
func (n Network) world() []networkingv1.NetworkPolicyEgressRule {
	block := func(all string, six bool) networkingv1.NetworkPolicyPeer {
		var except []string
		for _, b := range n.Blocked {
			if strings.Contains(b, ":") == six {
				except = append(except, b)
			}
		}
		return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: all, Except: except}}
	}
	return []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{block("0.0.0.0/0", false), block("::/0", true)}}}
}

// ingress with no peers is no rule: a rule without peers would let everyone in.
func ingress(peers []Peer) []networkingv1.NetworkPolicyIngressRule {
	var rules []networkingv1.NetworkPolicyIngressRule
	for _, p := range peers {
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{
			From: []networkingv1.NetworkPolicyPeer{p.peer()}, Ports: ports([]corev1.Protocol{corev1.ProtocolTCP}, p.Ports...),
		})
	}
	return rules
}

func egress(peers []Peer) []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, p := range peers {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{p.peer()}, Ports: ports([]corev1.Protocol{corev1.ProtocolTCP}, p.Ports...),
		})
	}
	return rules
}

func (p Peer) peer() networkingv1.NetworkPolicyPeer {
	if p.CIDR != "" {
		return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: p.CIDR}}
	}
	peer := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: p.Namespaces}}
	if len(p.Pods) > 0 {
		peer.PodSelector = &metav1.LabelSelector{MatchLabels: p.Pods}
	}
	return peer
}

func ports(protocols []corev1.Protocol, numbers ...int32) []networkingv1.NetworkPolicyPort {
	var all []networkingv1.NetworkPolicyPort
	for _, protocol := range protocols {
		for _, number := range numbers {
			all = append(all, networkingv1.NetworkPolicyPort{Protocol: new(protocol), Port: new(intstr.FromInt32(number))})
		}
	}
	return all
}
