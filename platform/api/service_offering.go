package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) serviceOffering(o platform.ServiceOffering) v3.ServiceOffering {
	return v3.ServiceOffering{Resource: resource(o.GUID, o.CreatedAt, o.UpdatedAt), Name: o.Name, Description: o.Description, Available: o.Active, Bindable: o.Bindable, Shareable: o.Shareable,
		Tags: o.Tags, Requires: o.Requires, DocumentationURL: o.DocumentationURL,
		BrokerCatalog: v3.OfferingCatalog{ID: o.UniqueID, Metadata: o.Catalog, Features: v3.OfferingFeatures{PlanUpdateable: o.PlanUpdateable, Bindable: o.Bindable,
			InstancesRetrievable: o.InstancesRetrievable, BindingsRetrievable: o.BindingsRetrievable, AllowContextUpdates: o.ContextUpdates}},
		Relationships: map[string]v3.ToOne{"service_broker": v3.One(o.BrokerGUID)}, Metadata: metadata(o.Metadata),
		Links: v3.Links{"self": s.link("/v3/service_offerings/", o.GUID), "service_plans": s.link("/v3/service_plans?service_offering_guids=", o.GUID),
			"service_broker": s.link("/v3/service_brokers/", o.BrokerGUID)}}
}

// readServices is a list that can be narrowed to what is available.
func readServices(r *http.Request) (platform.List, error) {
	l, err := readList(r, "name")
	for _, value := range l.Values["available"] {
		if value != "true" && value != "false" {
			return l, badQuery("Available only accepts values 'true' or 'false'")
		}
	}
	return l, err
}

// brokerRef is a broker as far as everybody may know it who sees one of its services.
type brokerRef struct {
	GUID string `json:"guid"`
	Name string `json:"name"`
}

// brokerFields are what can be asked of it.
var brokerFields = []string{"guid", "name"}

// brokersOf lists the brokers of records, each once, with the asked fields.
func brokersOf[T any](records []T, of func(T) brokerRef, fields []string) ([]object, error) {
	var brokers []brokerRef
	seen := map[string]bool{}
	for _, record := range records {
		if b := of(record); !seen[b.GUID] {
			seen[b.GUID] = true
			brokers = append(brokers, b)
		}
	}
	return pick(brokers, fields)
}

// besideOfferings are the brokers of offerings, if they are asked for.
func besideOfferings(r *http.Request, offerings []platform.ServiceOffering) (beside, error) {
	asked, err := fields(r, fieldSet{"service_broker": brokerFields})
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	brokers, err := brokersOf(offerings, func(o platform.ServiceOffering) brokerRef { return brokerRef{o.BrokerGUID, o.BrokerName} }, asked["service_broker"])
	return beside{"service_brokers": brokers}, err
}

func (s *Server) listServiceOfferings(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readServices(r)
	if err != nil {
		return err
	}
	page, err := s.Store.ServiceOfferings(r.Context(), who, l)
	if err != nil {
		return err
	}
	included, err := besideOfferings(r, page.Records)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, withPage(pageOf(s, r, l, page, s.serviceOffering), included))
}

func (s *Server) getServiceOffering(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	o, err := s.Store.ServiceOffering(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := struct {
		v3.ServiceOffering
		Included beside `json:"included,omitempty"`
	}{ServiceOffering: s.serviceOffering(o)}
	if shown.Included, err = besideOfferings(r, []platform.ServiceOffering{o}); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

// noteChange is a request that changes what is noted on a record, and nothing else.
type noteChange struct {
	Metadata v3.MetadataChange `json:"metadata"`
}

func (s *Server) updateServiceOffering(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in noteChange
	if err := read(r, &in); err != nil {
		return err
	}
	o, err := s.Store.UpdateServiceOffering(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.serviceOffering(o))
}

func (s *Server) deleteServiceOffering(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	remove := s.Store.DeleteServiceOffering
	switch r.URL.Query().Get("purge") {
	case "true":
		remove = s.Store.PurgeServiceOffering
	case "", "false":
	default:
		return badQuery("Purge only accepts values 'true' or 'false'")
	}
	if err := remove(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
