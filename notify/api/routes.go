package api

// Route is a line of the table, as others may see it.
type Route struct {
	Pattern string
	Scopes  []string
	Open    bool
}

// Routes is the table, so that the description can be held against it.
func Routes() []Route {
	var list []Route
	for _, r := range (&Server{}).routes() {
		list = append(list, Route{r.pattern, r.scopes, r.open != ""})
	}
	return list
}

// routes is the whole interface, on one screen.
func (s *Server) routes() []route {
	send := []string{scopeWrite, scopeCritical}
	read := []string{scopeWrite, scopeEmails, scopeCritical}
	return []route{
		{pattern: "GET /info", open: "which version is spoken", handler: s.info},
		{pattern: "GET /openapi.yaml", open: "how to speak to us", handler: s.openapi},

		{pattern: "PUT /notifications", scopes: []string{scopeManage}, handler: s.register},
		{pattern: "GET /notifications", scopes: []string{scopeManage}, handler: s.listKinds},
		{pattern: "PUT /clients/{client}/notifications/{kind}", scopes: []string{scopeManage}, handler: s.updateKind},
		{pattern: "DELETE /clients/{client}/notifications/{kind}", scopes: []string{scopeManage}, handler: s.deleteKind},
		{pattern: "PUT /clients/{client}/notifications/{kind}/template", scopes: []string{scopeManage}, handler: s.assignToKind},
		{pattern: "PUT /clients/{client}/template", scopes: []string{scopeManage}, handler: s.assignToClient},

		{pattern: "GET /templates", scopes: []string{scopeTemplateRead}, handler: s.listTemplates},
		{pattern: "POST /templates", scopes: []string{scopeTemplateWrite}, handler: s.createTemplate},
		{pattern: "GET /templates/{id}", scopes: []string{scopeTemplateRead}, handler: s.getTemplate},
		{pattern: "PUT /templates/{id}", scopes: []string{scopeTemplateWrite}, handler: s.updateTemplate},
		{pattern: "DELETE /templates/{id}", scopes: []string{scopeTemplateWrite}, handler: s.deleteTemplate},
		{pattern: "GET /templates/{id}/associations", scopes: []string{scopeManage}, handler: s.listAssociations},
		{pattern: "POST /templates/{id}/preview", scopes: []string{scopeTemplateRead}, handler: s.previewTemplate},
		{pattern: "POST /template_preview", scopes: []string{scopeTemplateRead}, handler: s.previewDraft},
		{pattern: "GET /default_template", scopes: []string{scopeTemplateRead}, handler: s.getDefaultTemplate},
		{pattern: "PUT /default_template", scopes: []string{scopeTemplateWrite}, handler: s.updateDefaultTemplate},

		{pattern: "POST /users/{id}", scopes: send, handler: s.toUser},
		{pattern: "POST /spaces/{id}", scopes: send, handler: s.toSpace},
		{pattern: "POST /organizations/{id}", scopes: send, handler: s.toOrganization},
		{pattern: "POST /everyone", scopes: send, handler: s.toEveryone},
		{pattern: "POST /uaa_scopes/{id}", scopes: send, handler: s.toScope},
		{pattern: "POST /emails", scopes: []string{scopeEmails}, handler: s.toEmail},

		{pattern: "GET /messages", scopes: read, handler: s.listMessages},
		{pattern: "GET /messages/{id}", scopes: read, handler: s.getMessage},
		{pattern: "GET /messages/{id}/recipients", scopes: read, handler: s.listRecipients},
		{pattern: "POST /messages/{id}/retry", scopes: read, handler: s.retryMessage},

		{pattern: "OPTIONS /user_preferences", open: "a browser asks before it asks", handler: s.preflight},
		{pattern: "OPTIONS /user_preferences/{id}", open: "a browser asks before it asks", handler: s.preflight},
		{pattern: "GET /user_preferences", scopes: []string{scopePreferRead}, handler: s.myPreferences},
		{pattern: "PATCH /user_preferences", scopes: []string{scopePreferWrite}, handler: s.changeMyPreferences},
		{pattern: "GET /user_preferences/{id}", scopes: []string{scopePreferAdmin}, handler: s.userPreferences},
		{pattern: "PATCH /user_preferences/{id}", scopes: []string{scopePreferAdmin}, handler: s.changeUserPreferences},

		{pattern: "GET /suppressions", scopes: []string{scopeAdmin}, handler: s.listSuppressions},
		{pattern: "DELETE /suppressions/{address}", scopes: []string{scopeAdmin}, handler: s.clearSuppression},
		{pattern: "DELETE /users/{id}", scopes: []string{scopeAdmin}, handler: s.erase},

		{pattern: "GET /unsubscribe", open: "the link is the proof", handler: s.unsubscribePage},
		{pattern: "POST /unsubscribe", open: "the link is the proof", handler: s.unsubscribe},
		{pattern: "GET /unsubscribe/style.css", open: "how the page looks", handler: s.style},
	}
}
