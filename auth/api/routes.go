package api

// routes is the whole interface, on one screen.
func (s *Server) routes() []route {
	return []route{
		{pattern: "POST /oauth/token", open: "the grant is the proof", handler: s.limited(s.token)},
		{pattern: "POST /oauth/revoke", open: "the client authenticates itself", handler: s.limited(s.revokeToken)},
		{pattern: "POST /introspect", open: "the client authenticates itself", handler: s.limited(s.introspect)},
		{pattern: "POST /check_token", open: "the client authenticates itself", handler: s.limited(s.checkToken)},
		{pattern: "DELETE /oauth/token/revoke/{id}", scopes: []string{"uaa.user", "tokens.revoke"}, handler: s.revokeByID},
		{pattern: "DELETE /oauth/token/revoke/user/{id}", scopes: []string{"tokens.revoke"}, handler: s.revokeUser},
		{pattern: "DELETE /oauth/token/revoke/client/{id}", scopes: []string{"tokens.revoke"}, handler: s.revokeClient},

		{pattern: "GET /oauth/authorize", open: "a person logs in, or shows a token", handler: s.limited(s.authorize)},
		{pattern: "POST /oauth/authorize", open: "the session and the form's token are the proof", handler: s.consent},
		{pattern: "GET /login", open: "people log in here", handler: s.loginPage},
		{pattern: "POST /login", open: "people log in here", handler: s.limited(s.login)},
		{pattern: "POST /logout", open: "the session is what ends", handler: s.logout},
		{pattern: "GET /passcode", open: "the session is the proof", handler: s.passcode},
		{pattern: "GET /assets/style.css", open: "how the pages look", handler: s.style},
		{pattern: "GET /{$}", open: "a person who comes by", handler: s.home},

		{pattern: "GET /info", open: "what a client needs before it can log in", handler: s.info},
		{pattern: "GET /token_keys", open: "public keys", handler: s.tokenKeys},
		{pattern: "GET /token_key", open: "public keys", handler: s.tokenKey},
		{pattern: "GET /.well-known/openid-configuration", open: "public", handler: s.discovery},
		{pattern: "GET /userinfo", scopes: []string{"openid"}, handler: s.userinfo},
		{pattern: "POST /userinfo", scopes: []string{"openid"}, handler: s.userinfo},

		{pattern: "GET /oauth/clients", scopes: []string{"clients.read", "clients.admin"}, handler: s.listClients},
		{pattern: "POST /oauth/clients", scopes: []string{"clients.write", "clients.admin"}, handler: s.createClient},
		{pattern: "GET /oauth/clients/{id}", scopes: []string{"clients.read", "clients.admin"}, handler: s.getClient},
		{pattern: "PUT /oauth/clients/{id}", scopes: []string{"clients.write", "clients.admin"}, handler: s.updateClient},
		{pattern: "DELETE /oauth/clients/{id}", scopes: []string{"clients.write", "clients.admin"}, handler: s.deleteClient},
		{pattern: "PUT /oauth/clients/{id}/secret", scopes: []string{"clients.secret", "clients.admin"}, handler: s.limited(s.changeSecret)},

		{pattern: "GET /Users", scopes: []string{"scim.read"}, handler: s.listUsers},
		{pattern: "POST /Users", scopes: []string{"scim.write", "scim.create"}, handler: s.createUser},
		{pattern: "GET /Users/{id}", scopes: []string{"scim.read", "uaa.user"}, handler: s.getUser},
		{pattern: "PUT /Users/{id}", scopes: []string{"scim.write"}, handler: s.updateUser},
		{pattern: "PATCH /Users/{id}", scopes: []string{"scim.write"}, handler: s.updateUser},
		{pattern: "DELETE /Users/{id}", scopes: []string{"scim.write"}, handler: s.deleteUser},
		{pattern: "PUT /Users/{id}/password", scopes: []string{"password.write"}, handler: s.limited(s.changePassword)},

		{pattern: "GET /Groups", scopes: []string{"scim.read"}, handler: s.listGroups},
		{pattern: "POST /Groups", scopes: []string{"scim.write"}, handler: s.createGroup},
		{pattern: "GET /Groups/{id}", scopes: []string{"scim.read"}, handler: s.getGroup},
		{pattern: "PUT /Groups/{id}", scopes: []string{"scim.write"}, handler: s.updateGroup},
		{pattern: "PATCH /Groups/{id}", scopes: []string{"scim.write"}, handler: s.updateGroup},
		{pattern: "DELETE /Groups/{id}", scopes: []string{"scim.write"}, handler: s.deleteGroup},
		{pattern: "GET /Groups/{id}/members", scopes: []string{"scim.read"}, handler: s.listMembers},
		{pattern: "POST /Groups/{id}/members", scopes: []string{"scim.write"}, handler: s.addMember},
		{pattern: "DELETE /Groups/{id}/members/{user}", scopes: []string{"scim.write"}, handler: s.removeMember},

		{pattern: "GET /audit_events", handler: s.listEvents}, // no scope but uaa.admin
	}
}
