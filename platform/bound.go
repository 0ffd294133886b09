package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/proa-dev/proa/kit/fault"
)

// BoundService is a service as an app is given it: one binding, opened, with what is known of its instance.
type BoundService struct {
	BindingGUID  string
	BindingName  string // empty: the instance's
	InstanceGUID string
	InstanceName string
	Label        string // the offering's name, or LabelUserProvided
	Plan         string // empty: user-provided
	Tags         []string
	Credentials  json.RawMessage // an object, as the broker wrote it; empty: none
}

// LabelUserProvided is the label of services that no broker made.
const LabelUserProvided = "user-provided"

// BindingsRoot is where an instance finds the credentials of its app as files, a directory for each service.
const BindingsRoot = "/etc/cf-service-bindings"

// The variables that tell of services.
const (
	envServices = "VCAP_SERVICES"
	envBindings = "SERVICE_BINDING_ROOT"
)

const (
	maxBindingFiles = 1000
	maxBindingBytes = 1_000_000 // of all of them with their names: a Secret ends at 1 MiB
)

// Name is what the app knows the service by.
func (b *BoundService) Name() string { return cmp.Or(b.BindingName, b.InstanceName) }

// vcapService is an entry of VCAP_SERVICES. What is always empty is there because apps read it without looking.
type vcapService struct {
	Label          string          `json:"label"`
	Provider       *string         `json:"provider"`
	Plan           string          `json:"plan,omitempty"`
	Name           string          `json:"name"`
	Tags           []string        `json:"tags"`
	InstanceGUID   string          `json:"instance_guid"`
	InstanceName   string          `json:"instance_name"`
	BindingGUID    string          `json:"binding_guid"`
	BindingName    *string         `json:"binding_name"`
	Credentials    json.RawMessage `json:"credentials"`
	SyslogDrainURL *string         `json:"syslog_drain_url"`
	VolumeMounts   []string        `json:"volume_mounts"`
}

// VCAPServices is the JSON of the variable of that name: lists of services by their label. The same services are the same text.
func VCAPServices(services []BoundService) (string, error) {
	byLabel := map[string][]vcapService{}
	for _, b := range inOrder(services) {
		entry := vcapService{Label: b.Label, Plan: b.Plan, Name: b.Name(), Tags: b.tags(), InstanceGUID: b.InstanceGUID, InstanceName: b.InstanceName,
			BindingGUID: b.BindingGUID, Credentials: b.Credentials, VolumeMounts: []string{}}
		if b.BindingName != "" {
			entry.BindingName = &b.BindingName
		}
		if len(entry.Credentials) == 0 {
			entry.Credentials = json.RawMessage(`{}`)
		}
		byLabel[b.Label] = append(byLabel[b.Label], entry)
	}
	return plainJSON(byLabel)
}

func inOrder(services []BoundService) []BoundService {
	return slices.SortedStableFunc(slices.Values(services), func(a, b BoundService) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.InstanceName, b.InstanceName), cmp.Compare(a.InstanceGUID, b.InstanceGUID))
	})
}

func (b *BoundService) tags() []string { return append([]string{}, b.Tags...) }

// plainJSON leaves & and < as they are: nobody shows a variable as a page, and addresses are full of them.
func plainJSON(v any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), err
}

var (
	fitDirectory = regexp.MustCompile(`^[a-z0-9-][a-z0-9.-]{0,252}$`)            // servicebinding.io's rule, and no dot in front
	fitFile      = regexp.MustCompile(`^\.?[A-Za-z0-9_-][A-Za-z0-9._-]{0,251}$`) // a directory has . and .. already, and a cluster keeps ..data
)

// BindingFiles are the credentials of services as files, by their path below BindingsRoot: the layout of servicebinding.io.
func BindingFiles(services []BoundService) (map[string]string, error) {
	all, taken, size := map[string]string{}, map[string]bool{}, 0
	for _, b := range inOrder(services) {
		name := b.Name()
		switch {
		case !fitDirectory.MatchString(name):
			return nil, fault.Unprocessable("The credentials of service instance '%s' cannot be files in a directory named '%s': use a-z, 0-9, - and . only. Unbind it, and bind it with another name (--binding-name).", b.InstanceName, clipText(name))
		case taken[name]:
			return nil, fault.Unprocessable("Two services are bound to the app as '%s', and their files would be in one directory. Unbind one of them, and bind it with another name (--binding-name).", name)
		}
		taken[name] = true
		its, err := b.files()
		if err != nil {
			return nil, err
		}
		for file, content := range its {
			all[name+"/"+file] = content
			size += len(name) + 1 + len(file) + len(content)
		}
	}
	if size > maxBindingBytes || len(all) > maxBindingFiles {
		return nil, fault.Unprocessable("The credentials of the app's services are too much: %d files with %d bytes, but at most %d with %d bytes are possible. Unbind services that the app does not need.",
			len(all), size, maxBindingFiles, maxBindingBytes)
	}
	return all, nil
}

// files are those of one service. A credential wins over what the platform says under the same name: the app cannot do without it, and a
// type or provider that the service gives itself is the better one.
func (b *BoundService) files() (map[string]string, error) {
	tags, err := plainJSON(b.tags())
	if err != nil {
		return nil, err
	}
	all := map[string]string{"type": b.Label, "provider": b.Label, "label": b.Label, "name": b.Name(), "tags": tags,
		"instance-guid": b.InstanceGUID, "instance-name": b.InstanceName, "binding-guid": b.BindingGUID}
	if b.Plan != "" {
		all["plan"] = b.Plan
	}
	if b.BindingName != "" {
		all["binding-name"] = b.BindingName
	}
	credentials := map[string]json.RawMessage{}
	if len(b.Credentials) > 0 {
		if err := json.Unmarshal(b.Credentials, &credentials); err != nil {
			return nil, fault.Unprocessable("The credentials of service instance '%s' are not an object, so they cannot be files. Switch the feature %s of the app off.", b.InstanceName, FeatureBindingFiles).Because(err)
		}
	}
	for key, value := range credentials {
		if !fitFile.MatchString(key) {
			return nil, fault.Unprocessable("The credentials of service instance '%s' have a key '%s', which cannot be the name of a file. Switch the feature %s of the app off, or unbind the service.",
				b.InstanceName, clipText(key), FeatureBindingFiles)
		}
		if text, is := fileOf(value); is {
			all[key] = text
		}
	}
	return all, nil
}

// fileOf is a text as it is, and anything else as JSON. Null is no file.
func fileOf(value json.RawMessage) (string, bool) {
	var text *string
	if err := json.Unmarshal(value, &text); err != nil {
		return string(value), true
	}
	if text == nil {
		return "", false
	}
	return *text, true
}
