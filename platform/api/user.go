package api

import (
	"context"
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) listUsers(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := s.Store.Users(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.user)
}

func (s *Server) getUser(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	u, err := s.Store.User(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.user(u))
}

func (s *Server) createUser(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.UserCreate
	if err := read(r, &in); err != nil {
		return err
	}
	if err := who.MayAdminister(); err != nil { // before anybody outside is asked on the sender's behalf
		return err
	}
	var user platform.User
	var err error
	switch {
	case in.GUID != "" && in.Username != "":
		return fault.Unprocessable("Username cannot be provided with guid")
	case in.GUID != "":
		user, err = s.Directory.ByGUID(r.Context(), in.GUID)
		if fault.Is(err, fault.KindUnprocessable) {
			user, err = platform.User{GUID: in.GUID}, nil // a client, or somebody who is yet to come
		}
	case in.Username != "" && in.Origin != "":
		user, err = s.Directory.ByName(r.Context(), in.Username, in.Origin)
	default:
		return fault.Unprocessable("Either 'guid' or 'username' and 'origin' must be provided")
	}
	if err != nil {
		return err
	}
	user, err = s.Store.CreateUser(r.Context(), who, user)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.user(user))
}

// someone is the user that a request names. By guid, one must see them; by name, the authorization server must know them.
func (s *Server) someone(ctx context.Context, who platform.Who, ref v3.UserRef) (platform.User, error) {
	switch {
	case ref.Data.Username != "" && ref.Data.GUID != "":
		return platform.User{}, fault.Unprocessable("Cannot specify both username and guid")
	case ref.Data.Username != "":
		return s.Directory.ByName(ctx, ref.Data.Username, ref.Data.Origin)
	case ref.Data.GUID == "":
		return platform.User{}, fault.Unprocessable("User must be provided, by guid or by username")
	}
	user, err := s.Store.User(ctx, who, ref.Data.GUID)
	switch {
	case err == nil && (user.Name != "" || !who.Admin()):
		return user, nil
	case err != nil && !fault.Is(err, fault.KindNotFound):
		return user, err
	case !who.Admin():
		return user, platform.ErrUserInvalid
	}
	known, lookup := s.Directory.ByGUID(ctx, ref.Data.GUID)
	if lookup != nil && err == nil {
		return user, nil // they are in our books already
	}
	return known, lookup
}

func (s *Server) deleteUser(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	guid := r.PathValue("guid")
	j, err := s.Store.DeleteUser(r.Context(), who, guid)
	if err != nil {
		return err
	}
	s.forget(guid)
	return s.accepted(w, j)
}
