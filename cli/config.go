package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Config is what is remembered between two commands. It holds tokens, so the file is the owner's alone.
type Config struct {
	API      string `json:"api,omitempty"`
	Login    string `json:"login,omitempty"`
	UAA      string `json:"uaa,omitempty"`
	LogCache string `json:"log_cache,omitempty"`
	Apps     string `json:"apps,omitempty"` // scheme and port at which apps are reached, if the API says so
	Version  string `json:"api_version,omitempty"`
	Insecure bool   `json:"skip_ssl_validation,omitempty"`
	ClientID string `json:"client_id,omitempty"` // set when a client logged in, not a person
	Access   string `json:"access_token,omitempty"`
	Refresh  string `json:"refresh_token,omitempty"`
	Org      Place  `json:"org,omitzero"`
	Space    Place  `json:"space,omitzero"`
}

// Place is an organization or a space that was chosen.
type Place struct {
	GUID string `json:"guid"`
	Name string `json:"name"`
}

const configFile = "config.json"

func loadConfig(home string) (Config, error) {
	var c Config
	path := filepath.Join(home, configFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, failed("rm "+path+"    # then log in again", "The configuration in %s cannot be read: %v.", path, err)
	}
	return c, nil
}

// save replaces the file as a whole, so that a command that reads it meanwhile sees the old one or the new one.
func (c Config) save(home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("save configuration: %w", err)
	}
	data, err := json.MarshalIndent(c, "", "  ") //nolint:gosec // the tokens are meant to be kept, in a file that is the owner's alone
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(home, configFile+".*") // made readable for the owner alone
	if err != nil {
		return fmt.Errorf("save configuration: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("save configuration: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(home, configFile)); err != nil {
		return fmt.Errorf("save configuration: %w", err)
	}
	return nil
}

// at forgets everything that belongs to another API: tokens must not reach it.
func (c Config) at(api string) Config {
	if c.API == api {
		return c
	}
	return Config{API: api}
}
