package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// database is where the users are kept.
type database struct {
	host, port, name, user, password string
}

// findDatabase takes the first service with the credentials of a database from VCAP_SERVICES, whatever its offering is called. Without
// one it takes the settings of this machine.
func findDatabase(getenv func(string) string) (database, error) {
	d, found, err := boundDatabase(getenv("VCAP_SERVICES"))
	if err != nil || found {
		return d, err
	}
	d = database{host: getenv("DB_HOST"), port: getenv("DB_PORT"), name: getenv("DB_NAME"), user: getenv("DB_USER"), password: getenv("DB_PASSWORD")}
	if d.host == "" {
		return d, errNone
	}
	if d.port == "" {
		d.port = "5432"
	}
	return d, nil
}

func boundDatabase(vcap string) (d database, found bool, err error) {
	if vcap == "" {
		return d, false, nil
	}
	decoder := json.NewDecoder(strings.NewReader(vcap))
	decoder.UseNumber()
	var services map[string][]struct {
		Credentials any `json:"credentials"` // of other services it may be anything
	}
	if err := decoder.Decode(&services); err != nil {
		return d, false, fmt.Errorf("read VCAP_SERVICES: %w", err)
	}
	for _, label := range slices.Sorted(maps.Keys(services)) {
		for _, s := range services[label] {
			c, _ := s.Credentials.(map[string]any)
			d := database{host: text(c["host"]), port: text(c["port"]), name: text(c["database"]), user: text(c["username"]), password: text(c["password"])}
			if d.host != "" && d.port != "" && d.name != "" && d.user != "" && d.password != "" {
				return d, true, nil
			}
		}
	}
	return d, false, nil
}

// text is a string or a number, as brokers write ports either way.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

func (d database) url() string {
	q := url.Values{"host": {d.host}, "port": {d.port}, "dbname": {d.name}, "user": {d.user}, "password": {d.password}}
	for key := range q {
		if q.Get(key) == "" {
			q.Del(key) // pgx has a default
		}
	}
	return "postgres://?" + strings.ReplaceAll(q.Encode(), "+", "%20") // pgx takes a plus as it is
}

// String is for the log: it leaves out the password.
func (d database) String() string { return d.name + " on " + net.JoinHostPort(d.host, d.port) }
