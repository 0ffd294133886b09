package api_test

import "fmt"

func onBroker(f fixture) string   { return "broker-" + f.app }
func onOffering(f fixture) string { return "offering-" + f.app }
func onPlan(f fixture) string     { return "plan-" + f.app }

// ofPlan is a plan of a broker for all that only the fixture's organization can have.
func ofPlan(f fixture) string     { return "org-plan-" + f.app }
func ofOffering(f fixture) string { return "org-offering-" + f.app }

// inMarket is what the space of a fixture can have: a broker of its own, and a plan that is its organization's.
func inMarket(f fixture) []statement {
	const offering = `insert into service_offerings (guid, broker_guid, unique_id, name, description, active, bindable, plan_updateable, instances_retrievable, bindings_retrievable, context_updates, shareable, tags, requires, documentation_url, catalog_metadata)
		values ($1, $2, 'service', 'sql', '', true, true, true, true, true, true, true, '{}', '{}', '', '{}')`
	const plan = `insert into service_plans (guid, offering_guid, unique_id, name, description, free, active, bindable, plan_updateable, visibility, max_polling, catalog_metadata, schemas)
		values ($1, $2, 'plan', 'small', '', true, true, true, true, $3, 0, '{}', '{}')`
	all := "all-" + onBroker(f)
	return []statement{
		{`insert into service_brokers (guid, name, url, credentials, space_guid, state) values ($1, $1, 'http://broker.test', '', $2, 'AVAILABLE'), ($3, $3, 'http://broker.test', '', null, 'AVAILABLE')`, []any{onBroker(f), f.space.GUID, all}},
		{offering, []any{onOffering(f), onBroker(f)}},
		{plan, []any{onPlan(f), onOffering(f), "space"}},
		{offering, []any{ofOffering(f), all}},
		{plan, []any{ofPlan(f), ofOffering(f), "organization"}},
		{`insert into service_plan_orgs (plan_guid, org_guid) values ($1, $2)`, []any{ofPlan(f), f.org.GUID}},
	}
}

// marketPermissions are the rows about brokers and what they offer.
func marketPermissions() map[string]permission {
	says := func(body any) func(fixture) any { return func(fixture) any { return body } }
	note := says(object{"metadata": object{"labels": object{"a": "b"}}})
	return map[string]permission{
		"GET /v3/service_brokers": {ok: 200, may: everyone, list: onBroker, see: seeSpace},
		"POST /v3/service_brokers": {ok: 202, may: developers, see: seeSpace, blind: 422, body: func(f fixture) any {
			return object{"name": fmt.Sprint("new ", f.n), "url": "http://broker.test", "authentication": object{"type": "basic", "credentials": object{"username": "u", "password": "p"}},
				"relationships": object{"space": to(f.space.GUID)}}
		}},
		"GET /v3/service_brokers/{guid}":    {path: onBroker, ok: 200, may: seeSpace},
		"PATCH /v3/service_brokers/{guid}":  {path: onBroker, ok: 202, may: developers, see: seeSpace, body: says(object{"url": "http://broker.test"})},
		"DELETE /v3/service_brokers/{guid}": {path: onBroker, ok: 202, may: developers, see: seeSpace},

		"GET /v3/service_offerings":           {ok: 200, may: everyone, list: ofOffering, see: seeOrg},
		"GET /v3/service_offerings/{guid}":    {path: onOffering, ok: 200, may: seeSpace},
		"PATCH /v3/service_offerings/{guid}":  {path: onOffering, ok: 200, may: developers, see: seeSpace, body: note},
		"DELETE /v3/service_offerings/{guid}": {path: onOffering, ok: 204, may: developers, see: seeSpace},

		"GET /v3/service_plans":                                     {ok: 200, may: everyone, list: onPlan, see: seeSpace},
		"GET /v3/service_plans/{guid}":                              {path: ofPlan, ok: 200, may: seeOrg},
		"PATCH /v3/service_plans/{guid}":                            {path: onPlan, ok: 200, may: developers, see: seeSpace, body: note},
		"DELETE /v3/service_plans/{guid}":                           {path: ofPlan, ok: 204, may: admin, see: seeOrg},
		"GET /v3/service_plans/{guid}/visibility":                   {path: ofPlan, ok: 200, may: seeOrg},
		"PATCH /v3/service_plans/{guid}/visibility":                 {path: ofPlan, ok: 200, may: admin, see: seeOrg, body: says(object{"type": "public"})},
		"POST /v3/service_plans/{guid}/visibility":                  {path: ofPlan, ok: 200, may: admin, see: seeOrg, body: says(object{"type": "public"})},
		"DELETE /v3/service_plans/{guid}/visibility/{organization}": {path: ofPlan, inner: onOrg, ok: 204, may: admin, see: seeOrg},
	}
}
