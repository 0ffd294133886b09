package api

import (
	"encoding/json"
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/notify"
)

// templateShape is a template as it is sent and read.
type templateShape struct {
	Name     string          `json:"name"`
	Subject  string          `json:"subject"`
	Text     string          `json:"text"`
	HTML     string          `json:"html"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

func readTemplate(r *http.Request, id string) (notify.Template, error) {
	var in templateShape
	if err := web.ReadStrict(r, &in); err != nil {
		return notify.Template{}, err
	}
	t := notify.Template{ID: id, Name: in.Name, Subject: in.Subject, Text: in.Text, HTML: in.HTML, Metadata: in.Metadata}
	err := t.Check()
	return t, err
}

func (s *Server) createTemplate(w http.ResponseWriter, r *http.Request, from who) error {
	t, err := readTemplate(r, notify.NewID(s.Now()))
	if err != nil {
		return err
	}
	if err := s.Store.CreateTemplate(r.Context(), from.Who, t); err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, map[string]string{"template-id": t.ID})
}

func (s *Server) listTemplates(w http.ResponseWriter, r *http.Request, _ who) error {
	list, err := s.Store.Templates(r.Context())
	if err != nil {
		return err
	}
	out := map[string]map[string]string{}
	for _, t := range list {
		out[t.ID] = map[string]string{"name": t.Name}
	}
	return web.JSON(w, http.StatusOK, out)
}

func (s *Server) replyTemplate(w http.ResponseWriter, r *http.Request, id string) error {
	t, err := s.Store.Template(r.Context(), id)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, templateShape{t.Name, t.Subject, t.Text, t.HTML, t.Metadata})
}

func (s *Server) getTemplate(w http.ResponseWriter, r *http.Request, _ who) error {
	return s.replyTemplate(w, r, r.PathValue("id"))
}

func (s *Server) getDefaultTemplate(w http.ResponseWriter, r *http.Request, _ who) error {
	return s.replyTemplate(w, r, notify.DefaultTemplateID)
}

func (s *Server) replaceTemplate(w http.ResponseWriter, r *http.Request, from who, id string) error {
	t, err := readTemplate(r, id)
	if err != nil {
		return err
	}
	if err := s.Store.UpdateTemplate(r.Context(), from.Who, t); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) updateTemplate(w http.ResponseWriter, r *http.Request, from who) error {
	return s.replaceTemplate(w, r, from, r.PathValue("id"))
}

func (s *Server) updateDefaultTemplate(w http.ResponseWriter, r *http.Request, from who) error {
	return s.replaceTemplate(w, r, from, notify.DefaultTemplateID)
}

func (s *Server) deleteTemplate(w http.ResponseWriter, r *http.Request, from who) error {
	if err := s.Store.DeleteTemplate(r.Context(), from.Who, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) listAssociations(w http.ResponseWriter, r *http.Request, _ who) error {
	list, err := s.Store.Associations(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	type association struct {
		Client       string `json:"client"`
		Notification string `json:"notification,omitempty"`
	}
	out := []association{}
	for _, a := range list {
		out = append(out, association{a.ClientID, a.KindID})
	}
	return web.JSON(w, http.StatusOK, map[string]any{"associations": out})
}

// contentShape is what a preview is filled with. What is left out comes from the sample.
type contentShape struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
}

// preview shows what a template makes of a message, without sending anything.
func (s *Server) preview(w http.ResponseWriter, t notify.Template, in contentShape) error {
	parsed, err := t.Parse()
	if err != nil {
		return err
	}
	v := notify.Sample()
	v.From, v.Domain = s.From, s.Domain
	for _, f := range []struct {
		given string
		into  *string
	}{{in.Subject, &v.Subject}, {in.Text, &v.Text}, {in.HTML, &v.HTML}} {
		if f.given != "" {
			*f.into = f.given
		}
	}
	out, err := parsed.Render(v)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, contentShape{out.Subject, out.Text, out.HTML})
}

func (s *Server) previewTemplate(w http.ResponseWriter, r *http.Request, _ who) error {
	var in contentShape
	if r.ContentLength != 0 {
		if err := web.ReadStrict(r, &in); err != nil {
			return err
		}
	}
	t, err := s.Store.Template(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.preview(w, t, in)
}

// previewDraft shows a template that is not saved yet.
func (s *Server) previewDraft(w http.ResponseWriter, r *http.Request, _ who) error {
	var in struct {
		Template templateShape `json:"template"`
		Message  contentShape  `json:"message"`
	}
	if err := web.ReadStrict(r, &in); err != nil {
		return err
	}
	t := notify.Template{Name: in.Template.Name, Subject: in.Template.Subject, Text: in.Template.Text, HTML: in.Template.HTML}
	if t.Name == "" {
		t.Name = "draft"
	}
	if err := t.Check(); err != nil {
		return err
	}
	return s.preview(w, t, in.Message)
}
