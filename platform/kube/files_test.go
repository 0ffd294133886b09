package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/proa-dev/proa/platform"
)

// TestReleaseFiles: what is in files is in a Secret of its own, which no variable comes from, and is laid out read-only for every user.
func TestReleaseFiles(t *testing.T) {
	w := wanted()
	w.Release.Files = map[string]string{"my-db/type": "postgres", "my-db/password": "hush", "my-db/.dockerconfigjson": "{}", strings.Repeat("d", 253) + "/" + strings.Repeat("f", 253): "long"}
	objects, err := settings.ReleaseObjects(w)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 3 {
		t.Fatalf("there are %d objects", len(objects))
	}
	env, files, set := objects[0].(*corev1.Secret), objects[1].(*corev1.Secret), objects[2].(*appsv1.StatefulSet)
	if text, _ := json.Marshal([]any{env, set}); bytes.Contains(text, []byte("hush")) || bytes.Contains(text, []byte("aHVzaA")) {
		t.Errorf("what is in a file stands elsewhere: %s", text)
	}
	if files.Name != env.Name+"-files" || fmt.Sprint(files.Labels) != fmt.Sprint(env.Labels) {
		t.Errorf("the Secret would not be found again: %+v", files.ObjectMeta)
	}
	pod := set.Spec.Template.Spec
	if from := pod.Containers[0].EnvFrom; len(from) != 1 || from[0].SecretRef.Name != env.Name {
		t.Errorf("variables come from %+v", from)
	}
	mount, volume := pod.Containers[0].VolumeMounts[1], pod.Volumes[1]
	if mount.Name != volume.Name || mount.MountPath != "/etc/cf-service-bindings" || !mount.ReadOnly || volume.Secret.SecretName != files.Name || *volume.Secret.DefaultMode != 0o444 {
		t.Errorf("it is mounted as %+v from %+v", mount, volume.Secret)
	}
	laid := map[string]string{}
	for _, item := range volume.Secret.Items {
		if len(item.Key) > 253 || item.Mode != nil {
			t.Errorf("item %+v", item)
		}
		laid[item.Path] = string(files.Data[item.Key])
	}
	if fmt.Sprint(laid) != fmt.Sprint(w.Release.Files) || len(files.Data) != len(laid) {
		t.Errorf("the files are %v", laid)
	}
}

// TestReleaseWithoutFiles: an app that wants files and has no services finds an empty directory; any other finds none.
func TestReleaseWithoutFiles(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		volumes int
	}{"none wanted": {nil, 1}, "none there": {map[string]string{}, 2}} {
		w := wanted()
		w.Release.Files = c.files
		objects, err := settings.ReleaseObjects(platform.Wanted{Release: w.Release, Instances: 1})
		if err != nil {
			t.Fatal(err)
		}
		if pod := objects[len(objects)-1].(*appsv1.StatefulSet).Spec.Template.Spec; len(objects) != c.volumes+1 || len(pod.Volumes) != c.volumes || len(pod.Containers[0].VolumeMounts) != c.volumes {
			t.Errorf("%s: %d objects, volumes %+v", name, len(objects), pod.Volumes)
		}
	}
}
