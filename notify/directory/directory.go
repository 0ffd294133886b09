// Package directory knows who an audience is. It asks the authorization server and the platform over HTTP, with credentials of its
// own, page by page: it never holds more than one page.
package directory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/notify"
)

// Directory asks both servers. They take the same token, so both are asked by the same means.
type Directory struct {
	Auth     *uaa.Conn
	Platform *uaa.Conn // nil: there is no platform, and spaces and organizations cannot be reached
}

// Page is a part of an audience. Next is where to go on; it is empty and Done is true at the end.
type Page struct {
	People []notify.Person
	Next   string
	Done   bool
}

// Names are what the platform calls the things of an audience.
type Names struct{ Space, Organization, OrganizationGUID string }

// ErrGone says that there is no such audience, and that asking again will not help. Its text is for the sender to read.
type ErrGone struct{ Reason string }

func (e *ErrGone) Error() string { return e.Reason }

func gone(format string, args ...any) error { return &ErrGone{Reason: fmt.Sprintf(format, args...)} }

// Members reads one page of an audience, from a cursor that is empty at first.
func (d *Directory) Members(ctx context.Context, a notify.Audience, cursor string, count int) (Page, error) {
	switch a.Kind {
	case notify.ToEmail:
		address, err := notify.Address(a.ID)
		return Page{People: []notify.Person{{Address: address}}, Done: true}, err
	case notify.ToUser:
		return d.user(ctx, a.ID)
	case notify.ToEveryone:
		return d.walk(ctx, "", cursor, count)
	case notify.ToScope:
		if cursor == "" {
			if err := d.scope(ctx, a.ID); err != nil {
				return Page{}, err
			}
		}
		return d.walk(ctx, `groups.display eq `+quoted(a.ID), cursor, count)
	case notify.ToSpace:
		return d.roles(ctx, narrowed(url.Values{"space_guids": {a.ID}}, a), cursor)
	case notify.ToOrganization:
		return d.roles(ctx, narrowed(url.Values{"organization_guids": {a.ID}}, a), cursor)
	}
	return Page{}, gone("The audience %q is not known.", a.Kind)
}

func narrowed(query url.Values, a notify.Audience) url.Values {
	if a.Role != "" {
		query.Set("types", a.RoleType())
	}
	return query
}

// needed is all that we read of people.
const needed = "id,emails,active"

func person(u uaa.User) notify.Person {
	p := notify.Person{UserID: u.ID, Inactive: u.Active != nil && !*u.Active}
	for _, e := range u.Emails {
		if p.Address == "" || e.Primary {
			p.Address = e.Value
		}
	}
	return p
}

func (d *Directory) user(ctx context.Context, id string) (Page, error) {
	var u uaa.User
	err := d.Auth.Call(ctx, http.MethodGet, "/Users/"+url.PathEscape(id), nil, &u)
	if fault.Is(err, fault.KindNotFound) {
		return Page{People: []notify.Person{{UserID: id, Unknown: true}}, Done: true}, nil
	}
	if err != nil {
		return Page{}, fmt.Errorf("ask for a user: %w", err)
	}
	return Page{People: []notify.Person{person(u)}, Done: true}, nil
}

// walk goes through people by the order of their ids, so that each page costs the same and those who come or go meanwhile do no harm.
func (d *Directory) walk(ctx context.Context, filter, after string, count int) (Page, error) {
	condition := `id gt ` + quoted(after)
	if filter != "" {
		condition = filter + " and " + condition
	}
	var found uaa.Page[uaa.User]
	query := url.Values{"filter": {condition}, "sortBy": {"id"}, "count": {strconv.Itoa(count)}, "attributes": {needed}}
	if err := d.Auth.Call(ctx, http.MethodGet, "/Users?"+query.Encode(), nil, &found); err != nil {
		return Page{}, fmt.Errorf("ask for users: %w", err)
	}
	p := Page{Done: found.TotalResults <= len(found.Resources) || len(found.Resources) == 0}
	for _, u := range found.Resources {
		p.People = append(p.People, person(u))
	}
	if len(found.Resources) > 0 && !p.Done {
		p.Next = found.Resources[len(found.Resources)-1].ID
	}
	return p, nil
}

func quoted(s string) string { return strconv.Quote(s) }

func (d *Directory) scope(ctx context.Context, name string) error {
	var found uaa.Page[uaa.Group]
	query := url.Values{"filter": {`displayName eq ` + quoted(name)}}
	if err := d.Auth.Call(ctx, http.MethodGet, "/Groups?"+query.Encode(), nil, &found); err != nil {
		return fmt.Errorf("ask for a scope: %w", err)
	}
	if len(found.Resources) == 0 {
		return gone("There is no scope %q.", name)
	}
	return nil
}

// rolePage is how many roles are asked for at once. A person may hold several, so there are at most as many people.
const rolePage = 200

// roles reads who holds a role in a space or organization, and asks the authorization server for their addresses.
func (d *Directory) roles(ctx context.Context, query url.Values, cursor string) (Page, error) {
	if d.Platform == nil {
		return Page{}, gone("This service knows no platform, so it cannot reach spaces and organizations. Ask its operator to set PROA_NOTIFY_PLATFORM_URL.")
	}
	query.Set("per_page", strconv.Itoa(rolePage))
	query.Set("order_by", "created_at")
	if cursor != "" {
		next, err := url.ParseQuery(cursor)
		if err != nil {
			return Page{}, fmt.Errorf("read cursor: %w", err)
		}
		for name, values := range next {
			query[name] = values
		}
	}
	var found struct {
		Pagination struct {
			Next *struct {
				Href string `json:"href"`
			} `json:"next"`
		} `json:"pagination"`
		Resources []struct {
			Relationships struct {
				User struct {
					Data struct {
						GUID string `json:"guid"`
					} `json:"data"`
				} `json:"user"`
			} `json:"relationships"`
		} `json:"resources"`
	}
	if err := d.Platform.Call(ctx, http.MethodGet, "/v3/roles?"+query.Encode(), nil, &found); err != nil {
		return Page{}, fmt.Errorf("ask for roles: %w", err)
	}
	var ids []string
	seen := map[string]bool{}
	for _, r := range found.Resources {
		if id := r.Relationships.User.Data.GUID; id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	people, err := d.people(ctx, ids)
	if err != nil {
		return Page{}, err
	}
	p := Page{People: people, Done: true}
	if found.Pagination.Next != nil && found.Pagination.Next.Href != "" {
		// Only the question is taken from the link, never the host: our token goes nowhere else.
		next, err := url.Parse(found.Pagination.Next.Href)
		if err != nil {
			return Page{}, fmt.Errorf("read the link to the next page: %w", err)
		}
		p.Next, p.Done = next.RawQuery, false
	}
	return p, nil
}

// batch is how many people are asked for by id at once: as many as a filter may hold.
const batch = 50

func (d *Directory) people(ctx context.Context, ids []string) ([]notify.Person, error) {
	var people []notify.Person
	for start := 0; start < len(ids); start += batch {
		part := ids[start:min(start+batch, len(ids))]
		conditions := make([]string, len(part))
		for i, id := range part {
			conditions[i] = `id eq ` + quoted(id)
		}
		var found uaa.Page[uaa.User]
		query := url.Values{"filter": {strings.Join(conditions, " or ")}, "count": {strconv.Itoa(batch)}, "attributes": {needed}}
		if err := d.Auth.Call(ctx, http.MethodGet, "/Users?"+query.Encode(), nil, &found); err != nil {
			return nil, fmt.Errorf("ask for users: %w", err)
		}
		known := map[string]notify.Person{}
		for _, u := range found.Resources {
			known[u.ID] = person(u)
		}
		for _, id := range part {
			p, ok := known[id]
			if !ok {
				p = notify.Person{UserID: id, Unknown: true}
			}
			people = append(people, p)
		}
	}
	return people, nil
}

// Names asks what a space or organization is called. An audience without either has none.
func (d *Directory) Names(ctx context.Context, a notify.Audience) (Names, error) {
	var n Names
	if a.Kind != notify.ToSpace && a.Kind != notify.ToOrganization {
		return n, nil
	}
	if d.Platform == nil {
		return n, nil
	}
	n.OrganizationGUID = a.ID
	if a.Kind == notify.ToSpace {
		var space struct {
			Name          string `json:"name"`
			Relationships struct {
				Organization struct {
					Data struct {
						GUID string `json:"guid"`
					} `json:"data"`
				} `json:"organization"`
			} `json:"relationships"`
		}
		if err := d.named(ctx, "space", "/v3/spaces/", a.ID, &space); err != nil {
			return n, err
		}
		n.Space, n.OrganizationGUID = space.Name, space.Relationships.Organization.Data.GUID
	}
	var org struct {
		Name string `json:"name"`
	}
	if err := d.named(ctx, "organization", "/v3/organizations/", n.OrganizationGUID, &org); err != nil {
		return n, err
	}
	n.Organization = org.Name
	return n, nil
}

func (d *Directory) named(ctx context.Context, what, path, guid string, into any) error {
	err := d.Platform.Call(ctx, http.MethodGet, path+url.PathEscape(guid), nil, into)
	if fault.Is(err, fault.KindNotFound) {
		return gone("There is no %s %q.", what, guid)
	}
	if err != nil {
		return fmt.Errorf("ask for a %s: %w", what, err)
	}
	return nil
}

// Gone tells whether err says that there is no such audience, and why.
func Gone(err error) (reason string, ok bool) {
	var g *ErrGone
	if errors.As(err, &g) {
		return g.Reason, true
	}
	return "", false
}
