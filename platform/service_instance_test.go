package platform

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckObject(t *testing.T) {
	for text, want := range map[string]string{
		``: "", `null`: "", ` null `: "", `{}`: "{}", " {\"a\": 1}\n": `{"a": 1}`,
		`[]`: "refused", `"{}"`: "refused", `1`: "refused", `{`: "refused", `{} {}`: "refused", `true`: "refused",
	} {
		got, err := CheckObject("Parameters", json.RawMessage(text))
		if err != nil {
			if err.Error() != "Parameters must be an object" {
				t.Errorf("%q: %v", text, err)
			}
			got = json.RawMessage("refused")
		}
		if string(got) != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestInstanceCheck(t *testing.T) {
	for _, test := range []struct {
		i    ServiceInstance
		fine bool
	}{
		{ServiceInstance{Name: "a db"}, true}, {ServiceInstance{Name: strings.Repeat("ü", 255)}, true}, {ServiceInstance{}, false}, {ServiceInstance{Name: strings.Repeat("x", 256)}, false},
		{ServiceInstance{Name: "a\nb"}, false}, {ServiceInstance{Name: "db", Tags: []string{strings.Repeat("x", 1024), strings.Repeat("ü", 1024)}}, true},
		{ServiceInstance{Name: "db", Tags: []string{strings.Repeat("x", 2048), "y"}}, false}, {ServiceInstance{Name: "db", Tags: []string{""}}, false}, {ServiceInstance{Name: "db", Tags: []string{"a\x00"}}, false},
		{ServiceInstance{Name: "db", Metadata: Metadata{Labels: map[string]string{"-": ""}}}, false},
	} {
		if err := test.i.Check(); (err == nil) != test.fine {
			t.Errorf("%.40q %d tags: %v", test.i.Name, len(test.i.Tags), err)
		}
	}
}

func TestMayBind(t *testing.T) {
	db := ServiceInstance{GUID: "db"}
	ready := LastOperation{Type: "create", State: OperationSucceeded}
	failed := LastOperation{Type: "create", State: OperationFailed}
	stays := LastOperation{Type: "delete", State: OperationFailed} // it could not be deleted
	of := func(instance, name string, o LastOperation) ServiceBinding {
		return ServiceBinding{InstanceGUID: instance, Name: name, LastOperation: o}
	}
	five := []ServiceBinding{of("db", "", ready), of("db", "", ready), of("db", "", ready), of("db", "", stays), of("db", "", ready)}
	for name, test := range map[string]struct {
		wants string
		again bool
		has   []ServiceBinding
		fine  bool
	}{
		"the first":                      {"", false, nil, true},
		"beside another instance":        {"main", false, []ServiceBinding{of("mq", "queue", ready)}, true},
		"a name of another instance":     {"queue", false, []ServiceBinding{of("mq", "queue", ready)}, false},
		"a name of one that failed":      {"queue", false, []ServiceBinding{of("mq", "queue", failed)}, true},
		"no name twice":                  {"", false, []ServiceBinding{of("mq", "", ready)}, true},
		"bound already":                  {"", false, []ServiceBinding{of("db", "", ready)}, false},
		"bound, and could not be undone": {"", false, []ServiceBinding{of("db", "", stays)}, false},
		"one that failed":                {"", false, []ServiceBinding{of("db", "", failed)}, true},
		"again, by the same name":        {"main", true, []ServiceBinding{of("db", "main", ready)}, true},
		"again, a fifth time":            {"", true, five[1:], true},
		"again, too often":               {"", true, five, false},
	} {
		if err := db.MayBind(ServiceBinding{Name: test.wants}, test.again, test.has); (err == nil) != test.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}
