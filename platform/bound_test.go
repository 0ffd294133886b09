package platform_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

func database(instance, credentials string) platform.BoundService {
	return platform.BoundService{BindingGUID: "b-" + instance, InstanceGUID: "i-" + instance, InstanceName: instance, Label: "postgres", Plan: "small", Credentials: json.RawMessage(credentials)}
}

func TestVCAPServices(t *testing.T) {
	named := database("zoo", `{ "uri": "postgres://u:p@h/d?a=1&b=<2>", "port": 5432.0, "big": 12345678901234567890, "z": null, "a": [1, {"x": true}], "nul": "\u0000" }`)
	named.BindingName, named.Tags = "main", []string{"sql", "ü"}
	provided := platform.BoundService{BindingGUID: "b-mine", InstanceGUID: "i-mine", InstanceName: "mine", Label: platform.LabelUserProvided, Credentials: json.RawMessage(`{"k":"v"}`)}
	const (
		zoo = `{"label":"postgres","provider":null,"plan":"small","name":"main","tags":["sql","ü"],"instance_guid":"i-zoo","instance_name":"zoo","binding_guid":"b-zoo","binding_name":"main",` +
			`"credentials":{"uri":"postgres://u:p@h/d?a=1&b=<2>","port":5432.0,"big":12345678901234567890,"z":null,"a":[1,{"x":true}],"nul":"\u0000"},"syslog_drain_url":null,"volume_mounts":[]}`
		ape = `{"label":"postgres","provider":null,"plan":"small","name":"ape","tags":[],"instance_guid":"i-ape","instance_name":"ape","binding_guid":"b-ape","binding_name":null,` +
			`"credentials":{},"syslog_drain_url":null,"volume_mounts":[]}`
		mine = `{"label":"user-provided","provider":null,"name":"mine","tags":[],"instance_guid":"i-mine","instance_name":"mine","binding_guid":"b-mine","binding_name":null,` +
			`"credentials":{"k":"v"},"syslog_drain_url":null,"volume_mounts":[]}`
	)
	for name, c := range map[string]struct {
		services []platform.BoundService
		want     string
	}{
		"none":                     {nil, `{}`},
		"values stay as they were": {[]platform.BoundService{named}, `{"postgres":[` + zoo + `]}`},
		"no credentials":           {[]platform.BoundService{database("ape", "")}, `{"postgres":[` + ape + `]}`},
		"no plan":                  {[]platform.BoundService{provided}, `{"user-provided":[` + mine + `]}`},
		"in order":                 {[]platform.BoundService{provided, named, database("ape", "")}, `{"postgres":[` + ape + `,` + zoo + `],"user-provided":[` + mine + `]}`},
		"in order, come as it may": {[]platform.BoundService{database("ape", ""), named, provided}, `{"postgres":[` + ape + `,` + zoo + `],"user-provided":[` + mine + `]}`},
	} {
		if got, err := platform.VCAPServices(c.services); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, got, c.want)
		}
	}
	shared, other := database("same", `{}`), database("same", `{}`)
	other.InstanceGUID = "i-before"
	if got, _ := platform.VCAPServices([]platform.BoundService{shared, other}); strings.Index(got, "i-before") > strings.Index(got, "i-same") {
		t.Errorf("two instances of one name are in no order: %s", got)
	}
}

func TestBindingFiles(t *testing.T) {
	db := database("my-db", `{"username":"u","password":"p\n\"q\" & <r>","port":5432,"tls":{"ca":"pem"},"hosts":["a","b"],"ro":false,"none":null,".dockerconfigjson":"x","empty":""}`)
	db.Tags = []string{"sql"}
	want := map[string]string{
		"my-db/type": "postgres", "my-db/provider": "postgres", "my-db/label": "postgres", "my-db/name": "my-db", "my-db/plan": "small", "my-db/tags": `["sql"]`,
		"my-db/instance-guid": "i-my-db", "my-db/instance-name": "my-db", "my-db/binding-guid": "b-my-db",
		"my-db/username": "u", "my-db/password": "p\n\"q\" & <r>", "my-db/port": "5432", "my-db/tls": `{"ca":"pem"}`, "my-db/hosts": `["a","b"]`, "my-db/ro": "false", "my-db/.dockerconfigjson": "x", "my-db/empty": "",
	}
	got, err := platform.BindingFiles([]platform.BoundService{db})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v: the files are\n%q, want\n%q", err, got, want)
	}
	own := platform.BoundService{BindingGUID: "b", BindingName: "cache.1", InstanceGUID: "i", InstanceName: "My Cache", Label: platform.LabelUserProvided, Credentials: json.RawMessage(`{"type":"redis","name":"0","provider":null}`)}
	got, err = platform.BindingFiles([]platform.BoundService{own, db})
	for file, content := range map[string]string{"cache.1/type": "redis", "cache.1/name": "0", "cache.1/provider": "user-provided", "cache.1/binding-name": "cache.1", "cache.1/instance-name": "My Cache", "cache.1/tags": "[]", "my-db/username": "u"} {
		if is, there := got[file]; !there || is != content || err != nil {
			t.Errorf("%s is %q, want %q (%v)", file, is, content, err)
		}
	}
	if _, there := got["cache.1/plan"]; there {
		t.Error("a user-provided service has a plan")
	}
	if none, err := platform.BindingFiles(nil); err != nil || none == nil || len(none) != 0 {
		t.Errorf("no services are %v, %v", none, err)
	}
}

func TestBindingFilesRefuse(t *testing.T) {
	keyed := func(key string) []platform.BoundService {
		text, _ := json.Marshal(map[string]string{key: "v"})
		return []platform.BoundService{database("db", string(text))}
	}
	called := func(name string) []platform.BoundService { return []platform.BoundService{database(name, `{}`)} }
	many := map[string]int{}
	for n := range 1000 {
		many[fmt.Sprint("k", n)] = n
	}
	lots, _ := json.Marshal(many)
	twice := database("other", `{}`)
	twice.BindingName = "db"
	for name, c := range map[string]struct {
		services []platform.BoundService
		says     string
	}{
		"a name with a space":    {called("my db"), "in a directory named 'my db'"},
		"a name in capitals":     {called("DB"), "another name (--binding-name)"},
		"a name that leads out":  {called(".."), "directory named '..'"},
		"a hidden name":          {called(".db"), "directory named '.db'"},
		"a path for a name":      {called("a/b"), "directory named 'a/b'"},
		"a line break at an end": {called("db\n"), "directory named"},
		"too long a name":        {called(strings.Repeat("a", 254)), "directory named"},
		"no name":                {called(""), "directory named ''"},
		"two of a name":          {[]platform.BoundService{database("db", `{}`), twice}, "Two services are bound to the app as 'db'"},
		"a key with a slash":     {keyed("a/b"), "have a key 'a/b', which cannot be the name of a file. Switch the feature service-binding-k8s"},
		"a key that leads out":   {keyed(".."), "have a key '..'"},
		"a key of a dot":         {keyed("."), "have a key '.'"},
		"a key of the cluster's": {keyed("..data"), "have a key '..data'"},
		"an empty key":           {keyed(""), "have a key ''"},
		"a key with a NUL":       {keyed("a\x00"), "have a key"},
		"too long a key":         {keyed(strings.Repeat("k", 254)), "have a key"},
		"a list":                 {[]platform.BoundService{database("db", `[1]`)}, "are not an object"},
		"text":                   {[]platform.BoundService{database("db", `"x"`)}, "are not an object"},
		"too many files":         {[]platform.BoundService{database("db", string(lots))}, "1009 files"},
		"too large":              {[]platform.BoundService{database("db", `{"k":"`+strings.Repeat("x", 1_000_000)+`"}`)}, "at most 1000 with 1000000 bytes"},
	} {
		if files, err := platform.BindingFiles(c.services); files != nil || !fault.Is(err, fault.KindUnprocessable) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 600 {
			t.Errorf("%s: %v, want something about %q", name, err, c.says)
		}
	}
}

func withDatabase(s platform.Snapshot, credentials string, files bool) platform.Snapshot {
	s.Services, s.App.BindingFiles = []platform.BoundService{database("my-db", credentials)}, files
	return s
}

// TestServicesOfARelease: what fits into a variable is in one. What does not is in files, or the release is not made.
func TestServicesOfARelease(t *testing.T) {
	bare := platform.Snapshot{App: platform.App{GUID: "app", Name: "shop", Env: map[string]string{"A": "1", "SERVICE_BINDING_ROOT": "/mine"}}, Space: platform.Space{GUID: "space"}, Droplet: platform.Droplet{Image: "registry/x@sha256:1"}}
	web := platform.NewProcess("app", platform.WebProcess)
	web.GUID = "web"
	// The most that fits: the variable with its name, an equals sign and a zero byte has 131,072 bytes.
	most := func(more int) string {
		empty, _ := platform.VCAPServices([]platform.BoundService{database("my-db", `{"k":""}`)})
		return `{"k":"` + strings.Repeat("x", 131_072-len("VCAP_SERVICES=")-1-len(empty)+more) + `"}`
	}
	for name, c := range map[string]struct {
		credentials string
		files       bool
		variables   []string // of those about services
		says        string
	}{
		"in a variable":            {`{"k":"v"}`, false, []string{"VCAP_SERVICES"}, ""},
		"in both":                  {`{"k":"v"}`, true, []string{"SERVICE_BINDING_ROOT", "VCAP_SERVICES"}, ""},
		"as large as can be":       {most(0), false, []string{"VCAP_SERVICES"}, ""},
		"too large for a variable": {most(1), false, nil, "switch on the feature service-binding-k8s of the app, with `features: {service-binding-k8s: true}` in its manifest"},
		"just in both":             {most(0), true, []string{"SERVICE_BINDING_ROOT", "VCAP_SERVICES"}, ""},
		"in files only":            {most(1), true, []string{"SERVICE_BINDING_ROOT"}, ""},
		"too large for anything":   {most(1_000_000), true, nil, "Unbind services"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withDatabase(bare, c.credentials, c.files)
			r, err := s.Release(web)
			if c.says != "" {
				if !fault.Is(err, fault.KindUnprocessable) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "xxx") {
					t.Errorf("it says %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			system, err := s.System()
			if err != nil || !slices.Equal(slices.Sorted(maps.Keys(system)), c.variables) {
				t.Errorf("the variables are %v, %v", slices.Sorted(maps.Keys(system)), err)
			}
			for name, value := range system {
				if r.Env[name] != value {
					t.Errorf("%s of the release is another", name)
				}
			}
			if _, there := r.Env["VCAP_SERVICES"]; there != slices.Contains(c.variables, "VCAP_SERVICES") || (r.Files != nil) != c.files || c.files && r.Files["my-db/k"] == "" {
				t.Errorf("in a variable: %t, files: %d", there, len(r.Files))
			}
			if want := map[bool]string{true: platform.BindingsRoot, false: "/mine"}[c.files]; r.Env["SERVICE_BINDING_ROOT"] != want || r.Env["A"] != "1" {
				t.Errorf("the files are said to be at %q", r.Env["SERVICE_BINDING_ROOT"])
			}
		})
	}
}

func TestVariableTooLarge(t *testing.T) {
	r := release()
	r.Env["LARGE"] = strings.Repeat("x", 131_072-len("LARGE=")-1)
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	r.Env["LARGE"] += "x"
	if err := r.Check(); !fault.Is(err, fault.KindUnprocessable) || !strings.Contains(err.Error(), "process 'web' is too large at 'LARGE': a variable ends at 131072 bytes") {
		t.Error(err)
	}
}
