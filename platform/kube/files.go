package kube

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/proa-dev/proa/platform"
)

const filesVolume = "files"

// Files of a release are read by its own user, whoever that is, and there is nobody else in its container.
const fileMode = 0o444

// fileKeys are the paths of a release's files by the key that each has in the Secret: a path is too long for one, and has a slash.
func fileKeys(r platform.Release) map[string]string {
	keys := map[string]string{}
	for i, path := range slices.Sorted(maps.Keys(r.Files)) {
		keys[fmt.Sprintf("file-%03d", i)] = path
	}
	return keys
}

// fileData is the content of the Secret with a release's files.
func fileData(r platform.Release) map[string][]byte {
	data := map[string][]byte{}
	for key, path := range fileKeys(r) {
		data[key] = []byte(r.Files[path])
	}
	return data
}

// fileVolume lays the files out. Without any it is an empty directory.
func fileVolume(r platform.Release) corev1.Volume {
	keys := fileKeys(r)
	source := &corev1.SecretVolumeSource{SecretName: filesName(r.GUID), DefaultMode: new(int32(fileMode))}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: keys[key]})
	}
	return corev1.Volume{Name: filesVolume, VolumeSource: corev1.VolumeSource{Secret: source}}
}
