package api

import (
	"net/http"
	"sort"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/notify"
)

func (s *Server) info(w http.ResponseWriter, _ *http.Request, _ who) error {
	return web.JSON(w, http.StatusOK, map[string]int{"version": 1})
}

// kindShape is a kind in a registration.
type kindShape struct {
	Description string `json:"description"`
	Critical    bool   `json:"critical"`
}

func (s *Server) register(w http.ResponseWriter, r *http.Request, from who) error {
	var in struct {
		SourceName    string                `json:"source_name"`
		Notifications map[string]*kindShape `json:"notifications"`
	}
	if err := web.ReadStrict(r, &in); err != nil {
		return err
	}
	reg := notify.Registration{SourceName: in.SourceName}
	for id, k := range in.Notifications {
		if k == nil {
			return fault.Invalid("notifications.%s must be an object with description and critical. To remove a kind, use DELETE /clients/%s/notifications/%s.", id, from.client(), id)
		}
		reg.Kinds = append(reg.Kinds, notify.Kind{ID: id, Description: k.Description, Critical: k.Critical})
	}
	sort.Slice(reg.Kinds, func(i, j int) bool { return reg.Kinds[i].ID < reg.Kinds[j].ID })
	if err := reg.Check(); err != nil {
		return err
	}
	if err := s.Store.Register(r.Context(), from.Who, from.client(), reg, from.has(scopeCritical)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func orDefault(id string) string {
	if id == "" {
		return notify.DefaultTemplateID
	}
	return id
}

func (s *Server) listKinds(w http.ResponseWriter, r *http.Request, _ who) error {
	sources, kinds, err := s.Store.Sources(r.Context())
	if err != nil {
		return err
	}
	type kind struct {
		Description string `json:"description"`
		Template    string `json:"template"`
		Critical    bool   `json:"critical"`
	}
	type source struct {
		Name          string          `json:"name"`
		Template      string          `json:"template"`
		Notifications map[string]kind `json:"notifications"`
	}
	out := map[string]source{}
	for _, src := range sources {
		out[src.ClientID] = source{src.Name, orDefault(src.TemplateID), map[string]kind{}}
	}
	for _, k := range kinds {
		out[k.ClientID].Notifications[k.ID] = kind{k.Description, orDefault(k.TemplateID), k.Critical}
	}
	return web.JSON(w, http.StatusOK, out)
}

// owner refuses a client that reaches for another's kinds.
func owner(r *http.Request, from who) (client string, err error) {
	client = r.PathValue("client")
	if !from.owns(client) {
		return client, fault.Forbidden("The kinds of %q belong to that client. Use its token, or one with the scope %s.", client, scopeAdmin)
	}
	return client, nil
}

func (s *Server) updateKind(w http.ResponseWriter, r *http.Request, from who) error {
	client, err := owner(r, from)
	if err != nil {
		return err
	}
	var in struct {
		Description *string `json:"description"`
		Critical    *bool   `json:"critical"`
		Template    *string `json:"template"`
	}
	if err := web.ReadStrict(r, &in); err != nil {
		return err
	}
	err = s.Store.UpdateKind(r.Context(), from.Who, client, r.PathValue("kind"), from.has(scopeCritical), func(k *notify.Kind) error {
		if in.Description != nil {
			k.Description = *in.Description
		}
		if in.Critical != nil {
			k.Critical = *in.Critical
		}
		if in.Template != nil {
			k.TemplateID = *in.Template
		}
		return k.Check()
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) deleteKind(w http.ResponseWriter, r *http.Request, from who) error {
	client, err := owner(r, from)
	if err != nil {
		return err
	}
	if err := s.Store.DeleteKind(r.Context(), from.Who, client, r.PathValue("kind"), from.has(scopeCritical)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readAssignment takes a template's id; null and "" stand for the default.
func readAssignment(r *http.Request) (string, error) {
	var in struct {
		Template *string `json:"template"`
	}
	if err := web.Read(r, &in); err != nil {
		return "", err
	}
	if in.Template == nil {
		return "", nil
	}
	return *in.Template, nil
}

func (s *Server) assignToKind(w http.ResponseWriter, r *http.Request, from who) error {
	client, err := owner(r, from)
	if err != nil {
		return err
	}
	id, err := readAssignment(r)
	if err != nil {
		return err
	}
	if err := s.Store.SetKindTemplate(r.Context(), from.Who, client, r.PathValue("kind"), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) assignToClient(w http.ResponseWriter, r *http.Request, from who) error {
	client, err := owner(r, from)
	if err != nil {
		return err
	}
	id, err := readAssignment(r)
	if err != nil {
		return err
	}
	if err := s.Store.SetSourceTemplate(r.Context(), from.Who, client, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
