package bits

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/proa-dev/proa/kit/env"
)

// Settings are what every program that reaches the registry is told by its operator.
type Settings struct {
	Registry string     `env:"PROA_REGISTRY" required:"true" help:"Where images are kept, as host:port/path; without a path it is proa."`
	Username string     `env:"PROA_REGISTRY_USERNAME" help:"Account at the registry; without it the registry asks for none."`
	Password env.Secret `env:"PROA_REGISTRY_PASSWORD" help:"Its password."`
	CAFile   string     `env:"PROA_REGISTRY_CA_FILE" help:"File with the authority of the registry's certificate, if it is not one that everybody knows."`
	Builder  string     `env:"PROA_BUILDER" help:"Image that apps are staged with; without it, proa/builder:latest of the registry."`
	RunImage string     `env:"PROA_RUN_IMAGE" help:"Image that staged apps run on; without it, proa/run:latest of the registry."`
}

// Complete fills in what follows from others, and refuses what would fail later.
func (s *Settings) Complete() error {
	s.Registry = strings.Trim(s.Registry, "/")
	host, _, path := strings.Cut(s.Registry, "/")
	if !path {
		s.Registry = host + "/proa"
	}
	s.Builder, s.RunImage = cmp.Or(s.Builder, host+"/proa/builder:latest"), cmp.Or(s.RunImage, host+"/proa/run:latest")
	if host == "" || strings.Contains(s.Registry, "://") {
		return errors.New("PROA_REGISTRY must be host:port/path, such as registry.example.org/proa")
	}
	if (s.Username == "") != (s.Password.Reveal() == "") {
		return errors.New("PROA_REGISTRY_USERNAME and PROA_REGISTRY_PASSWORD need each other")
	}
	return nil
}

// Host is the registry without the path.
func (s *Settings) Host() string {
	host, _, _ := strings.Cut(s.Registry, "/")
	return host
}

// Open is the way to the registry, and the authority of its certificate if it has one of its own. Nothing is asked yet.
func (s *Settings) Open() (*Registry, []byte, error) {
	var authority []byte
	if s.CAFile != "" {
		var err error
		if authority, err = os.ReadFile(s.CAFile); err != nil {
			return nil, nil, fmt.Errorf("PROA_REGISTRY_CA_FILE: %w", err)
		}
	}
	way, err := Trusting(authority)
	if err != nil {
		return nil, nil, fmt.Errorf("PROA_REGISTRY_CA_FILE: %w", err)
	}
	return &Registry{Prefix: s.Registry, Username: s.Username, Password: s.Password.Reveal(), Transport: way}, authority, nil
}
