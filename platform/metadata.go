package platform

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// Metadata is what people note on a record. Lists can be narrowed by labels, not by annotations.
type Metadata struct {
	Labels      map[string]string
	Annotations map[string]string
}

// MetadataChange says what to note; nil takes a note away.
type MetadataChange struct {
	Labels      map[string]*string
	Annotations map[string]*string
}

// Apply changes the notes.
func (m *Metadata) Apply(c MetadataChange) {
	m.Labels, m.Annotations = changed(m.Labels, c.Labels), changed(m.Annotations, c.Annotations)
}

func changed(have map[string]string, change map[string]*string) map[string]string {
	now := maps.Clone(have)
	if now == nil {
		now = map[string]string{}
	}
	for key, value := range change {
		if value == nil {
			delete(now, key)
		} else {
			now[key] = *value
		}
	}
	return now
}

const (
	maxNotes      = 50 // labels, and as many annotations
	maxKey        = 63
	maxPrefix     = 253
	maxAnnotation = 5000
)

var (
	noteKey    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
	notePrefix = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)
)

// Check says what is wrong with the notes. The rules are those of Kubernetes labels, and the words those of Cloud Foundry.
func (m *Metadata) Check() error {
	if len(m.Labels) > maxNotes {
		return fault.Unprocessable("Failed to add %d labels because it would exceed maximum of %d", len(m.Labels), maxNotes)
	}
	if len(m.Annotations) > maxNotes {
		return fault.Unprocessable("Failed to add %d annotations because it would exceed maximum of %d", len(m.Annotations), maxNotes)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		if err := checkKey("label", key); err != nil {
			return err
		}
		if value := m.Labels[key]; value != "" && (len(value) > maxKey || !noteKey.MatchString(value)) {
			return fault.Unprocessable("Metadata label value error: '%s' must be at most %d alphanumeric characters, '-', '_' or '.', and begin and end with an alphanumeric one", value, maxKey)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		if err := checkKey("annotation", key); err != nil {
			return err
		}
		if utf8.RuneCountInString(m.Annotations[key]) > maxAnnotation {
			return fault.Unprocessable("Metadata annotation value error: '%s' is greater than %d characters", key, maxAnnotation)
		}
	}
	return nil
}

func checkKey(kind, key string) error {
	name := key
	if prefix, rest, has := strings.Cut(key, "/"); has {
		name = rest
		switch {
		case len(prefix) > maxPrefix || !notePrefix.MatchString(prefix):
			return fault.Unprocessable("Metadata %s key error: prefix '%s' must be in valid dns format", kind, prefix)
		case strings.EqualFold(prefix, "cloudfoundry.org"):
			return fault.Unprocessable("Metadata %s key error: prefix 'cloudfoundry.org' is reserved", kind)
		}
	}
	if len(name) > maxKey || !noteKey.MatchString(name) {
		return fault.Unprocessable("Metadata %s key error: '%s' must be 1 to %d alphanumeric characters, '-', '_' or '.', and begin and end with an alphanumeric one", kind, key, maxKey)
	}
	return nil
}

// Requirement is one condition on labels.
type Requirement struct {
	Key    string
	Not    bool     // the label is missing, or is none of the values
	Values []string // none: the label is there at all
}

var (
	setBased = regexp.MustCompile(`^(\S+)\s+(in|notin)\s*\(([^()]*)\)$`)
	equality = regexp.MustCompile(`^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$`)
)

// ParseSelector reads a label selector: conditions with commas between them, each one of key, !key, key=v, key==v, key!=v,
// key in (v,w), key notin (v,w).
func ParseSelector(text string) ([]Requirement, error) {
	var all []Requirement
	for _, part := range splitOutside(text) {
		part = strings.TrimSpace(part)
		r, ok := requirement(part)
		if !ok || checkKey("label", strings.TrimPrefix(r.Key, "cloudfoundry.org/")) != nil {
			return nil, fault.Invalid("The query parameter is invalid: Invalid label_selector value").WithCode("CF-BadQueryParameter")
		}
		all = append(all, r)
	}
	return all, nil
}

func requirement(part string) (Requirement, bool) {
	if m := setBased.FindStringSubmatch(part); m != nil {
		r := Requirement{Key: m[1], Not: m[2] == "notin"}
		for v := range strings.SplitSeq(m[3], ",") {
			r.Values = append(r.Values, strings.TrimSpace(v))
		}
		return r, true
	}
	if m := equality.FindStringSubmatch(part); m != nil {
		return Requirement{Key: m[1], Not: m[2] == "!=", Values: []string{m[3]}}, true
	}
	key, not := strings.CutPrefix(part, "!")
	return Requirement{Key: strings.TrimSpace(key), Not: not}, key != ""
}

// splitOutside splits at commas that are not in parentheses.
func splitOutside(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}
