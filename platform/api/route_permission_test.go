package api_test

import "fmt"

func onDomain(f fixture) string      { return "domain-" + f.app }
func onRoute(f fixture) string       { return "route-" + f.app }
func onDestination(f fixture) string { return "destination-" + f.app }

// atApp is where the app of a fixture is reached: a domain of its organization, and a route with a destination.
func atApp(f fixture) []statement {
	name := fmt.Sprintf("n%d.example.net", f.n)
	return []statement{
		{`insert into domains (guid, name, org_guid) values ($1, $2, $3)`, []any{onDomain(f), name, f.org.GUID}},
		{`insert into routes (guid, space_guid, domain_guid, host, hostname, path) values ($1, $2, $3, 'www', 'www.' || $4::text, '')`, []any{onRoute(f), f.space.GUID, onDomain(f), name}},
		{`insert into destinations (guid, route_guid, app_guid, process_type, port, weight, protocol) values ($1, $2, $3, 'web', 0, 0, 'http1')`, []any{onDestination(f), onRoute(f), f.app}},
	}
}

// routePermissions are the rows about domains and routes.
func routePermissions() map[string]permission {
	says := func(body any) func(fixture) any { return func(fixture) any { return body } }
	note := says(object{"metadata": object{"labels": object{"a": "b"}}})
	leads := func(f fixture) any {
		return object{"destinations": []object{{"app": object{"guid": f.app}, "port": 9090}}}
	}
	return map[string]permission{
		"GET /v3/domains": {ok: 200, may: everyone, list: onDomain, see: seeOrg},
		"POST /v3/domains": {ok: 201, may: manager, see: seeOrg, blind: 422, body: func(f fixture) any {
			return object{"name": fmt.Sprintf("m%d.example.net", f.n), "relationships": object{"organization": to(f.org.GUID)}}
		}},
		"GET /v3/domains/{guid}":                    {path: onDomain, ok: 200, may: seeOrg},
		"PATCH /v3/domains/{guid}":                  {path: onDomain, ok: 200, may: manager, see: seeOrg, body: note},
		"DELETE /v3/domains/{guid}":                 {path: onDomain, ok: 202, may: manager, see: seeOrg},
		"GET /v3/domains/{guid}/route_reservations": {path: onDomain, ok: 200, may: seeOrg},

		"GET /v3/routes": {ok: 200, may: everyone, list: onRoute, see: seeSpace},
		"POST /v3/routes": {ok: 201, may: developers, see: seeSpace, blind: 422, body: func(f fixture) any {
			return object{"host": "new", "relationships": object{"space": to(f.space.GUID), "domain": to(onDomain(f))}}
		}},
		"GET /v3/routes/{guid}":           {path: onRoute, ok: 200, may: seeSpace},
		"PATCH /v3/routes/{guid}":         {path: onRoute, ok: 200, may: developers, see: seeSpace, body: note},
		"DELETE /v3/routes/{guid}":        {path: onRoute, ok: 202, may: developers, see: seeSpace},
		"DELETE /v3/spaces/{guid}/routes": {path: onSpace, query: func(fixture) string { return "unmapped=true" }, ok: 202, may: developers, see: seeSpace},
		"GET /v3/service_route_bindings":  {ok: 200, may: everyone},

		"GET /v3/routes/{guid}/destinations":                  {path: onRoute, ok: 200, may: seeSpace},
		"POST /v3/routes/{guid}/destinations":                 {path: onRoute, ok: 200, may: supporters, see: seeSpace, body: leads},
		"PATCH /v3/routes/{guid}/destinations":                {path: onRoute, ok: 200, may: supporters, see: seeSpace, body: leads},
		"PATCH /v3/routes/{guid}/destinations/{destination}":  {path: onRoute, inner: onDestination, ok: 200, may: supporters, see: seeSpace, body: says(object{"protocol": "http2"})},
		"DELETE /v3/routes/{guid}/destinations/{destination}": {path: onRoute, inner: onDestination, ok: 204, may: supporters, see: seeSpace},
	}
}
