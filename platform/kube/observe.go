package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/proa-dev/proa/platform"
)

// Watch follows the releases of a cluster. Of each pod it keeps what an Instance is made of, some 1,200 bytes of 12,000.
type Watch struct {
	sets, pods cache.Store
	routing    routeWatch
	changed    chan struct{}

	mu   sync.Mutex
	gone []platform.Instance // pods that went lately, as they were last seen
}

const maxGone = 1000

// Watch begins to follow the cluster until ctx ends, and returns once it has seen everything.
func (c *Cluster) Watch(ctx context.Context) (*Watch, error) {
	w := &Watch{changed: make(chan struct{}, 1)}
	var sets, pods cache.Controller
	w.sets, sets = w.informer(c.apps.RESTClient(), "statefulsets", &appsv1.StatefulSet{}, c.ours(roleApp))
	w.pods, pods = w.informer(c.core.RESTClient(), "pods", &corev1.Pod{}, c.ours(roleApp))
	go sets.RunWithContext(ctx)
	go pods.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), sets.HasSynced, pods.HasSynced) {
		return nil, fmt.Errorf("watch releases: %w", errors.Join(ctx.Err(), errors.New("the cluster did not list them")))
	}
	var err error
	w.routing, err = c.watchRoutes(ctx)
	return w, err
}

// Changed gets a value when something may have changed since the last one. It is a hint, and many changes are one.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

func (w *Watch) hint() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// remember keeps how a pod was when it went: a pass may come too late to see it.
func (w *Watch) remember(o any) {
	if unknown, is := o.(cache.DeletedFinalStateUnknown); is {
		o = unknown.Obj
	}
	p, is := o.(*watchedPod)
	if !is {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone = append(w.gone, p.instance); len(w.gone) > maxGone {
		w.gone = slices.Delete(w.gone, 0, len(w.gone)-maxGone)
	}
}

// Gone is how pods that went lately were when they were last seen, by their uid. A pod that is not in it may have gone too.
func (w *Watch) Gone() map[string]platform.Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]platform.Instance, len(w.gone))
	for _, i := range w.gone {
		all[i.PodUID] = i
	}
	return all
}

func (w *Watch) informer(client rest.Interface, resource string, kind runtime.Object, selector string) (cache.Store, cache.Controller) {
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = selector }),
		ObjectType:    kind,
		Transform:     digest,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { w.hint() },
			UpdateFunc: func(any, any) { w.hint() },
			DeleteFunc: func(o any) { w.remember(o); w.hint() },
		},
	})
}

// A watchedSet is what is kept of a StatefulSet, and a watchedPod of a pod. The store finds them by their names.
type watchedSet struct {
	metav1.ObjectMeta
	seen platform.Seen
	made time.Time
}

type watchedPod struct {
	metav1.ObjectMeta
	set      string
	release  string
	instance platform.Instance
}

// digest turns what the cluster tells into what is kept. It may meet its own work, and notes of what was deleted.
func digest(o any) (any, error) {
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		return &watchedSet{ObjectMeta: nameOf(o.ObjectMeta), seen: readSet(o), made: o.CreationTimestamp.Time}, nil
	case *corev1.Pod:
		// A StatefulSet names its pods after itself.
		set := strings.TrimSuffix(o.Name, "-"+o.Labels[podIndex])
		return &watchedPod{ObjectMeta: nameOf(o.ObjectMeta), set: o.Namespace + "/" + set, release: o.Labels[LabelRelease], instance: instance(o)}, nil
	}
	return o, nil
}

func nameOf(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp}
}

func readSet(set *appsv1.StatefulSet) platform.Seen {
	s := platform.Seen{
		Namespace: set.Namespace, Name: set.Name,
		Release: set.Labels[LabelRelease], Process: set.Labels[LabelProcess], App: set.Labels[LabelApp], Type: set.Annotations[AnnotationType],
		Count: 1, Deleting: set.DeletionTimestamp != nil,
	}
	if set.Spec.Replicas != nil {
		s.Count = int(*set.Spec.Replicas)
	}
	return s
}

// Seen is every release that the cluster has, with all instances that it should have: those without a pod are down.
func (w *Watch) Seen() []platform.Seen {
	pods := map[string][]*watchedPod{}
	for _, o := range w.pods.List() {
		p := o.(*watchedPod)
		pods[p.set] = append(pods[p.set], p)
	}
	var all []platform.Seen
	for _, o := range w.sets.List() {
		set := o.(*watchedSet)
		all = append(all, set.with(pods[set.Namespace+"/"+set.Name]))
	}
	slices.SortFunc(all, func(a, b platform.Seen) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return all
}

// Leaving is a pod that was told to go, or that is held: whatever its release, and whether that is still there.
type Leaving struct {
	Namespace string
	Release   string
	Due       time.Time // when it should have gone
	Instance  platform.Instance
}

// Leaving lists them.
func (w *Watch) Leaving() []Leaving {
	var all []Leaving
	for _, o := range w.pods.List() {
		if p := o.(*watchedPod); p.DeletionTimestamp != nil {
			all = append(all, Leaving{Namespace: p.Namespace, Release: p.release, Due: p.DeletionTimestamp.Time, Instance: p.instance})
		}
	}
	slices.SortFunc(all, func(a, b Leaving) int {
		return strings.Compare(a.Namespace+"/"+a.Instance.Pod, b.Namespace+"/"+b.Instance.Pod)
	})
	return all
}

// with fills the places of a set. Pods that are about to leave have none, unless they are held: then their time has not come.
func (set *watchedSet) with(pods []*watchedPod) platform.Seen {
	s := set.seen
	s.Instances = make([]platform.Instance, s.Count)
	for index := range s.Instances {
		s.Instances[index] = platform.Instance{Index: index, State: platform.InstanceDown, Since: set.made}
	}
	for _, p := range pods {
		if i := p.instance; i.Index >= 0 && i.Index < s.Count && (p.DeletionTimestamp == nil || i.Held) {
			s.Instances[i.Index] = i
		}
	}
	return s
}
