package api

import (
	"net/http"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

func presentClient(c auth.Client) uaa.Client {
	return uaa.Client{ID: c.ID, Name: c.Name, Scope: c.Scopes, Authorities: c.Authorities, Grants: c.Grants, RedirectURI: c.RedirectURIs,
		AutoApprove: c.AutoApprove, AccessFor: int(c.AccessFor.Seconds()), RefreshFor: int(c.RefreshFor.Seconds()), LastModified: c.Modified.UnixMilli()}
}

// take writes what a request says of a client onto its record.
func takeClient(c *auth.Client, in uaa.Client) {
	c.Name, c.Scopes, c.Authorities, c.Grants, c.RedirectURIs, c.AutoApprove = in.Name, in.Scope, in.Authorities, in.Grants, in.RedirectURI, in.AutoApprove
	c.AccessFor, c.RefreshFor = time.Duration(in.AccessFor)*time.Second, time.Duration(in.RefreshFor)*time.Second
}

const maxSecret = 512

func newSecret(secret string) (auth.Hash, error) {
	if secret == "" || len(secret) > maxSecret {
		return "", fault.Invalid("The secret must have 1 to %d bytes.", maxSecret).WithCode("invalid_client")
	}
	return auth.NewHash(secret), nil
}

func (s *Server) listClients(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	p, err := readPage(r, store.ClientAttrs)
	if err != nil {
		return err
	}
	clients, total, err := s.Store.Clients(r.Context(), p)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, present(clients, total, p, presentClient))
}

func (s *Server) createClient(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	var in uaa.Client
	if err := web.Read(r, &in); err != nil {
		return err
	}
	c := auth.Client{ID: in.ID}
	takeClient(&c, in)
	if in.Secret != "" {
		hash, err := newSecret(in.Secret)
		if err != nil {
			return err
		}
		c.SetSecret(hash)
	}
	c, err := s.Store.CreateClient(r.Context(), who, c)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, presentClient(c))
}

func (s *Server) getClient(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	c, err := s.Store.Client(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presentClient(c))
}

// updateClient changes what the body names and leaves the rest. The secret is changed by its own call.
func (s *Server) updateClient(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	body, err := readRaw(r)
	if err != nil {
		return err
	}
	c, err := s.Store.UpdateClient(r.Context(), who, r.PathValue("id"), "client.update", func(c *auth.Client) (bool, error) {
		in := presentClient(*c)
		if err := overlay(body, &in); err != nil {
			return false, err
		}
		if in.ID != c.ID {
			return false, fault.Invalid("client_id cannot be changed. Create another client.").WithCode("invalid_client")
		}
		takeClient(c, in)
		return false, nil
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presentClient(c))
}

func (s *Server) deleteClient(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	c, err := s.Store.DeleteClient(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presentClient(c))
}

// changeSecret lets an administrator change any client's secret, and a client its own when it shows the present one. Tokens of
// a client whose secret was replaced end; adding and removing a second secret leaves them.
func (s *Server) changeSecret(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	var in uaa.SecretChange
	if err := web.Read(r, &in); err != nil {
		return err
	}
	id := r.PathValue("id")
	if !who.Is("clients.admin") {
		if who.ClientID != id || who.UserID != "" {
			return fault.Forbidden("Only the client itself or an administrator may change this secret.").WithCode("access_denied")
		}
		if err := s.Engine.CheckSecret(r.Context(), id, in.Old); err != nil {
			return err
		}
	}
	var hash auth.Hash
	if in.Mode != "DELETE" {
		var err error
		if hash, err = newSecret(in.New); err != nil {
			return err
		}
	}
	_, err := s.Store.UpdateClient(r.Context(), who, id, "client.secret", func(c *auth.Client) (bool, error) {
		switch in.Mode {
		case "", "UPDATE":
			c.SetSecret(hash)
			return true, nil
		case "ADD":
			return false, c.AddSecret(hash)
		case "DELETE":
			return false, c.DropSecret()
		}
		return false, fault.Invalid("changeMode must be UPDATE, ADD or DELETE.").WithCode("invalid_client")
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]string{"status": "ok", "message": "The secret was changed."})
}
