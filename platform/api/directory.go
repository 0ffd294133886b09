package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

// Directory asks the authorization server who exists, with credentials of our own: scim.read for people, clients.read for clients.
type Directory struct {
	Conn *uaa.Conn
}

// ByName finds the one person with this name. An origin may be left out when only one knows the name.
func (d *Directory) ByName(ctx context.Context, name, origin string) (platform.User, error) {
	filter := `userName eq ` + strconv.Quote(name)
	if origin != "" {
		filter += ` and origin eq ` + strconv.Quote(origin)
	}
	var found uaa.Page[uaa.User]
	query := url.Values{"filter": {filter}, "attributes": {"id,userName,origin"}}
	if err := d.Conn.Call(ctx, http.MethodGet, "/Users?"+query.Encode(), nil, &found); err != nil {
		return platform.User{}, ours(err)
	}
	switch len(found.Resources) {
	case 0:
		return platform.User{}, platform.ErrNoUser(name, origin)
	case 1:
		u := found.Resources[0]
		return platform.User{GUID: u.ID, Name: u.UserName, Origin: u.Origin}, nil
	}
	origins := make([]string, len(found.Resources))
	for i, u := range found.Resources {
		origins[i] = u.Origin
	}
	return platform.User{}, fault.Unprocessable("User with username '%s' exists in the following origins: %s. Specify an origin to disambiguate.", name, strings.Join(origins, ", "))
}

// ByGUID finds a person by id, or a client by its name.
func (d *Directory) ByGUID(ctx context.Context, guid string) (platform.User, error) {
	var u uaa.User
	err := d.Conn.Call(ctx, http.MethodGet, "/Users/"+url.PathEscape(guid), nil, &u)
	if err == nil {
		return platform.User{GUID: u.ID, Name: u.UserName, Origin: u.Origin}, nil
	}
	if !fault.Is(err, fault.KindNotFound) {
		return platform.User{}, ours(err)
	}
	var c uaa.Client
	err = d.Conn.Call(ctx, http.MethodGet, "/oauth/clients/"+url.PathEscape(guid), nil, &c)
	switch {
	case err == nil:
		return platform.User{GUID: c.ID}, nil
	case fault.Is(err, fault.KindNotFound):
		return platform.User{}, platform.ErrUserInvalid
	}
	return platform.User{}, ours(err)
}

// ours keeps a refusal of our credentials from being taken for one of the sender's.
func ours(err error) error {
	if fault.Is(err, fault.KindUnavailable) {
		return err
	}
	return fault.Unavailable("The authorization server cannot be asked for users now. Try again in a moment.").Because(fmt.Errorf("ask the authorization server: %w", err))
}
