package api

import (
	"net/http"
	"sort"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/notify"
)

// preferenceShape is a person's choice about one kind.
type preferenceShape struct {
	Email  *bool  `json:"email"`
	Kind   string `json:"kind_description,omitempty"`
	Source string `json:"source_description,omitempty"`
}

// preferencesShape is all of a person's choices. A true PATCH: what is left out stays.
type preferencesShape struct {
	Global  *bool                                  `json:"global_unsubscribe"`
	Clients map[string]map[string]*preferenceShape `json:"clients"`
}

func (s *Server) cors(w http.ResponseWriter) {
	if s.CORS == "" {
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", s.CORS)
	w.Header().Set("Access-Control-Allow-Methods", "GET, PATCH")
	w.Header().Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type")
	w.Header().Set("Vary", "Origin")
}

func (s *Server) preflight(w http.ResponseWriter, _ *http.Request, _ who) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func person(from who) (string, error) {
	if from.user() == "" {
		return "", fault.Unprocessable("The token belongs to a client, not to a person. Send a person's token, or use /user_preferences/{guid} with the scope %s.", scopePreferAdmin)
	}
	return from.user(), nil
}

func (s *Server) myPreferences(w http.ResponseWriter, r *http.Request, from who) error {
	id, err := person(from)
	if err != nil {
		return err
	}
	return s.replyPreferences(w, r, id)
}

func (s *Server) userPreferences(w http.ResponseWriter, r *http.Request, _ who) error {
	return s.replyPreferences(w, r, r.PathValue("id"))
}

func (s *Server) replyPreferences(w http.ResponseWriter, r *http.Request, userID string) error {
	p, err := s.Store.Preferences(r.Context(), userID)
	if err != nil {
		return err
	}
	out := preferencesShape{Global: &p.GlobalUnsubscribe, Clients: map[string]map[string]*preferenceShape{}}
	for _, k := range p.Kinds {
		if out.Clients[k.ClientID] == nil {
			out.Clients[k.ClientID] = map[string]*preferenceShape{}
		}
		out.Clients[k.ClientID][k.KindID] = &preferenceShape{Email: &k.Email, Kind: k.KindDescription, Source: k.SourceDescription}
	}
	return web.JSON(w, http.StatusOK, out)
}

func (s *Server) changeMyPreferences(w http.ResponseWriter, r *http.Request, from who) error {
	id, err := person(from)
	if err != nil {
		return err
	}
	return s.changePreferences(w, r, from, id)
}

func (s *Server) changeUserPreferences(w http.ResponseWriter, r *http.Request, from who) error {
	return s.changePreferences(w, r, from, r.PathValue("id"))
}

func (s *Server) changePreferences(w http.ResponseWriter, r *http.Request, from who, userID string) error {
	var in preferencesShape
	if err := web.ReadStrict(r, &in); err != nil {
		return fault.Unprocessable("%s", fault.From(err).Detail).Because(err)
	}
	var kinds []notify.Preference
	for client, list := range in.Clients {
		if len(list) == 0 {
			return fault.Unprocessable("clients.%s names no kind. Name at least one, with email true or false.", client)
		}
		for kind, p := range list {
			if p == nil || p.Email == nil {
				return fault.Unprocessable("clients.%s.%s.email is missing: it must be true or false.", client, kind)
			}
			kinds = append(kinds, notify.Preference{ClientID: client, KindID: kind, Email: *p.Email})
		}
	}
	sort.Slice(kinds, func(i, j int) bool {
		return kinds[i].ClientID+"/"+kinds[i].KindID < kinds[j].ClientID+"/"+kinds[j].KindID
	})
	if err := s.Store.SetPreferences(r.Context(), from.Who, userID, in.Global, kinds); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) listSuppressions(w http.ResponseWriter, r *http.Request, _ who) error {
	count, err := pageSize(r)
	if err != nil {
		return err
	}
	list, err := s.Store.Suppressions(r.Context(), r.URL.Query().Get("after"), count+1)
	if err != nil {
		return err
	}
	type suppression struct {
		Address string `json:"address"`
		Reason  string `json:"reason"`
		Since   string `json:"since"`
	}
	out := struct {
		Suppressions []suppression `json:"suppressions"`
		Next         string        `json:"next,omitempty"`
	}{Suppressions: []suppression{}}
	if len(list) > count {
		list = list[:count]
		out.Next = list[count-1].Address
	}
	for _, x := range list {
		out.Suppressions = append(out.Suppressions, suppression{x.Address, x.Reason, x.Since.UTC().Format("2006-01-02T15:04:05Z")})
	}
	return web.JSON(w, http.StatusOK, out)
}

func (s *Server) clearSuppression(w http.ResponseWriter, r *http.Request, from who) error {
	if err := s.Store.Unsuppress(r.Context(), from.Who, r.PathValue("address")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// erase forgets a person.
func (s *Server) erase(w http.ResponseWriter, r *http.Request, from who) error {
	if err := s.Store.Erase(r.Context(), from.Who, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
