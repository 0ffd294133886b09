package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

const (
	platformAPI    = "0.14" // of the lifecycle in the builder
	analyzedFile   = "-analyzed=/analyzed/analyzed.toml"
	projectFile    = "-project-metadata=/analyzed/project-metadata.toml" // where no buildpack can leave a link
	orderKey       = "order.toml"
	defaultUser    = "2000:2000"
	stagingTimeout = 15 * time.Minute
)

// phases in their order. The last is the pod's container, the others run before it, one after the other.
var phases = []string{platform.PhaseFetch, platform.PhaseAnalyze, platform.PhaseDetect, platform.PhaseRestore, platform.PhaseBuild, platform.PhaseExport}

// StagingObjects are what builds a droplet, in the order to apply them: a Secret with the app's environment, and a pod
// with a container for each phase of the lifecycle, so that code of the app and of buildpacks never shares one with the
// registry's credentials. Four things keep them apart:
//   - buildpacks of the user's own are in the image of detector and builder only
//   - they are an environment variable, not a file: a file could be reached through a link that a buildpack leaves in
//     the directories which all phases share
//   - analyzed.toml, which tells the exporter what to build on, is on a volume that buildpacks cannot write
//   - nothing here has a token of the Kubernetes API
//
// The exporter's report, which has the droplet's digest, is its termination message.
func (s Settings) StagingObjects(b platform.Staging) ([]runtime.Object, error) {
	order, err := b.Order()
	if err != nil {
		return nil, err
	}
	labels := s.labels(roleStaging, map[string]string{LabelSpace: b.SpaceGUID, LabelApp: b.AppGUID, LabelBuild: b.BuildGUID})
	files, data := stagingFiles(b.Env)
	size := 0
	for _, value := range data {
		size += len(value)
	}
	if size > maxEnvironment {
		return nil, fault.Unprocessable("The environment of the app is too large: all variables together may have 1M. Put large values into a file of the app, or into a service.")
	}
	data[orderKey] = []byte(order)
	secret := s.secret(b.Namespace, StagingName(b.BuildGUID), corev1.SecretTypeOpaque, data)
	secret.Labels = labels
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta(b.Namespace, StagingName(b.BuildGUID), maps.Clone(labels)),
		Spec:       s.stagingPod(b, files),
	}
	return []runtime.Object{secret, pod}, nil
}

// stagingFiles turns variables into files: the lifecycle reads them from a directory. Their names need not be fit for
// keys of a Secret, but for files; those that are not are left out.
func stagingFiles(env map[string]string) ([]corev1.KeyToPath, map[string][]byte) {
	data := map[string][]byte{}
	files := []corev1.KeyToPath{}
	for i, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || len(name) > 255 || strings.HasPrefix(name, "..") || name == "." || strings.Contains(name, "/") {
			continue
		}
		key := fmt.Sprintf("env-%d", i)
		data[key] = []byte(env[name])
		files = append(files, corev1.KeyToPath{Key: key, Path: name})
	}
	return files, data
}

func (s Settings) stagingPod(b platform.Staging, env []corev1.KeyToPath) corev1.PodSpec {
	if b.User == "" {
		b.User = defaultUser
	}
	if b.Timeout <= 0 {
		b.Timeout = stagingTimeout
	}
	security := podSecurity(b.User)
	security.FSGroup = security.RunAsGroup
	containers := s.stagingContainers(b)
	last := len(containers) - 1
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ActiveDeadlineSeconds:         new(int64(seconds(b.Timeout, stagingTimeout))),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(int64(1)), // nothing here has something to save
		ImagePullSecrets:              []corev1.LocalObjectReference{{Name: pullSecret}},
		SecurityContext:               security,
		Volumes:                       s.stagingVolumes(b, env),
		InitContainers:                containers[:last],
		Containers:                    containers[last:],
	}
}

func (s Settings) stagingContainers(b platform.Staging) []corev1.Container {
	detect := []string{"/cnb/lifecycle/detector", analyzedFile}
	if len(b.Buildpacks) > 0 {
		detect = append(detect, "-order=/order/"+orderKey)
	}
	commands := map[string][]string{
		platform.PhaseFetch:   {"cp", "-r", "/source/.", "/workspace"},
		platform.PhaseAnalyze: {"/cnb/lifecycle/analyzer", analyzedFile, "-run-image=" + b.RunImage, b.TargetImage},
		platform.PhaseDetect:  detect,
		platform.PhaseRestore: {"/cnb/lifecycle/restorer", analyzedFile},
		platform.PhaseBuild:   {"/cnb/lifecycle/builder", analyzedFile},
		platform.PhaseExport:  {"/cnb/lifecycle/exporter", analyzedFile, projectFile, "-report=" + corev1.TerminationMessagePathDefault, b.TargetImage},
	}
	var all []corev1.Container
	for _, phase := range phases {
		c := corev1.Container{
			Name:                     phase,
			Image:                    image(b, phase),
			Command:                  commands[phase],
			Env:                      s.stagingEnv(phase),
			VolumeMounts:             s.stagingMounts(phase),
			Resources:                s.resources(b.MemoryMB, b.DiskMB),
			SecurityContext:          confined(),
			TerminationMessagePath:   corev1.TerminationMessagePathDefault,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}
		all = append(all, c)
	}
	return all
}

// image keeps what a user may have put beside the lifecycle away from the phases that have credentials.
func image(b platform.Staging, phase string) string {
	switch {
	case phase == platform.PhaseFetch:
		return b.SourceImage
	case trusted(phase) || b.BuildImage == "":
		return b.Builder
	}
	return b.BuildImage
}

// trusted phases run nobody's code but the lifecycle's, and have the registry's credentials.
func trusted(phase string) bool {
	return phase == platform.PhaseAnalyze || phase == platform.PhaseRestore || phase == platform.PhaseExport
}

func (s Settings) stagingEnv(phase string) []corev1.EnvVar {
	if phase == platform.PhaseFetch {
		return nil
	}
	env := []corev1.EnvVar{{Name: "CNB_PLATFORM_API", Value: platformAPI}, {Name: "CNB_NO_COLOR", Value: "true"}}
	if !trusted(phase) {
		return env
	}
	if len(s.Registry.CA) > 0 {
		env = append(env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: "/registry-ca"})
	}
	return append(env, corev1.EnvVar{Name: "CNB_REGISTRY_AUTH", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: registrySecret}, Key: registryKey,
	}}})
}

func (s Settings) stagingMounts(phase string) []corev1.VolumeMount {
	workspace := corev1.VolumeMount{Name: "workspace", MountPath: "/workspace"}
	layers := corev1.VolumeMount{Name: "layers", MountPath: "/layers"}
	analyzed := corev1.VolumeMount{Name: "analyzed", MountPath: "/analyzed", ReadOnly: !trusted(phase)}
	ca := corev1.VolumeMount{Name: registryCA, MountPath: "/registry-ca", ReadOnly: true}
	var mounts []corev1.VolumeMount
	switch phase {
	case platform.PhaseFetch:
		return []corev1.VolumeMount{workspace}
	case platform.PhaseDetect, platform.PhaseBuild:
		return []corev1.VolumeMount{
			workspace, layers, analyzed,
			{Name: "env", MountPath: "/platform/env", ReadOnly: true}, {Name: "order", MountPath: "/order", ReadOnly: true},
		}
	case platform.PhaseExport:
		mounts = append(mounts, workspace)
	}
	mounts = append(mounts, layers, analyzed)
	if len(s.Registry.CA) > 0 {
		mounts = append(mounts, ca)
	}
	return mounts
}

func (s Settings) stagingVolumes(b platform.Staging, env []corev1.KeyToPath) []corev1.Volume {
	size := s.resources(b.MemoryMB, b.DiskMB).Limits[corev1.ResourceEphemeralStorage]
	empty := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}}
	}
	files := func(name string, items []corev1.KeyToPath) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: StagingName(b.BuildGUID), Items: items}}}
	}
	volumes := []corev1.Volume{empty("workspace"), empty("layers"), empty("analyzed"), files("order", []corev1.KeyToPath{{Key: orderKey, Path: orderKey}})}
	if len(env) > 0 {
		volumes = append(volumes, files("env", env))
	} else { // a Secret volume without items would hold all keys
		volumes = append(volumes, empty("env"))
	}
	if len(s.Registry.CA) > 0 {
		volumes = append(volumes, corev1.Volume{Name: registryCA, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: registryCA}},
		}})
	}
	return volumes
}
