package broker

import (
	"encoding/base64"
	"encoding/json"
	"maps"

	"github.com/proa-dev/proa/platform"
)

// Organization and space stand beside the context too, for brokers that are older than it.
type provisionRequest struct {
	ServiceID   string          `json:"service_id"`
	PlanID      string          `json:"plan_id"`
	Context     map[string]any  `json:"context"`
	OrgGUID     string          `json:"organization_guid"`
	SpaceGUID   string          `json:"space_guid"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Maintenance *version        `json:"maintenance_info,omitempty"`
}

type updateRequest struct {
	ServiceID   string          `json:"service_id"`
	PlanID      string          `json:"plan_id,omitempty"`
	Context     map[string]any  `json:"context"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Previous    *Previous       `json:"previous_values,omitempty"`
	Maintenance *version        `json:"maintenance_info,omitempty"`
}

type bindRequest struct {
	ServiceID  string          `json:"service_id"`
	PlanID     string          `json:"plan_id"`
	Context    map[string]any  `json:"context"`
	AppGUID    string          `json:"app_guid,omitempty"` // as older brokers look for it
	Resource   bindResource    `json:"bind_resource"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

type bindResource struct {
	AppGUID   string `json:"app_guid,omitempty"`
	SpaceGUID string `json:"space_guid,omitempty"`
}

// version is all that a broker looks at when it is sent what it says of maintenance.
type version struct {
	Version string `json:"version"`
}

func versionOf(m *platform.Maintenance) *version {
	if m == nil {
		return nil
	}
	return &version{m.Version}
}

func provisionBody(c Call) any {
	return provisionRequest{c.ServiceID, c.PlanID, contextOf(c), c.OrgGUID, c.SpaceGUID, c.Parameters, versionOf(c.Maintenance)}
}

func updateBody(c Call) any {
	return updateRequest{c.ServiceID, c.PlanID, contextOf(c), c.Parameters, c.Previous, versionOf(c.Maintenance)}
}

func bindBody(c Call) any {
	return bindRequest{c.ServiceID, c.PlanID, contextOf(c), c.AppGUID, bindResource{c.AppGUID, c.SpaceGUID}, c.Parameters}
}

func contextOf(c Call) map[string]any {
	all := map[string]any{"platform": "cloudfoundry"}
	if c.OrgGUID != "" {
		all["organization_guid"] = c.OrgGUID
	}
	if c.SpaceGUID != "" {
		all["space_guid"] = c.SpaceGUID
	}
	maps.Copy(all, c.Context)
	return all
}

// identity tells a broker whom something is done for, in the words of the platform that it knows.
func identity(who platform.Actor) string {
	value, _ := json.Marshal(map[string]string{"user_id": who.GUID}) // a string always becomes JSON
	return "cloudfoundry " + base64.StdEncoding.EncodeToString(value)
}
