package postgres

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
)

// extensions are those that an owner may install: PostgreSQL calls them trusted, because they give no way out of the database.
var extensions = []string{"btree_gin", "btree_gist", "citext", "cube", "fuzzystrmatch", "hstore", "intarray", "isn", "lo", "ltree", "pg_trgm", "pgcrypto",
	"seg", "tablefunc", "tsm_system_rows", "tsm_system_time", "unaccent", "uuid-ossp"}

// parameters are what people may say with -c.
type parameters struct {
	Extensions []string `json:"extensions"`
}

// readParameters takes what a platform sends for an instance. The list comes back sorted, each name once.
func readParameters(raw json.RawMessage) (parameters, error) {
	p := parameters{Extensions: []string{}}
	if err := readStrict(raw, &p, "The parameters of this service are extensions, a list of names such as [\"pg_trgm\"]"); err != nil {
		return p, err
	}
	for _, name := range p.Extensions {
		if !slices.Contains(extensions, name) {
			return p, fault.Invalid("The extension %.60q is not one that can be had here. Choose from %s.", name, strings.Join(extensions, ", "))
		}
	}
	slices.Sort(p.Extensions)
	p.Extensions = append([]string{}, slices.Compact(p.Extensions)...)
	return p, nil
}

// noParameters is for bindings, which have none.
func noParameters(raw json.RawMessage) error {
	return readStrict(raw, &struct{}{}, "A binding to this service takes no parameters")
}

func readStrict(raw json.RawMessage, into any, sentence string) error {
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return fault.Invalid("%s. Leave out what is not named there.", sentence).Because(err)
	}
	return nil
}
