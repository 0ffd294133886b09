package api

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

const defaultPage = 100

// readPage reads filter, sortBy, sortOrder, startIndex and count.
func readPage(r *http.Request, attrs []string) (store.Page, error) {
	q := r.URL.Query()
	p := store.Page{Start: 1, Count: defaultPage, Down: strings.HasPrefix(strings.ToLower(q.Get("sortOrder")), "desc")}
	var err error
	if p.Filter, err = auth.ParseFilter(q.Get("filter"), attrs...); err != nil {
		return p, err
	}
	if p.SortBy, err = attribute(q.Get("sortBy"), attrs); err != nil {
		return p, err
	}
	for name, into := range map[string]*int{"startIndex": &p.Start, "count": &p.Count} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || n > 1<<30 {
				return p, fault.Invalid("%s must be a whole number.", name)
			}
			*into = n
		}
	}
	return p, nil
}

// attribute finds what to sort by, also without the part before its dot.
func attribute(name string, attrs []string) (string, error) {
	if name == "" {
		return "", nil
	}
	for _, a := range attrs {
		if strings.EqualFold(a, name) || strings.EqualFold(a, "meta."+name) || strings.EqualFold(a, "name."+name) {
			return a, nil
		}
	}
	return "", fault.Invalid("sortBy: %q is not known. Use one of %s.", name, strings.Join(attrs, ", "))
}

// present makes the protocol's list of ours.
func present[T, U any](records []T, total int, p store.Page, shape func(T) U) uaa.Page[U] {
	page := uaa.Page[U]{Resources: make([]U, 0, len(records)), StartIndex: max(p.Start, 1), ItemsPerPage: len(records), TotalResults: total, Schemas: uaa.Schemas}
	for _, r := range records {
		page.Resources = append(page.Resources, shape(r))
	}
	return page
}

// readRaw takes a JSON body that is read later, onto a record as it is then.
func readRaw(r *http.Request) ([]byte, error) {
	var body json.RawMessage
	err := web.Read(r, &body)
	return body, err
}

// overlay writes what a body names onto a shape and leaves the rest.
func overlay(body []byte, shape any) error {
	r := &http.Request{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}
	return web.Read(r, shape)
}

func (s *Server) listEvents(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	q := r.URL.Query()
	before, count := int64(0), defaultPage
	var err error
	if text := q.Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 0 {
			return fault.Invalid("before must be the id of an event.")
		}
	}
	if text := q.Get("count"); text != "" {
		if count, err = strconv.Atoi(text); err != nil || count < 1 || count > store.MaxPage {
			return fault.Invalid("count must be between 1 and %d.", store.MaxPage)
		}
	}
	events, err := s.Store.Events(r.Context(), q.Get("target"), before, count)
	if err != nil {
		return err
	}
	type actor struct {
		Client string `json:"client_id"`
		User   string `json:"user_id,omitempty"`
		Name   string `json:"name"`
		From   string `json:"address"`
	}
	type event struct {
		ID      int64           `json:"id"`
		At      time.Time       `json:"at"`
		Action  string          `json:"action"`
		Kind    string          `json:"target_kind"`
		Target  string          `json:"target"`
		Actor   actor           `json:"actor"`
		Request string          `json:"request_id"`
		Detail  json.RawMessage `json:"detail"`
	}
	list := []event{}
	for _, e := range events {
		list = append(list, event{ID: e.ID, At: e.At, Action: e.Action, Kind: e.Kind, Target: e.Target, Request: e.RequestID, Detail: e.Detail,
			Actor: actor{Client: e.ActorClient, User: e.ActorUser, Name: e.ActorName, From: e.Address}})
	}
	return web.JSON(w, http.StatusOK, map[string]any{"resources": list})
}
