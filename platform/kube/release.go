package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/launch"
)

const (
	appContainer = "app"
	ourLauncher  = "/proa/launcher"
	cnbLauncher  = "/cnb/lifecycle/launcher"
	podIndex     = appsv1.PodIndexLabel

	// What launch needs at the most: 10 s between TERM and KILL, 5 s to die and 4 s for the last lines; and some to spare.
	gracePeriod = 25

	// How long an instance with ports goes on as before when it is to stop: by then gateway and nodes have forgotten it, so that
	// no request comes to a process that ends. Only then launch is told.
	drainPeriod = 5

	// A directory of the pod, which outlives its container.
	podVolume = "pod"
	podFolder = "/proa/pod"
	podMark   = podFolder + "/started"

	// How long an instance stays on a node that does not answer, before it is placed anew.
	lostAfter = 30

	maxVariable    = 128<<10 - 1 // the kernel's limit for one variable, its name and the zero byte included
	maxEnvironment = 1<<20 - 4<<10
)

// ReleaseObjects are what runs a release, in the order to apply them: a Secret with its environment, one with its files if it has any, and
// a StatefulSet of pods with one container each. Everything a tenant could keep secret, commands too, is in the Secret.
func (s Settings) ReleaseObjects(w platform.Wanted) ([]runtime.Object, error) {
	r := w.Release
	if err := r.Check(); err != nil {
		return nil, err
	}
	env, err := environment(r)
	if err != nil {
		return nil, err
	}
	labels := s.labels(roleApp, map[string]string{
		LabelSpace: r.SpaceGUID, LabelApp: r.AppGUID, LabelProcess: r.ProcessGUID, LabelRelease: r.GUID, LabelType: r.ProcessType,
	})
	secret := s.secret(r.Namespace, SetName(r.GUID), corev1.SecretTypeOpaque, env)
	secret.Labels = labels
	objects := []runtime.Object{secret}
	if r.Files != nil {
		files := s.secret(r.Namespace, filesName(r.GUID), corev1.SecretTypeOpaque, fileData(r))
		files.Labels = labels
		objects = append(objects, files)
	}
	return append(objects, s.statefulSet(w, labels)), nil
}

// statefulSet is never changed but for its count, and a change by hand restarts nothing (OnDelete). Its Service does
// not exist: nobody calls an instance by name, and ten thousand Services would cost every node.
func (s Settings) statefulSet(w platform.Wanted, labels map[string]string) *appsv1.StatefulSet {
	r := w.Release
	notes := map[string]string{AnnotationAppName: r.AppName, AnnotationType: r.ProcessType, AnnotationVersion: strconv.Itoa(r.Version)}
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: meta(r.Namespace, SetName(r.GUID), labels),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             new(int32(w.Instances)),
			ServiceName:          SetName(r.GUID),
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit: new(int32(0)),
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{LabelRelease: labels[LabelRelease]}},
			Template:             corev1.PodTemplateSpec{Spec: s.appPod(r)},
		},
	}
	set.Annotations = notes
	set.Spec.Template.Labels, set.Spec.Template.Annotations = maps.Clone(labels), maps.Clone(notes)
	return set
}

func (s Settings) appPod(r platform.Release) corev1.PodSpec {
	container := corev1.Container{
		Name:    appContainer,
		Image:   r.Image,
		Command: []string{ourLauncher, "run"},
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: SetName(r.GUID)}}}},
		Env:     instanceEnvironment(r),
		Ports:   containerPorts(r),

		Resources:                s.resources(r.MemoryMB, r.DiskMB),
		SecurityContext:          confined(),
		VolumeMounts:             []corev1.VolumeMount{{Name: podVolume, MountPath: podFolder}},
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	volumes := []corev1.Volume{{Name: podVolume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<20, resource.BinarySI)},
	}}}
	if r.Files != nil {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: filesVolume, MountPath: platform.BindingsRoot, ReadOnly: true})
		volumes = append(volumes, fileVolume(r))
	}
	setProbes(&container, r)
	grace := int64(gracePeriod)
	if len(r.Ports) > 0 {
		container.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainPeriod}}}
		grace += drainPeriod
	}
	return corev1.PodSpec{
		Containers:                    []corev1.Container{container},
		SecurityContext:               podSecurity(r.User),
		ImagePullSecrets:              []corev1.LocalObjectReference{{Name: pullSecret}},
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: &grace,
		Tolerations:                   []corev1.Toleration{away(corev1.TaintNodeNotReady), away(corev1.TaintNodeUnreachable)},
		Volumes:                       volumes,
	}
}

func away(taint string) corev1.Toleration {
	return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(lostAfter))}
}

var fitVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment is the content of a release's Secret. Variables whose names Kubernetes may refuse reach the processes
// through launch.
func environment(r platform.Release) (map[string][]byte, error) {
	data, odd := map[string][]byte{}, map[string]string{}
	size := 0
	add := func(name, value string) error {
		data[name] = []byte(value)
		size += len(name) + len(value)
		if len(name)+1+len(value) > maxVariable || size > maxEnvironment {
			return fault.Unprocessable("The environment of process '%s' is too large at '%s': a variable may have 128K, and all of them 1M. Put large values into a file of the app, or into a service.", r.ProcessType, name)
		}
		return nil
	}
	for name, value := range r.Environment() {
		if !fitVariable.MatchString(name) || name == launch.EnvConfig {
			odd[name] = value
			continue
		}
		if err := add(name, value); err != nil {
			return nil, err
		}
	}
	config, err := launchConfig(r, odd)
	if err != nil {
		return nil, err
	}
	return data, add(launch.EnvConfig, string(config))
}

func launchConfig(r platform.Release, env map[string]string) ([]byte, error) {
	process := func(p platform.LaunchProcess) launch.Process {
		all := maps.Clone(env)
		maps.Copy(all, p.Env)
		return launch.Process{Name: p.Name, Command: p.Command, Env: all, Memory: int64(p.MemoryMB) << 20}
	}
	l := r.Launch()
	config := launch.Config{Process: l.Process, Launcher: cnbLauncher, Main: process(l.Main), Mark: podMark, HoldSeconds: holdTime(r).Seconds()}
	for _, p := range l.Sidecars {
		config.Sidecars = append(config.Sidecars, process(p))
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode launch configuration: %w", err)
	}
	if _, err := launch.Decode(text); err != nil {
		return nil, fault.Unprocessable("Process '%s' cannot be launched. %s", r.ProcessType, err)
	}
	return text, nil
}

// holdTime leaves most of the time within which an instance must be well to the app.
func holdTime(r platform.Release) time.Duration {
	if _, asks := probe(r.Health, r.Ports); !asks {
		return launch.DefaultHold
	}
	return min(launch.DefaultHold, cmp.Or(r.Health.Timeout, DefaultTimeout)/4)
}

// instanceEnvironment is what only the instance knows. It wins over the Secret.
func instanceEnvironment(r platform.Release) []corev1.EnvVar {
	from := func(name, field string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: field}}}
	}
	env := []corev1.EnvVar{
		from("CF_INSTANCE_INDEX", "metadata.labels['"+podIndex+"']"), from("INSTANCE_INDEX", "metadata.labels['"+podIndex+"']"),
		from("CF_INSTANCE_GUID", "metadata.uid"), from("INSTANCE_GUID", "metadata.uid"),
		from("CF_INSTANCE_IP", "status.podIP"), from("CF_INSTANCE_INTERNAL_IP", "status.podIP"),
	}
	if len(r.Ports) > 0 {
		env = append(env, corev1.EnvVar{Name: "CF_INSTANCE_ADDR", Value: fmt.Sprintf("$(CF_INSTANCE_IP):%d", r.Ports[0])})
	}
	return env
}

func containerPorts(r platform.Release) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for _, p := range r.Ports {
		all = append(all, corev1.ContainerPort{Name: portName(p), ContainerPort: int32(p), Protocol: corev1.ProtocolTCP})
	}
	return all
}
