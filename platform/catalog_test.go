package platform

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func offer(change func(*CatalogOffering)) CatalogOffering {
	o := CatalogOffering{ServiceOffering: ServiceOffering{UniqueID: "s1", Name: "sql", Description: "a database", Tags: []string{"sql"}, Catalog: json.RawMessage(`{"a":1}`)},
		Plans: []ServicePlan{{UniqueID: "p1", Name: "small", Description: "a small one", MaxPolling: time.Hour, Maintenance: &Maintenance{Version: "1.2.3-rc.1+7"}}}}
	change(&o)
	return o
}

func plan(change func(*ServicePlan)) func(*CatalogOffering) {
	return func(o *CatalogOffering) { change(&o.Plans[0]) }
}

// TestCatalogCheck gives catalogs that brokers really send, and some that only an enemy would.
func TestCatalogCheck(t *testing.T) {
	long, asItIs := strings.Repeat("é", 256), func(*CatalogOffering) {}
	other := func(o *CatalogOffering) { o.UniqueID, o.Name, o.Plans[0].UniqueID = "s2", "cache", "p2" }
	manyPlans := func(o *CatalogOffering) { o.Plans = make([]ServicePlan, maxPlans+1) }
	for name, row := range map[string]struct {
		catalog Catalog
		want    []string // each somewhere in the refusal; none: it is fine
	}{
		"one service":              {Catalog{offer(asItIs)}, nil},
		"two services":             {Catalog{offer(asItIs), offer(other)}, nil},
		"no services":              {nil, []string{"The catalog has no services."}},
		"no plans":                 {Catalog{offer(func(o *CatalogOffering) { o.Plans = nil })}, []string{"Service 'sql' has no plans."}},
		"no id":                    {Catalog{offer(func(o *CatalogOffering) { o.UniqueID = "" })}, []string{"Service 'sql' has no id."}},
		"no name":                  {Catalog{offer(func(o *CatalogOffering) { o.Name = " " })}, []string{"Service ' ' has no name."}},
		"no description":           {Catalog{offer(func(o *CatalogOffering) { o.Description = "" })}, []string{"Service 'sql' has no description."}},
		"a long id":                {Catalog{offer(func(o *CatalogOffering) { o.UniqueID = long })}, []string{"its id has 256 characters"}},
		"a long name":              {Catalog{offer(func(o *CatalogOffering) { o.Name = long })}, []string{"its name has 256 characters"}},
		"an odd name":              {Catalog{offer(func(o *CatalogOffering) { o.Name = "a\x1b[31m" })}, []string{"control characters in its name"}},
		"a long description":       {Catalog{offer(func(o *CatalogOffering) { o.Description = strings.Repeat("x", 10_001) })}, []string{"its description has 10001 characters"}},
		"a description with NUL":   {Catalog{offer(func(o *CatalogOffering) { o.Description = "a\x00" })}, []string{"control characters in its description"}},
		"too many tags":            {Catalog{offer(func(o *CatalogOffering) { o.Tags = []string{strings.Repeat("x", 2049)} })}, []string{"in its tags"}},
		"empty tags without end":   {Catalog{offer(func(o *CatalogOffering) { o.Tags = make([]string, 3000) })}, []string{"in its tags"}},
		"a tag with NUL":           {Catalog{offer(func(o *CatalogOffering) { o.Requires = []string{"\x00"} })}, []string{"control characters in its requires"}},
		"metadata of another type": {Catalog{offer(func(o *CatalogOffering) { o.Catalog = json.RawMessage(`[1]`) })}, []string{"metadata that cannot be kept: it is not a JSON object"}},
		"large metadata":           {Catalog{offer(func(o *CatalogOffering) { o.Catalog = json.RawMessage(`{"a":"` + strings.Repeat("x", 70_000) + `"}`) })}, []string{"bytes of metadata"}},
		"ids of services twice":    {Catalog{offer(asItIs), offer(func(o *CatalogOffering) { other(o); o.UniqueID = "s1" })}, []string{"Service 'cache' has the id 's1', and so has service 'sql'."}},
		"names of services twice":  {Catalog{offer(asItIs), offer(func(o *CatalogOffering) { other(o); o.Name = "sql" })}, []string{"Service 'sql' has the name 'sql', and so has service 'sql'."}},
		"ids of plans twice":       {Catalog{offer(asItIs), offer(func(o *CatalogOffering) { other(o); o.Plans[0].UniqueID = "p1" })}, []string{"Plan 'small' of service 'cache' has the id 'p1', and so has plan 'small' of service 'sql'."}},
		"names of plans twice": {Catalog{offer(func(o *CatalogOffering) {
			o.Plans = append(o.Plans, ServicePlan{UniqueID: "p9", Name: "small", Description: "d"})
		})}, []string{"has the name 'small', and so has plan 'small' of service 'sql'."}},
		"a plan without anything":    {Catalog{offer(plan(func(p *ServicePlan) { *p = ServicePlan{} }))}, []string{"Plan 1 of service 'sql' has no id.", "Plan 1 of service 'sql' has no name.", "Plan 1 of service 'sql' has no description."}},
		"polling for ever":           {Catalog{offer(plan(func(p *ServicePlan) { p.MaxPolling = 1 << 62 }))}, []string{"maximum polling duration"}},
		"polling for less than none": {Catalog{offer(plan(func(p *ServicePlan) { p.MaxPolling = -1 }))}, []string{"maximum polling duration"}},
		"no semantic version":        {Catalog{offer(plan(func(p *ServicePlan) { p.Maintenance.Version = "v1" }))}, []string{"'v1', which is not a semantic version"}},
		"schemas that are nested": {Catalog{offer(plan(func(p *ServicePlan) {
			p.Schemas = json.RawMessage(`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`)
		}))}, []string{"nested too deeply"}},
		"more plans than possible": {Catalog{offer(manyPlans)}, []string{"1 services and 10001 plans. At most 1000 services and 10000 plans"}},
		"more flaws than are told": {Catalog{offer(func(o *CatalogOffering) { o.Plans = make([]ServicePlan, 100) })}, []string{"And 280 more."}},
	} {
		t.Run(name, func(t *testing.T) {
			err := row.catalog.Check()
			if (err == nil) != (row.want == nil) {
				t.Fatalf("refused with %v, want %q", err, row.want)
			}
			for _, words := range row.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("refused with %v\nwant %q", err, words)
				}
			}
		})
	}
}

func TestMissingPlans(t *testing.T) {
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprint("plan", i))
	}
	if got := MissingPlans(many); !strings.Contains(got, "plan19 and 5 more.") || strings.Contains(got, "plan20") {
		t.Error(got)
	}
}

// FuzzCatalogCheck lets a broker say anything: what passes is short enough, and is JSON that was understood.
func FuzzCatalogCheck(f *testing.F) {
	f.Add("s1", "sql", "p1", []byte(`{"costs":[{"amount":{"usd":1}}]}`))
	f.Add("", "\x00", "s1", []byte(`{"a":"\ud800"}`))
	f.Fuzz(func(t *testing.T, id, name, planID string, metadata []byte) {
		o := offer(plan(func(p *ServicePlan) { p.UniqueID, p.Schemas = planID, metadata }))
		o.UniqueID, o.Name, o.Catalog = id, name, metadata
		c := Catalog{o}
		if err := c.Check(); err != nil {
			if len(err.Error()) > 20_000 {
				t.Errorf("a refusal of %d bytes", len(err.Error()))
			}
			return
		}
		var object map[string]any
		if err := json.Unmarshal(c[0].Catalog, &object); err != nil || object == nil || len(metadata) > 64<<10 {
			t.Errorf("passed %d bytes as %.80s: %v", len(metadata), c[0].Catalog, err)
		}
		if id == "" || len(name) > 4*255 || strings.ContainsRune(planID, 0) {
			t.Errorf("passed %q %q %q", id, name, planID)
		}
	})
}

func TestServiceBrokerCheck(t *testing.T) {
	for name, row := range map[string]struct{ url, want string }{
		"plain":        {"http://broker.example.com", ""},
		"path":         {"https://broker.example.com:8443/v2/", ""},
		"none":         {"", "must be a valid url"},
		"other scheme": {"file:///etc/passwd", "must be a valid url"},
		"no host":      {"http://:80", "must be a valid url"},
		"control":      {"http://a\nb", "must be a valid url"},
		"user":         {"http://u:secret@broker.example.com", "must not contain a user"},
		"hidden user":  {"ftp://u:secret@broker.example.com", "must be a valid url"},
		"query":        {"http://broker.example.com?a=b", "must not contain a query"},
		"mark":         {"http://broker.example.com?", "must not contain a query"},
		"fragment":     {"http://broker.example.com#a", "must not contain a query"},
		"long":         {"http://" + strings.Repeat("a", 3000), "too long"},
	} {
		b := ServiceBroker{Name: "b", URL: row.url}
		err := b.Check()
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
		if err == nil && strings.HasSuffix(b.URL, "/") {
			t.Errorf("%s: the slash stays: %s", name, b.URL)
		}
	}
	for _, a := range []BrokerAccount{{}, {"u", ""}, {"", "secret"}, {"u:v", "secret"}, {"u", "secret\n"}, {"u\x00", "secret"}, {"u", "secret" + strings.Repeat("x", 2000)}} {
		if err := a.Check(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if err := (&BrokerAccount{"u", "p:w ö"}).Check(); err != nil {
		t.Error(err)
	}
}
