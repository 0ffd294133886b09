package api

import "slices"

// Adding a noun: its routes go into this table, its handlers into a file of its name, its shape into present.go, and each route gets a
// row in permission_test.go, which fails without one. A handler reads the request (readList, read), calls one method of the store with
// who asks, and writes what comes back (reply, web.JSON, s.accepted for a job). It checks no permission: the store does when it finds.

// Routes lists the patterns of the table and whether they need a token, so that others can be held against it.
func Routes() map[string]bool {
	guarded := map[string]bool{}
	for _, r := range (&Server{}).routes() {
		guarded[r.pattern] = r.open == ""
	}
	return guarded
}

// routes is the whole interface.
func (s *Server) routes() []route {
	return slices.Concat(s.tenancy(), s.apps(), s.addresses(), s.staging(), s.marketplace(), s.logs(), s.services())
}

func (s *Server) tenancy() []route {
	return []route{
		{pattern: "GET /{$}", open: "what a client needs before it can log in", handler: s.root},
		{pattern: "GET /v3", open: "where everything is", handler: s.rootV3},
		{pattern: "GET /v3/info", open: "which installation this is", handler: s.info},

		{pattern: "GET /v3/organizations", query: listing("names", "label_selector"), handler: s.listOrgs},
		{pattern: "POST /v3/organizations", handler: s.createOrg},
		{pattern: "GET /v3/organizations/{guid}", handler: s.getOrg},
		{pattern: "PATCH /v3/organizations/{guid}", handler: s.updateOrg},
		{pattern: "DELETE /v3/organizations/{guid}", handler: s.deleteOrg},
		{pattern: "GET /v3/organizations/{guid}/domains", query: listing("names", "label_selector"), handler: s.listOrgDomains},
		{pattern: "GET /v3/organizations/{guid}/domains/default", handler: s.getDefaultDomain},
		{pattern: "GET /v3/organizations/{guid}/usage_summary", handler: s.getUsage},
		{pattern: "GET /v3/organizations/{guid}/relationships/default_isolation_segment", handler: s.getOrgSegment},
		{pattern: "GET /v3/organization_quotas", query: listing("names", "organization_guids"), handler: s.listQuotas},
		{pattern: "GET /v3/organization_quotas/{guid}", handler: s.getQuota},
		{pattern: "GET /v3/isolation_segments", query: listing("names", "organization_guids", "label_selector"), handler: s.listSegments},

		{pattern: "GET /v3/spaces", query: listing("names", "organization_guids", "label_selector", "include"), handler: s.listSpaces},
		{pattern: "POST /v3/spaces", handler: s.createSpace},
		{pattern: "GET /v3/spaces/{guid}", query: []string{"include"}, handler: s.getSpace},
		{pattern: "PATCH /v3/spaces/{guid}", handler: s.updateSpace},
		{pattern: "DELETE /v3/spaces/{guid}", handler: s.deleteSpace},
		{pattern: "GET /v3/spaces/{guid}/features", handler: s.listFeatures},
		{pattern: "GET /v3/spaces/{guid}/features/{name}", handler: s.getFeature},
		{pattern: "PATCH /v3/spaces/{guid}/features/{name}", handler: s.setFeature},
		{pattern: "GET /v3/spaces/{guid}/relationships/isolation_segment", handler: s.getSpaceSegment},
		{pattern: "GET /v3/spaces/{guid}/running_security_groups", query: listing("names"), handler: s.listSecurityGroups},
		{pattern: "GET /v3/spaces/{guid}/staging_security_groups", query: listing("names"), handler: s.listSecurityGroups},

		{pattern: "GET /v3/roles", query: listing("types", "user_guids", "organization_guids", "space_guids", "include"), handler: s.listRoles},
		{pattern: "POST /v3/roles", handler: s.createRole},
		{pattern: "GET /v3/roles/{guid}", query: []string{"include"}, handler: s.getRole},
		{pattern: "DELETE /v3/roles/{guid}", handler: s.deleteRole},

		{pattern: "GET /v3/users", query: listing("usernames", "origins"), handler: s.listUsers},
		{pattern: "POST /v3/users", handler: s.createUser},
		{pattern: "GET /v3/users/{guid}", handler: s.getUser},
		{pattern: "DELETE /v3/users/{guid}", handler: s.deleteUser},

		{pattern: "GET /v3/stacks", query: listing("names", "default", "label_selector"), handler: s.listStacks},
		{pattern: "GET /v3/stacks/{guid}", handler: s.getStack},
		{pattern: "GET /v3/buildpacks", query: listing("names", "stacks", "lifecycle", "label_selector"), handler: s.listBuildpacks},
		{pattern: "GET /v3/buildpacks/{guid}", handler: s.getBuildpack},

		{pattern: "GET /v3/feature_flags", query: listing(), handler: s.listFlags},
		{pattern: "GET /v3/feature_flags/{name}", handler: s.getFlag},
		{pattern: "PATCH /v3/feature_flags/{name}", handler: s.setFlag},
		{pattern: "GET /v3/audit_events", query: listing("types", "target_guids", "space_guids", "organization_guids"), handler: s.listEvents},
		{pattern: "GET /v3/audit_events/{guid}", handler: s.getEvent},
		{pattern: "GET /v3/jobs/{guid}", handler: s.getJob},
	}
}

func (s *Server) apps() []route {
	return []route{
		{pattern: "GET /v3/apps", query: listing("names", "space_guids", "organization_guids", "stacks", "lifecycle_type", "label_selector", "include"), handler: s.listApps},
		{pattern: "POST /v3/apps", handler: s.createApp},
		{pattern: "GET /v3/apps/{guid}", query: []string{"include"}, handler: s.getApp},
		{pattern: "PATCH /v3/apps/{guid}", handler: s.updateApp},
		{pattern: "DELETE /v3/apps/{guid}", handler: s.deleteApp},
		{pattern: "POST /v3/apps/{guid}/actions/start", handler: s.startApp},
		{pattern: "POST /v3/apps/{guid}/actions/stop", handler: s.stopApp},
		{pattern: "POST /v3/apps/{guid}/actions/restart", handler: s.restartApp},
		{pattern: "GET /v3/apps/{guid}/relationships/current_droplet", handler: s.getCurrentDropletOf},
		{pattern: "PATCH /v3/apps/{guid}/relationships/current_droplet", handler: s.assignDroplet},
		{pattern: "GET /v3/apps/{guid}/droplets/current", handler: s.getCurrentDroplet},
		{pattern: "GET /v3/apps/{guid}/env", handler: s.getEnv},
		{pattern: "GET /v3/apps/{guid}/environment_variables", handler: s.getVariables},
		{pattern: "PATCH /v3/apps/{guid}/environment_variables", handler: s.setVariables},
		{pattern: "GET /v3/apps/{guid}/features", handler: s.listAppFeatures},
		{pattern: "GET /v3/apps/{guid}/features/{name}", handler: s.getAppFeature},
		{pattern: "PATCH /v3/apps/{guid}/features/{name}", handler: s.setAppFeature},
		{pattern: "GET /v3/apps/{guid}/ssh_enabled", handler: s.getSSHEnabled},
		{pattern: "GET /v3/apps/{guid}/permissions", handler: s.getAppPermissions},
		{pattern: "GET /v3/apps/{guid}/packages", query: listing("types", "states", "label_selector"), handler: s.listAppPackages},
		{pattern: "GET /v3/apps/{guid}/droplets", query: listing("states", "current", "label_selector"), handler: s.listAppDroplets},
		{pattern: "GET /v3/apps/{guid}/builds", query: listing("states", "package_guids", "label_selector"), handler: s.listAppBuilds},
		{pattern: "GET /v3/apps/{guid}/routes", query: listing("hosts", "paths", "ports", "domain_guids", "space_guids", "organization_guids", "service_instance_guids", "label_selector", "include"), handler: s.listAppRoutes},
		{pattern: "GET /v3/apps/{guid}/tasks", query: listing("names", "states", "sequence_ids", "label_selector"), handler: s.listNothingOfApp},
		{pattern: "GET /v3/apps/{guid}/revisions", query: listing("versions", "deployable", "label_selector"), handler: s.listRevisions},
		{pattern: "GET /v3/apps/{guid}/revisions/deployed", query: listing("versions", "label_selector"), handler: s.listDeployedRevisions},
		{pattern: "GET /v3/apps/{guid}/manifest", handler: s.getManifest},
		{pattern: "POST /v3/spaces/{guid}/actions/apply_manifest", handler: s.applyManifest},
		{pattern: "POST /v3/spaces/{guid}/manifest_diff", handler: s.diffManifest},

		{pattern: "GET /v3/processes", query: listing("types", "app_guids", "space_guids", "organization_guids", "label_selector", "embed"), handler: s.listProcesses},
		{pattern: "GET /v3/processes/{guid}", query: []string{"embed"}, handler: s.getProcess},
		{pattern: "PATCH /v3/processes/{guid}", handler: s.updateProcess},
		{pattern: "POST /v3/processes/{guid}/actions/scale", handler: s.scaleProcess},
		{pattern: "GET /v3/processes/{guid}/stats", handler: s.getStats},
		{pattern: "GET /v3/processes/{guid}/sidecars", query: listing(), handler: s.listProcessSidecars},
		{pattern: "GET /v3/apps/{guid}/processes", query: listing("types", "label_selector", "embed"), handler: s.listAppProcesses},
		{pattern: "GET /v3/apps/{guid}/processes/{type}", query: []string{"embed"}, handler: s.getProcess},
		{pattern: "PATCH /v3/apps/{guid}/processes/{type}", handler: s.updateProcess},
		{pattern: "POST /v3/apps/{guid}/processes/{type}/actions/scale", handler: s.scaleProcess},
		{pattern: "GET /v3/apps/{guid}/processes/{type}/stats", handler: s.getStats},

		{pattern: "GET /v3/apps/{guid}/sidecars", query: listing("names"), handler: s.listAppSidecars},
		{pattern: "POST /v3/apps/{guid}/sidecars", handler: s.createSidecar},
		{pattern: "GET /v3/sidecars/{guid}", handler: s.getSidecar},
		{pattern: "PATCH /v3/sidecars/{guid}", handler: s.updateSidecar},
		{pattern: "DELETE /v3/sidecars/{guid}", handler: s.deleteSidecar},

		{pattern: "GET /v3/deployments", query: listing("app_guids", "states", "status_values", "status_reasons", "label_selector"), handler: s.listDeployments},
		{pattern: "POST /v3/deployments", handler: s.createDeployment},
		{pattern: "GET /v3/deployments/{guid}", handler: s.getDeployment},
		{pattern: "PATCH /v3/deployments/{guid}", handler: s.updateDeployment},
		{pattern: "POST /v3/deployments/{guid}/actions/continue", handler: s.continueDeployment},
		{pattern: "POST /v3/deployments/{guid}/actions/cancel", handler: s.cancelDeployment},
		{pattern: "GET /v3/revisions/{guid}", handler: s.getRevision},
		{pattern: "PATCH /v3/revisions/{guid}", handler: s.updateRevision},
		{pattern: "GET /v3/revisions/{guid}/environment_variables", handler: s.getRevisionVariables},
	}
}

func (s *Server) addresses() []route {
	return []route{
		{pattern: "GET /v3/domains", query: listing("names", "organization_guids", "label_selector"), handler: s.listDomains},
		{pattern: "POST /v3/domains", handler: s.createDomain},
		{pattern: "GET /v3/domains/{guid}", handler: s.getDomain},
		{pattern: "PATCH /v3/domains/{guid}", handler: s.updateDomain},
		{pattern: "DELETE /v3/domains/{guid}", handler: s.deleteDomain},
		{pattern: "GET /v3/domains/{guid}/route_reservations", query: []string{"host", "path", "port", "page", "per_page"}, handler: s.getReservation},

		{pattern: "GET /v3/routes", query: listing("app_guids", "space_guids", "organization_guids", "domain_guids", "service_instance_guids", "hosts", "paths", "ports", "label_selector", "include"), handler: s.listRoutes},
		{pattern: "POST /v3/routes", handler: s.createRoute},
		{pattern: "GET /v3/routes/{guid}", query: []string{"include"}, handler: s.getRoute},
		{pattern: "PATCH /v3/routes/{guid}", handler: s.updateRoute},
		{pattern: "DELETE /v3/routes/{guid}", handler: s.deleteRoute},
		{pattern: "DELETE /v3/spaces/{guid}/routes", query: []string{"unmapped"}, handler: s.deleteUnmappedRoutes},
		{pattern: "GET /v3/service_route_bindings", query: listing("route_guids", "service_instance_guids", "service_instance_names", "label_selector", "include"), handler: s.listRouteBindings},

		{pattern: "GET /v3/routes/{guid}/destinations", query: []string{"guids", "app_guids"}, handler: s.listDestinations},
		{pattern: "POST /v3/routes/{guid}/destinations", handler: s.addDestinations},
		{pattern: "PATCH /v3/routes/{guid}/destinations", handler: s.replaceDestinations},
		{pattern: "PATCH /v3/routes/{guid}/destinations/{destination}", handler: s.updateDestination},
		{pattern: "DELETE /v3/routes/{guid}/destinations/{destination}", handler: s.removeDestination},
	}
}

func (s *Server) staging() []route {
	return []route{
		{pattern: "POST /v3/resource_matches", handler: s.matchResources},
		{pattern: "GET /v3/packages", query: listing("types", "states", "app_guids", "space_guids", "organization_guids", "label_selector"), handler: s.listPackages},
		{pattern: "POST /v3/packages", handler: s.createPackage},
		{pattern: "GET /v3/packages/{guid}", handler: s.getPackage},
		{pattern: "PATCH /v3/packages/{guid}", handler: s.updatePackage},
		{pattern: "DELETE /v3/packages/{guid}", handler: s.deletePackage},
		{pattern: "POST /v3/packages/{guid}/upload", room: s.uploadRoom(), handler: s.uploadPackage},
		{pattern: "GET /v3/packages/{guid}/droplets", query: listing("states", "label_selector"), handler: s.listPackageDroplets},

		{pattern: "GET /v3/builds", query: listing("states", "app_guids", "package_guids", "label_selector"), handler: s.listBuilds},
		{pattern: "POST /v3/builds", handler: s.createBuild},
		{pattern: "GET /v3/builds/{guid}", handler: s.getBuild},
		{pattern: "PATCH /v3/builds/{guid}", handler: s.updateBuild},

		{pattern: "GET /v3/droplets", query: listing("states", "app_guids", "package_guids", "space_guids", "organization_guids", "label_selector"), handler: s.listDroplets},
		{pattern: "GET /v3/droplets/{guid}", handler: s.getDroplet},
		{pattern: "PATCH /v3/droplets/{guid}", handler: s.updateDroplet},
		{pattern: "DELETE /v3/droplets/{guid}", handler: s.deleteDroplet},
	}
}

// marketplace is who provides services, and what they offer.
func (s *Server) marketplace() []route {
	return []route{
		{pattern: "GET /v3/service_brokers", query: listing("names", "space_guids", "label_selector"), handler: s.listServiceBrokers},
		{pattern: "POST /v3/service_brokers", handler: s.createServiceBroker},
		{pattern: "GET /v3/service_brokers/{guid}", handler: s.getServiceBroker},
		{pattern: "PATCH /v3/service_brokers/{guid}", handler: s.updateServiceBroker},
		{pattern: "DELETE /v3/service_brokers/{guid}", handler: s.deleteServiceBroker},

		{pattern: "GET /v3/service_offerings", query: listing("names", "available", "service_broker_guids", "service_broker_names", "space_guids", "organization_guids", "label_selector", "fields"), handler: s.listServiceOfferings},
		{pattern: "GET /v3/service_offerings/{guid}", query: []string{"fields"}, handler: s.getServiceOffering},
		{pattern: "PATCH /v3/service_offerings/{guid}", handler: s.updateServiceOffering},
		{pattern: "DELETE /v3/service_offerings/{guid}", query: []string{"purge"}, handler: s.deleteServiceOffering},

		{pattern: "GET /v3/service_plans", query: listing("names", "available", "broker_catalog_ids", "service_broker_guids", "service_broker_names", "service_offering_guids", "service_offering_names", "service_instance_guids", "space_guids", "organization_guids", "label_selector", "include", "fields"), handler: s.listServicePlans},
		{pattern: "GET /v3/service_plans/{guid}", query: []string{"include", "fields"}, handler: s.getServicePlan},
		{pattern: "PATCH /v3/service_plans/{guid}", handler: s.updateServicePlan},
		{pattern: "DELETE /v3/service_plans/{guid}", handler: s.deleteServicePlan},
		{pattern: "GET /v3/service_plans/{guid}/visibility", handler: s.getPlanVisibility},
		{pattern: "PATCH /v3/service_plans/{guid}/visibility", handler: s.setPlanVisibility},
		{pattern: "POST /v3/service_plans/{guid}/visibility", handler: s.addPlanVisibility},
		{pattern: "DELETE /v3/service_plans/{guid}/visibility/{organization}", handler: s.deletePlanVisibility},
	}
}

// logs stand at the root: clients keep only the host of the log cache's address.
func (s *Server) logs() []route {
	return []route{
		{pattern: "GET /api/v1/info", open: "clients ask which release to speak before they read", handler: s.getLogCache},
		{pattern: "GET /api/v1/read/{guid}", query: []string{"start_time", "end_time", "envelope_types", "limit", "descending", "name_filter", "process", "instance", "sidecar", "source_type"}, handler: s.readLog},
		{pattern: "GET /v2/read", query: logQuery(), room: streamRoom(), lasts: true, handler: s.streamLog},
	}
}

func (s *Server) services() []route {
	return []route{
		{pattern: "GET /v3/service_instances", query: listing("names", "type", "space_guids", "organization_guids", "service_plan_guids", "service_plan_names", "label_selector", "fields"), handler: s.listServiceInstances},
		{pattern: "POST /v3/service_instances", handler: s.createServiceInstance},
		{pattern: "GET /v3/service_instances/{guid}", query: []string{"fields"}, handler: s.getServiceInstance},
		{pattern: "PATCH /v3/service_instances/{guid}", handler: s.updateServiceInstance},
		{pattern: "DELETE /v3/service_instances/{guid}", query: []string{"purge"}, handler: s.deleteServiceInstance},
		{pattern: "GET /v3/service_instances/{guid}/parameters", handler: s.getInstanceParameters},
		{pattern: "GET /v3/service_instances/{guid}/credentials", handler: s.getInstanceCredentials},
		{pattern: "GET /v3/service_instances/{guid}/permissions", handler: s.getInstancePermissions},
		{pattern: "GET /v3/service_instances/{guid}/relationships/shared_spaces", query: []string{"fields"}, handler: s.listSharedSpaces},
		{pattern: "POST /v3/service_instances/{guid}/relationships/shared_spaces", handler: s.shareServiceInstance},
		{pattern: "DELETE /v3/service_instances/{guid}/relationships/shared_spaces/{space}", handler: s.unshareServiceInstance},
		{pattern: "GET /v3/service_instances/{guid}/relationships/shared_spaces/usage_summary", handler: s.getSharedUsage},

		{pattern: "GET /v3/service_credential_bindings", query: listing("type", "names", "service_instance_guids", "service_instance_names", "service_plan_guids", "service_plan_names",
			"service_offering_guids", "service_offering_names", "app_guids", "app_names", "label_selector", "include"), handler: s.listServiceBindings},
		{pattern: "POST /v3/service_credential_bindings", handler: s.createServiceBinding},
		{pattern: "GET /v3/service_credential_bindings/{guid}", query: []string{"include"}, handler: s.getServiceBinding},
		{pattern: "PATCH /v3/service_credential_bindings/{guid}", handler: s.updateServiceBinding},
		{pattern: "DELETE /v3/service_credential_bindings/{guid}", handler: s.deleteServiceBinding},
		{pattern: "GET /v3/service_credential_bindings/{guid}/details", handler: s.getBindingDetails},
		{pattern: "GET /v3/service_credential_bindings/{guid}/parameters", handler: s.getBindingParameters},
	}
}
