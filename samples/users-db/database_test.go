package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestFindDatabase(t *testing.T) {
	local := settings{"DB_HOST": "localhost", "DB_NAME": "dev", "DB_USER": "me", "DB_PASSWORD": "mine"}
	with := func(vcap string) settings {
		s := settings{"VCAP_SERVICES": vcap}
		for name, value := range local {
			s[name] = value
		}
		return s
	}
	bound, here := database{"db.example.org", "6432", "d", "u", "p@:/ +?"}, database{"localhost", "5432", "dev", "me", "mine"}
	const credentials = `"host":"db.example.org","database":"d","username":"u","password":"p@:/ +?"`
	for name, c := range map[string]struct {
		env  settings
		want database
	}{
		"a port in digits":       {with(`{"postgres":[{"credentials":{"port":6432,` + credentials + `}}]}`), bound},
		"a port in text":         {with(`{"elephants":[{"credentials":{"port":"6432",` + credentials + `}}]}`), bound},
		"after another service":  {with(`{"cache":[{"credentials":{"host":"c","port":1}},{"credentials":"none"},{}],"sql":[{"credentials":{"port":6432,` + credentials + `}}]}`), bound},
		"no database among them": {with(`{"cache":[{"credentials":{"host":"c","port":1}}]}`), here},
		"nothing bound":          {with(`{}`), here},
		"no platform":            {local, here},
	} {
		if got, err := findDatabase(c.env.get); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := findDatabase(settings{}.get); !errors.Is(err, errNone) {
		t.Errorf("no database: %v", err)
	}
	if _, err := findDatabase(with(`{"postgres":{}}`).get); err == nil || !strings.Contains(err.Error(), "VCAP_SERVICES") {
		t.Errorf("a text that cannot be read: %v", err)
	}
	if c, err := pgx.ParseConfig(bound.url()); err != nil || c.Host != bound.host || c.Port != 6432 || c.Database != bound.name || c.User != bound.user || c.Password != bound.password {
		t.Errorf("what pgx makes of it: %v", err)
	}
	if strings.Contains(bound.String(), bound.password) {
		t.Error("the password is logged")
	}
}
