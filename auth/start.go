package auth

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"
)

// Start is the state that the server makes sure of each time it starts: groups and clients are made to be as written, and the
// first administrator is created if nobody has that name. What is not written here is left alone.
type Start struct {
	Groups        []StartGroup  `yaml:"groups"`
	Clients       []StartClient `yaml:"clients"`
	Administrator StartAdmin    `yaml:"administrator"`
}

// StartGroup is a scope that people can hold.
type StartGroup struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Everyone    bool   `yaml:"everyone"`
}

// StartClient is a client. SecretFrom names a setting, because a secret does not belong into this file.
type StartClient struct {
	ID          string        `yaml:"id"`
	Name        string        `yaml:"name"`
	SecretFrom  string        `yaml:"secret_from"`
	Grants      []string      `yaml:"authorized_grant_types"`
	Scopes      []string      `yaml:"scope"`
	Authorities []string      `yaml:"authorities"`
	Redirects   []string      `yaml:"redirect_uri"`
	AutoApprove []string      `yaml:"autoapprove"`
	AccessFor   time.Duration `yaml:"access_token_validity"`
	RefreshFor  time.Duration `yaml:"refresh_token_validity"`
	Secret      string        `yaml:"-"`
}

// StartAdmin is the first administrator. Email holds where the setting that EmailFrom names is empty.
type StartAdmin struct {
	NameFrom     string   `yaml:"user_name_from"`
	PasswordFrom string   `yaml:"password_from"`
	EmailFrom    string   `yaml:"email_from"`
	Email        string   `yaml:"email"`
	Groups       []string `yaml:"groups"`
	Name         string   `yaml:"-"`
	Password     string   `yaml:"-"`
}

// ParseStart reads the start file. setting gives the value of a named setting.
func ParseStart(file []byte, setting func(name string) (string, error)) (Start, error) {
	var s Start
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	decoder.KnownFields(true)
	if err := decoder.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("the start file cannot be read: %w", err)
	}
	var problems []error
	take := func(name string, into *string) {
		if name == "" {
			return
		}
		value, err := setting(name)
		if err == nil && value == "" {
			err = fmt.Errorf("the start file needs %s, which is empty. Set it, or %s_FILE", name, name)
		}
		problems = append(problems, err)
		*into = value
	}
	for i := range s.Clients {
		take(s.Clients[i].SecretFrom, &s.Clients[i].Secret)
	}
	take(s.Administrator.NameFrom, &s.Administrator.Name)
	take(s.Administrator.PasswordFrom, &s.Administrator.Password)
	if from := s.Administrator.EmailFrom; from != "" {
		email, err := setting(from)
		problems = append(problems, err)
		s.Administrator.Email = cmp.Or(email, s.Administrator.Email)
	}
	for _, g := range s.Groups {
		if err := CheckScope(g.Name); err != nil {
			problems = append(problems, fmt.Errorf("the start file's group %q: %w", g.Name, err))
		}
	}
	return s, errors.Join(problems...)
}

// Client is the client's record, with the secrets it has now if they still fit.
func (c StartClient) Client(secrets []Hash) Client {
	made := Client{ID: c.ID, Name: c.Name, Scopes: c.Scopes, Authorities: c.Authorities, Grants: c.Grants, RedirectURIs: c.Redirects,
		AutoApprove: c.AutoApprove, AccessFor: c.AccessFor, RefreshFor: c.RefreshFor}
	if c.SecretFrom == "" {
		return made
	}
	for _, h := range secrets {
		if h.Matches(c.Secret) {
			made.Secrets = secrets
			return made
		}
	}
	made.Secrets = []Hash{NewHash(c.Secret)}
	return made
}
