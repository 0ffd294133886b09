package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

func presentUser(u auth.User) uaa.User {
	out := uaa.User{
		ID: u.ID, ExternalID: u.ExternalID, UserName: u.UserName, Name: uaa.Name{Given: u.GivenName, Family: u.FamilyName},
		Emails: []uaa.Email{{Value: u.Email, Primary: true}}, Active: &u.Active, Verified: &u.Verified, Origin: u.Origin, ZoneID: "uaa",
		PasswordSet: u.PasswordSet, Meta: &uaa.Meta{Version: u.Version, Created: u.Created, LastModified: u.Modified}, Schemas: uaa.Schemas,
	}
	if u.LastLogin != nil {
		out.LastLogin = u.LastLogin.UnixMilli()
	}
	for _, g := range u.Groups {
		out.Groups = append(out.Groups, uaa.InGroup{ID: g.ID, Name: g.Name, Type: "DIRECT"})
	}
	return out
}

// takeUser writes what a request says of a person onto their record.
func takeUser(u *auth.User, in uaa.User) error {
	u.UserName, u.Origin, u.ExternalID, u.GivenName, u.FamilyName = in.UserName, in.Origin, in.ExternalID, in.Name.Given, in.Name.Family
	u.Email = ""
	for _, e := range in.Emails {
		if u.Email == "" || e.Primary {
			u.Email = e.Value
		}
	}
	if in.Active != nil {
		u.Active = *in.Active
	}
	if in.Verified != nil {
		u.Verified = *in.Verified
	}
	return u.Check()
}

func (s *Server) listUsers(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	p, err := readPage(r, store.UserAttrs)
	if err != nil {
		return err
	}
	only := attributes(r)
	users, total, err := s.Store.Users(r.Context(), p, only == nil || only["groups"])
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, present(users, total, p, func(u auth.User) uaa.User { return trimUser(presentUser(u), only) }))
}

// attributes are those a list is asked for, in lower case, or nil for all of them.
func attributes(r *http.Request) map[string]bool {
	text := r.URL.Query().Get("attributes")
	if text == "" {
		return nil
	}
	only := map[string]bool{}
	for name := range strings.SplitSeq(strings.ToLower(text), ",") {
		only[strings.TrimSpace(name)] = true
	}
	return only
}

// trimUser leaves the id and the attributes that were asked for: a walk over everyone needs few.
func trimUser(u uaa.User, only map[string]bool) uaa.User {
	if only == nil {
		return u
	}
	out := uaa.User{ID: u.ID}
	for name := range only {
		switch name {
		case "username":
			out.UserName = u.UserName
		case "emails":
			out.Emails = u.Emails
		case "name":
			out.Name = u.Name
		case "active":
			out.Active = u.Active
		case "verified":
			out.Verified = u.Verified
		case "origin":
			out.Origin = u.Origin
		case "externalid":
			out.ExternalID = u.ExternalID
		case "groups":
			out.Groups = u.Groups
		case "meta":
			out.Meta = u.Meta
		}
	}
	return out
}

func (s *Server) createUser(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	var in uaa.User
	if err := web.Read(r, &in); err != nil {
		return err
	}
	u := auth.User{Active: true, Verified: true}
	if err := takeUser(&u, in); err != nil {
		return err
	}
	if in.Password != "" {
		if err := u.NewPassword(in.Password, s.MinPassword); err != nil {
			return err
		}
		u.Password = auth.NewHash(in.Password)
	}
	u, err := s.Store.CreateUser(r.Context(), who, u)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(u.Version))
	return web.JSON(w, http.StatusCreated, presentUser(u))
}

func etag(version int) string { return fmt.Sprintf(`"%d"`, version) }

// getUser shows a person to those who may read people, and to that person.
func (s *Server) getUser(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	id := r.PathValue("id")
	if !who.Is("scim.read") && id != who.UserID {
		return fault.Forbidden("You may only read your own record. Ask an administrator for scim.read.").WithCode("insufficient_scope")
	}
	u, err := s.Store.User(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(u.Version))
	return web.JSON(w, http.StatusOK, presentUser(u))
}

// updateUser changes what the body names and leaves the rest. Deactivating a person ends every token they have.
func (s *Server) updateUser(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	body, err := readRaw(r)
	if err != nil {
		return err
	}
	u, err := s.Store.UpdateUser(r.Context(), who, r.PathValue("id"), "user.update", func(u *auth.User) (bool, error) {
		if err := unchanged(r, u.Version); err != nil {
			return false, err
		}
		in := presentUser(*u)
		emails := in.Emails
		in.Emails = nil
		if err := overlay(body, &in); err != nil {
			return false, err
		}
		if in.Emails == nil {
			in.Emails = emails
		}
		if in.ID != u.ID {
			return false, fault.Invalid("id cannot be changed.").WithCode("invalid_scim_resource")
		}
		was := u.Active
		if err := takeUser(u, in); err != nil {
			return false, err
		}
		return was && !u.Active, nil
	})
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(u.Version))
	return web.JSON(w, http.StatusOK, presentUser(u))
}

// unchanged refuses a change that was made to an older version than the present one, when the sender says which.
func unchanged(r *http.Request, version int) error {
	want := strings.Trim(strings.TrimPrefix(r.Header.Get("If-Match"), "W/"), `"`)
	if want == "" || want == "*" || want == fmt.Sprint(version) {
		return nil
	}
	return fault.Stale("The record has changed since you read it: it has version %d now. Read it again.", version).WithCode("scim_resource_version_mismatch")
}

func (s *Server) deleteUser(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	u, err := s.Store.DeleteUser(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presentUser(u))
}

// changePassword lets people change their own password when they show the present one, and administrators anyone's.
func (s *Server) changePassword(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	var in uaa.PasswordChange
	if err := web.Read(r, &in); err != nil {
		return err
	}
	id := r.PathValue("id")
	if !who.Is("scim.write") {
		if who.UserID != id {
			return fault.Forbidden("You may only change your own password.").WithCode("insufficient_scope")
		}
		u, err := s.Store.User(r.Context(), id)
		if err != nil {
			return err
		}
		if _, err := s.Engine.Login(r.Context(), u.UserName, in.Old, u.Origin); err != nil {
			return err
		}
	}
	hash := auth.NewHash(in.New)
	_, err := s.Store.UpdateUser(r.Context(), who, id, "user.password", func(u *auth.User) (bool, error) {
		if err := u.NewPassword(in.New, s.MinPassword); err != nil {
			return false, err
		}
		u.Password = hash
		return true, nil
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]string{"status": "ok", "message": "The password was changed. Log in again."})
}
