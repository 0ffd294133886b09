package kube

import (
	"encoding/base64"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Names of what every space has.
const (
	pullSecret     = "pull"
	registrySecret = "registry"
	registryCA     = "registry-ca"
	registryKey    = "auth"
)

// SpaceObjects are a space's namespace and what its pods need in it, in the order to apply them. Kubernetes itself
// refuses pods in it that have more rights than ours (pod security "restricted").
func (s Settings) SpaceObjects(space, namespace string) []runtime.Object {
	labels := s.labels(roleSpace, map[string]string{LabelSpace: space})
	labels["pod-security.kubernetes.io/enforce"] = "restricted"
	objects := []runtime.Object{&corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: meta("", namespace, labels),
	}}
	for _, p := range s.policies(namespace) {
		objects = append(objects, p)
	}
	objects = append(objects,
		s.secret(namespace, pullSecret, corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: s.Registry.dockerConfig()}),
		s.secret(namespace, registrySecret, corev1.SecretTypeOpaque, map[string][]byte{registryKey: s.Registry.lifecycleAuth()}),
	)
	if len(s.Registry.CA) > 0 {
		objects = append(objects, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: meta(namespace, registryCA, s.labels(roleSpace, nil)),
			Data:       map[string]string{"ca.crt": string(s.Registry.CA)},
		})
	}
	return objects
}

func (s Settings) secret(namespace, name string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta(namespace, name, s.labels(roleSpace, nil)),
		Type:       kind,
		Data:       data,
	}
}

func (a Account) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(a.Username + ":" + a.Password))
}

// dockerConfig is what kubelets read.
func (r Registry) dockerConfig() []byte {
	return mustJSON(map[string]any{"auths": map[string]any{r.Server: map[string]string{"auth": r.Pull.basic()}}})
}

// lifecycleAuth is what the lifecycle reads from CNB_REGISTRY_AUTH.
func (r Registry) lifecycleAuth() []byte {
	return mustJSON(map[string]string{r.Server: "Basic " + r.Push.basic()})
}

func mustJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // cannot be: only maps and strings come here
	}
	return text
}
