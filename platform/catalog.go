package platform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// Catalog is what a broker offers, as it says so itself: without guids, dates or visibility.
type Catalog []CatalogOffering

// CatalogOffering is one kind of service with its plans.
type CatalogOffering struct {
	ServiceOffering

	Plans []ServicePlan
}

// What a catalog may hold at most. The protocol allows a schema 64 KiB; nothing else needs more.
const (
	maxOfferings    = 1000
	maxPlans        = 10_000 // of all its offerings
	maxCatalogName  = 255
	maxCatalogText  = 10_000
	maxCatalogJSON  = 64 << 10
	maxCatalogDepth = 64
	maxCatalogTags  = 2048 // characters, together
	maxCatalogWait  = 366 * 24 * time.Hour
	maxDigits       = 400
	maxFlaws        = 20 // that are told one by one
)

// Check says everything that is wrong with a catalog, and brings what brokers may write freely into a form that can be kept.
func (c Catalog) Check() error {
	var f flaws
	if len(c) == 0 {
		f.add("The catalog has no services. Give it at least one.")
	}
	plans := 0
	for _, o := range c {
		plans += len(o.Plans)
	}
	if len(c) > maxOfferings || plans > maxPlans {
		f.add("The catalog has %d services and %d plans. At most %d services and %d plans are possible.", len(c), plans, maxOfferings, maxPlans)
		return f.fault()
	}
	ids, names, planIDs := map[string]string{}, map[string]string{}, map[string]string{}
	for i := range c {
		o := &c[i]
		service := called("Service", i, o.Name)
		f.unique(service, "id", o.UniqueID, ids)
		f.unique(service, "name", o.Name, names)
		f.offering(service, &o.ServiceOffering)
		if len(o.Plans) == 0 {
			f.add("%s has no plans. Give it at least one.", service)
		}
		planNames := map[string]string{}
		for j := range o.Plans {
			p := &o.Plans[j]
			plan := called("Plan", j, p.Name) + " of " + lowerFirst(service)
			f.unique(plan, "id", p.UniqueID, planIDs)
			f.unique(plan, "name", p.Name, planNames)
			f.plan(plan, p)
		}
	}
	return f.fault()
}

// MissingPlans warns of plans that a catalog does not have any more, though there are instances of them.
func MissingPlans(plans []string) string {
	told, more := plans, ""
	if len(plans) > maxFlaws {
		told, more = plans[:maxFlaws], fmt.Sprintf(" and %d more", len(plans)-maxFlaws)
	}
	return fmt.Sprintf("Plans that are in use are missing from the broker's catalog: %s%s. Their service instances stay, but nobody can have new ones. Move them to other plans, or have the broker offer the plans again.",
		strings.Join(told, ", "), more)
}

// called is how a flaw names what it is in: by its name, or by its place if it has none.
func called(what string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s %d", what, i+1)
	}
	return fmt.Sprintf("%s '%s'", what, clipText(name))
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// flaws are sentences about what is wrong.
type flaws struct {
	told []string
	more int
}

func (f *flaws) add(format string, args ...any) {
	if len(f.told) == maxFlaws {
		f.more++
		return
	}
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

func (f *flaws) fault() error {
	if len(f.told) == 0 {
		return nil
	}
	if f.more > 0 {
		f.told = append(f.told, fmt.Sprintf("And %d more.", f.more))
	}
	return fault.Unprocessable("The catalog of the broker cannot be used. Have its operator mend it, and update the broker then:\n- %s", strings.Join(f.told, "\n- "))
}

// unique wants a name that is there, and that nothing beside it has. Seen is who has it.
func (f *flaws) unique(called, field, value string, seen map[string]string) {
	if !f.name(called, field, value) {
		return
	}
	if other, taken := seen[value]; taken {
		f.add("%s has the %s '%s', and so has %s. Give each its own.", called, field, clipText(value), lowerFirst(other))
		return
	}
	seen[value] = called
}

func (f *flaws) name(called, field, value string) bool {
	switch {
	case strings.TrimSpace(value) == "":
		f.add("%s has no %s.", called, field)
	case utf8.RuneCountInString(value) > maxCatalogName:
		f.add("%s: its %s has %d characters. At most %d are possible.", called, field, utf8.RuneCountInString(value), maxCatalogName)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		f.add("%s has control characters in its %s.", called, field)
	default:
		return true
	}
	return false
}

func (f *flaws) text(called, field, value string) {
	switch {
	case utf8.RuneCountInString(value) > maxCatalogText:
		f.add("%s: its %s has %d characters. At most %d are possible.", called, field, utf8.RuneCountInString(value), maxCatalogText)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		f.add("%s has control characters in its %s.", called, field)
	}
}

func (f *flaws) offering(called string, o *ServiceOffering) {
	if o.Description == "" {
		f.add("%s has no description.", called)
	}
	f.text(called, "description", o.Description)
	f.text(called, "documentation URL", o.DocumentationURL)
	f.words(called, "tags", o.Tags)
	f.words(called, "requires", o.Requires)
	f.object(called, "metadata", &o.Catalog)
}

func (f *flaws) words(called, field string, words []string) {
	together := strings.Join(words, "")
	switch {
	case utf8.RuneCountInString(together) > maxCatalogTags || len(words) > maxCatalogTags:
		f.add("%s has more than %d characters in its %s.", called, maxCatalogTags, field)
	case !utf8.ValidString(together) || strings.ContainsFunc(together, unicode.IsControl):
		f.add("%s has control characters in its %s.", called, field)
	}
}

var semanticVersion = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

func (f *flaws) plan(called string, p *ServicePlan) {
	if p.Description == "" {
		f.add("%s has no description.", called)
	}
	f.text(called, "description", p.Description)
	if p.MaxPolling < 0 || p.MaxPolling > maxCatalogWait {
		f.add("%s has a maximum polling duration that is negative or longer than a year.", called)
	}
	if m := p.Maintenance; m != nil {
		if len(m.Version) > maxCatalogName || !semanticVersion.MatchString(m.Version) {
			f.add("%s has the maintenance version '%s', which is not a semantic version such as 1.2.3.", called, clipText(m.Version))
		}
		f.text(called, "maintenance description", m.Description)
	}
	f.object(called, "metadata", &p.Catalog)
	f.object(called, "schemas", &p.Schemas)
}

// object wants an object that the database can hold, and writes it as one: none is an empty one.
func (f *flaws) object(called, field string, raw *json.RawMessage) {
	if len(*raw) > maxCatalogJSON {
		f.add("%s has %d bytes of %s. At most %d are possible.", called, len(*raw), field, maxCatalogJSON)
		return
	}
	kept, wrong := keepObject(*raw)
	if wrong != "" {
		f.add("%s has %s that cannot be kept: %s.", called, field, wrong)
		return
	}
	*raw = kept
}

// keepObject reads an object and writes it again, so that nothing is in it which JSON allows and jsonb does not.
func keepObject(raw json.RawMessage) (kept json.RawMessage, wrong string) {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		return json.RawMessage(`{}`), ""
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	var object map[string]any
	if err := in.Decode(&object); err != nil {
		return nil, "it is not a JSON object"
	}
	if _, err := in.Token(); err != io.EOF {
		return nil, "something stands behind the JSON object"
	}
	if wrong := unkept(object, maxCatalogDepth); wrong != "" {
		return nil, wrong
	}
	kept, err := json.Marshal(object)
	if err != nil {
		return nil, "it is not a JSON object"
	}
	return kept, ""
}

// unkept says what in a value the database does not take.
func unkept(value any, depth int) string {
	if depth == 0 {
		return "it is nested too deeply"
	}
	switch v := value.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return "a text has a NUL character"
		}
	case json.Number:
		if n, err := strconv.ParseFloat(v.String(), 64); err != nil || len(v) > maxDigits || n == 0 && strings.ContainsAny(v.String(), "eE") {
			return "a number is too large, or too small"
		}
	case []any:
		for _, one := range v {
			if wrong := unkept(one, depth-1); wrong != "" {
				return wrong
			}
		}
	case map[string]any:
		for name, one := range v {
			if strings.ContainsRune(name, 0) {
				return "a name has a NUL character"
			}
			if wrong := unkept(one, depth-1); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}
