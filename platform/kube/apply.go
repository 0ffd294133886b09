package kube

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/proa-dev/proa/platform"
)

// fieldManager is who owns the fields that we set, in the cluster's books.
const fieldManager = "proa"

// ApplySpace makes a space's namespace what it should be, or makes it.
func (c *Cluster) ApplySpace(ctx context.Context, space, namespace string) error {
	return c.apply(ctx, c.Settings.SpaceObjects(space, namespace))
}

// DeleteSpace removes a space's namespace with everything in it, if it is ours.
func (c *Cluster) DeleteSpace(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := c.core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err == nil && found.Labels[LabelInstallation] != c.Settings.Installation {
		return fmt.Errorf("namespace %s is not ours to delete", namespace)
	}
	if err == nil {
		err = c.core.Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))})
	}
	return gone("delete namespace "+namespace, err)
}

// Apply makes a release run.
func (c *Cluster) Apply(ctx context.Context, w platform.Wanted) error {
	objects, err := c.Settings.ReleaseObjects(w)
	if err != nil {
		return err
	}
	return c.apply(ctx, objects)
}

// Scale changes how many instances of a release run, and nothing else of it.
func (c *Cluster) Scale(ctx context.Context, namespace, name string, instances int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, instances)
	_, err := c.apps.StatefulSets(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("scale %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Delete removes a release. Its StatefulSet goes last: as long as that is there, an interrupted delete is seen and done
// again.
func (c *Cluster) Delete(ctx context.Context, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, secret := range []string{name, name + filesSuffix} {
		if err := gone("delete secret "+secret, c.core.Secrets(namespace).Delete(ctx, secret, metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	background := metav1.DeletePropagationBackground
	return gone("delete "+name, c.apps.StatefulSets(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

// Stage begins a staging. A second time it changes nothing.
func (c *Cluster) Stage(ctx context.Context, b platform.Staging) error {
	objects, err := c.Settings.StagingObjects(b)
	if err != nil {
		return err
	}
	return c.apply(ctx, objects)
}

// DeleteStaging removes a staging, and ends it if it still runs.
func (c *Cluster) DeleteStaging(ctx context.Context, namespace, build string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := StagingName(build)
	if err := gone("delete environment of "+name, c.core.Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
		return err
	}
	return gone("delete "+name, c.core.Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

// Sweep deletes environments and files of releases that an interrupted Apply left without a StatefulSet. The releases to keep are
// those that are wanted or seen.
func (c *Cluster) Sweep(ctx context.Context, keep map[string]bool) error {
	for page := ""; ; {
		found, err := c.environments(ctx, page)
		if err != nil {
			return err
		}
		for _, s := range found.Items {
			if keep[s.Labels[LabelRelease]] {
				continue
			}
			if err := gone("delete environment "+s.Name, c.core.Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{})); err != nil {
				return err
			}
		}
		if page = found.Continue; page == "" {
			return nil
		}
	}
}

// environments lists the Secrets of releases, without what is in them.
func (c *Cluster) environments(ctx context.Context, page string) (metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var found metav1.PartialObjectMetadataList
	text, err := c.core.RESTClient().Get().Resource("secrets").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
		VersionedParams(&metav1.ListOptions{LabelSelector: c.ours(roleApp), Limit: 500, Continue: page}, scheme.ParameterCodec).
		Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return found, fmt.Errorf("list environments: %w", err)
	}
	return found, nil
}

// ours selects what this installation made for a role.
func (c *Cluster) ours(role string) string {
	return labels.SelectorFromSet(labels.Set{LabelInstallation: c.Settings.Installation, LabelRole: role}).String()
}

// apply is server-side apply: we own the fields that we name, whoever set them before, and no others.
func (c *Cluster) apply(ctx context.Context, objects []runtime.Object) error {
	for _, o := range objects {
		if err := c.applyOne(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) applyOne(ctx context.Context, o runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	about, err := apimeta.Accessor(o)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	kind := o.GetObjectKind().GroupVersionKind().Kind
	client, resource := c.endpoint(kind)
	if client == nil {
		return fmt.Errorf("apply: %s is none of our kinds", kind)
	}
	body, err := encode(o)
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", kind, about.GetName(), err)
	}
	err = client.Patch(types.ApplyPatchType).
		NamespaceIfScoped(about.GetNamespace(), about.GetNamespace() != "").Resource(resource).Name(about.GetName()).
		Param("fieldManager", fieldManager).Param("force", "true").
		Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", kind, about.GetName(), err)
	}
	return nil
}

func (c *Cluster) endpoint(kind string) (client rest.Interface, resource string) {
	switch kind {
	case "Namespace":
		return c.core.RESTClient(), "namespaces"
	case "Secret":
		return c.core.RESTClient(), "secrets"
	case "ConfigMap":
		return c.core.RESTClient(), "configmaps"
	case "Pod":
		return c.core.RESTClient(), "pods"
	case "Service":
		return c.core.RESTClient(), "services"
	case "HTTPRoute":
		return c.gateway, "httproutes"
	case "TCPRoute":
		return c.gatewayTCP, "tcproutes"
	case "StatefulSet":
		return c.apps.RESTClient(), "statefulsets"
	case "NetworkPolicy":
		return c.networking.RESTClient(), "networkpolicies"
	}
	return nil, ""
}

// encode leaves the status out: it is the cluster's.
func encode(o runtime.Object) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	return json.Marshal(fields)
}

// gone takes what is not there for deleted.
func gone(what string, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
