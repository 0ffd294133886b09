package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// The parameters that every list takes, beside those that narrow it. The cursor is ours: it stands in the link to the next page.
var paging = []string{"page", "per_page", "order_by", "cursor", "created_ats", "updated_ats", "guids"}

// listing is the parameters of a list: the common ones, and what else narrows or widens it.
func listing(more ...string) []string { return slices.Concat(more, paging) }

func badQuery(format string, args ...any) error {
	return fault.Invalid("The query parameter is invalid: "+format, args...).WithCode(v3.BadQueryParameter)
}

// known refuses parameters that a route does not take. An operator in brackets belongs to the parameter before it.
func known(q url.Values, valid []string) error {
	var strange []string
	for name := range q {
		base, rest, operated := strings.Cut(name, "[")
		if operated && base != "fields" {
			_, ok := operators[strings.TrimSuffix(rest, "]")]
			if !ok || !strings.HasSuffix(base, "_ats") {
				base = name
			}
		}
		if !slices.Contains(valid, base) {
			strange = append(strange, name)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	slices.Sort(strange)
	shown := slices.DeleteFunc(slices.Sorted(slices.Values(valid)), func(name string) bool { return name == "cursor" })
	return badQuery("Unknown query parameter(s): '%s'. Valid parameters are: '%s'", strings.Join(strange, "', '"), strings.Join(shown, "', '"))
}

var operators = map[string]string{"lt": "<", "gt": ">", "lte": "<=", "gte": ">="}

// readList reads what a client asks of a list. Orders are what it can be ordered by beside created_at and updated_at.
func readList(r *http.Request, orders ...string) (platform.List, error) {
	q := r.URL.Query()
	l := platform.List{Page: 1, PerPage: platform.DefaultPerPage, Values: map[string][]string{}}
	for name := range q {
		if err := readParameter(&l, name, q.Get(name)); err != nil {
			return l, err
		}
	}
	if l.OrderBy != "" && !slices.Contains(append(orders, "created_at", "updated_at"), l.OrderBy) {
		return l, badQuery("Order by can only be: %s", strings.Join(append(orders, "created_at", "updated_at"), ", "))
	}
	return l, nil
}

// ofApp narrows a list to the app in the path, which the sender must see.
func (s *Server) ofApp(r *http.Request, who platform.Who, l *platform.List) error {
	a, err := s.Store.App(r.Context(), who, r.PathValue("guid"))
	if err == nil {
		l.Values["app_guids"] = []string{a.GUID}
	}
	return err
}

func readParameter(l *platform.List, name, value string) (err error) {
	base, operator, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	switch base {
	case "page":
		l.Page, err = number("Page", value, 1, 1<<31)
	case "per_page":
		l.PerPage, err = number("Per page", value, 1, platform.MaxPerPage)
	case "order_by":
		l.OrderBy, l.Down = strings.CutPrefix(value, "-")
		l.OrderBy = strings.TrimPrefix(l.OrderBy, "+")
	case "cursor":
		l.After, err = readCursor(value)
	case "created_ats", "updated_ats":
		var bound platform.TimeBound
		bound, err = readTimes(strings.TrimSuffix(base, "s"), operator, value)
		l.Times = append(l.Times, bound)
	case "label_selector":
		if value != "" {
			l.Labels, err = platform.ParseSelector(value)
		}
	case "include", "fields", "embed":
	default:
		values := strings.Split(value, ",")
		if name == "names" { // a comma in a name is escaped once more than the rest
			for i := range values {
				values[i] = strings.NewReplacer("%2C", ",", "%2c", ",").Replace(values[i])
			}
		}
		l.Values[name] = values
	}
	return err
}

func number(name, text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, badQuery("%s must be between %d and %d", name, least, most)
	}
	return n, nil
}

func readTimes(column, operator, text string) (platform.TimeBound, error) {
	bound := platform.TimeBound{Column: column, Op: "="}
	if operator != "" {
		bound.Op = operators[operator]
	}
	for part := range strings.SplitSeq(text, ",") {
		at, err := time.Parse("2006-01-02T15:04:05Z", part)
		if err != nil {
			return bound, badQuery("%ss has an invalid timestamp format. Timestamps should be formatted as 'YYYY-MM-DDThh:mm:ssZ'", strings.ToUpper(column[:1])+strings.ReplaceAll(column[1:], "_", " "))
		}
		bound.Times = append(bound.Times, at)
	}
	if operator != "" && len(bound.Times) > 1 {
		return bound, badQuery("Only one timestamp can be compared with [%s]", operator)
	}
	return bound, nil
}

func readCursor(text string) (*platform.Cursor, error) {
	var c platform.Cursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return nil, badQuery("cursor is not one of ours. Follow pagination.next.href as it is")
	}
	return &c, nil
}

// reply writes a page of a list, each record in its shape.
func reply[T, U any](s *Server, w http.ResponseWriter, r *http.Request, l platform.List, page platform.Page[T], shape func(T) U) error {
	return web.JSON(w, http.StatusOK, pageOf(s, r, l, page, shape))
}

func pageOf[T, U any](s *Server, r *http.Request, l platform.List, page platform.Page[T], shape func(T) U) v3.List[U] {
	list := v3.List[U]{Pagination: s.pagination(r, l, page.Total, page.Next), Resources: make([]U, 0, len(page.Records))}
	for _, record := range page.Records {
		list.Resources = append(list.Resources, shape(record))
	}
	return list
}

func (s *Server) pagination(r *http.Request, l platform.List, total int, next *platform.Cursor) v3.Pagination {
	last := max((total+l.PerPage-1)/l.PerPage, 1)
	link := func(number int, after *platform.Cursor) *v3.Link {
		q := maps.Clone(r.URL.Query())
		q.Del("cursor")
		q.Set("page", strconv.Itoa(number))
		q.Set("per_page", strconv.Itoa(l.PerPage))
		if after != nil {
			b, _ := json.Marshal(after) // two strings
			q.Set("cursor", base64.RawURLEncoding.EncodeToString(b))
		}
		return &v3.Link{Href: s.at(r.URL.Path) + "?" + q.Encode()}
	}
	p := v3.Pagination{TotalResults: total, TotalPages: last, First: link(1, nil), Last: link(last, nil)}
	if next != nil {
		p.Next = link(l.Page+1, next)
	}
	if l.Page > 1 {
		p.Previous = link(min(l.Page-1, last), nil)
	}
	return p
}

// include tells which records beside the listed ones are asked for.
func include(r *http.Request, valid ...string) (map[string]bool, error) {
	asked := map[string]bool{}
	text := r.URL.Query().Get("include")
	if text == "" {
		return asked, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(valid, name) {
			return nil, badQuery("Invalid included resource: '%s'. Valid included resources are: '%s'", name, strings.Join(valid, "', '"))
		}
		asked[name] = true
	}
	return asked, nil
}

// static makes a page of what was given when the process started; it is short, and never changes.
func static[T any](l platform.List, all []T, value func(record T, parameter string) string) platform.Page[T] {
	var kept []T
	for _, record := range all {
		fits := true
		for parameter, values := range l.Values {
			fits = fits && slices.Contains(values, value(record, parameter))
		}
		for _, requirement := range l.Labels { // there are no labels
			fits = fits && requirement.Not
		}
		if fits {
			kept = append(kept, record)
		}
	}
	from := min((l.Page-1)*l.PerPage, len(kept))
	to := min(from+l.PerPage, len(kept))
	page := platform.Page[T]{Records: kept[from:to], Total: len(kept)}
	if to < len(kept) {
		page.Next = &platform.Cursor{GUID: fmt.Sprint(to)}
	}
	return page
}

// distinct lists what records refer to, each once.
func distinct[T any](records []T, of func(T) string) []string {
	seen := map[string]bool{}
	var guids []string
	for _, record := range records {
		if guid := of(record); guid != "" && !seen[guid] {
			seen[guid] = true
			guids = append(guids, guid)
		}
	}
	return guids
}

// refer lists records that others refer to, in their shape.
func refer[T, U any](page platform.Page[T], shape func(T) U) []U {
	list := make([]U, 0, len(page.Records))
	for _, record := range page.Records {
		list = append(list, shape(record))
	}
	return list
}
