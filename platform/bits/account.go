package bits

import (
	"encoding/base64"
	"encoding/json"
)

// PullSecret is the content of a secret of the type kubernetes.io/dockerconfigjson, with which the kubelet fetches the
// platform's images. It names the whole prefix, so that it opens nothing else on that host.
func (r *Registry) PullSecret() []byte {
	type account struct {
		Auth string `json:"auth"`
	}
	auths := map[string]account{}
	if r.Username != "" {
		auths[r.Prefix] = account{r.basic()}
	}
	text, _ := json.Marshal(map[string]any{"auths": auths}) // texts always marshal
	return text
}

// LifecycleAuth is the value of CNB_REGISTRY_AUTH, with which the lifecycle's trusted phases reach the registry.
func (r *Registry) LifecycleAuth() string {
	headers := map[string]string{}
	if host, _ := r.place(); r.Username != "" {
		headers[host] = "Basic " + r.basic()
	}
	text, _ := json.Marshal(headers) // texts always marshal
	return string(text)
}

func (r *Registry) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(r.Username + ":" + r.Password))
}
