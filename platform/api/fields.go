package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// Clients ask for single fields of records beside the listed ones with fields[service_offering.service_broker]=guid,name. The query of
// such a route names "fields", and its handler does:
//
//	asked, err := fields(r, fieldSet{"service_broker": {"guid", "name"}})     // map[string][]string; nothing asked: empty
//	if of := asked["service_broker"]; of != nil {
//		beside["service_brokers"], err = pick(refer(found, s.serviceBroker), of) // records in their shape, only these fields of each
//	}
//	return web.JSON(w, http.StatusOK, withPage(pageOf(s, r, l, page, s.servicePlan), beside))
//
// or, for one record, writes a struct of its shape and Included beside (see getRoute). Whole records, those of include=, stand in the same
// beside: beside["service_offerings"] = refer(found, s.serviceOffering).

// fieldSet says which fields of which records can be asked for. A field within another has a dot: relationships.space.
type fieldSet map[string][]string

// beside is what stands under included: lists of records, or of parts of them.
type beside map[string]any

// fields reads which fields of which records are asked for.
func fields(r *http.Request, valid fieldSet) (map[string][]string, error) {
	asked := map[string][]string{}
	for name, values := range r.URL.Query() {
		if base, _, _ := strings.Cut(name, "["); base != "fields" {
			continue
		}
		record := strings.TrimSuffix(strings.TrimPrefix(name, "fields["), "]")
		known, ok := valid[record]
		if !ok || name != "fields["+record+"]" {
			return nil, badQuery("Fields valid resources are: '%s'. Ask for them as fields[resource]=name,guid", strings.Join(slices.Sorted(maps.Keys(valid)), "', '"))
		}
		for field := range strings.SplitSeq(strings.Join(values, ","), ",") {
			if !slices.Contains(known, field) {
				return nil, badQuery("Fields valid keys for '%s' are: '%s'", record, strings.Join(known, "', '"))
			}
			asked[record] = append(asked[record], field)
		}
	}
	return asked, nil
}

// pick leaves only some fields of each record.
func pick[T any](records []T, fields []string) ([]object, error) {
	parts := make([]object, 0, len(records))
	for _, record := range records {
		text, err := json.Marshal(record)
		if err != nil {
			return nil, err
		}
		part := object{}
		for _, field := range fields {
			if err := part.take(text, field); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// object is a JSON object of which not everything is known.
type object map[string]any

// take copies a field of a written record, or a field within a field.
func (o object) take(text []byte, field string) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	name, rest, within := strings.Cut(field, ".")
	value, ok := all[name]
	switch {
	case !ok:
		return nil
	case !within:
		o[name] = value
		return nil
	}
	inner, ok := o[name].(object)
	if !ok {
		inner = object{}
		o[name] = inner
	}
	return inner.take(value, rest)
}

// pageBeside is a page with what stands beside its records.
type pageBeside[T any] struct {
	v3.List[T]

	Included beside `json:"included,omitempty"` // in place of the list's
}

func withPage[T any](list v3.List[T], included beside) pageBeside[T] {
	return pageBeside[T]{List: list, Included: included}
}
