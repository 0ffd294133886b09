package auth

import (
	"errors"
	"strings"
	"testing"
)

func TestStartAdministrator(t *testing.T) {
	const file = "administrator: {user_name_from: NAME, password_from: PASSWORD, email_from: EMAIL, email: admin@proa.localhost}"
	settings := map[string]string{"NAME": "ada", "PASSWORD": "lovelace"}
	setting := func(name string) (string, error) { return settings[name], nil }
	for email, want := range map[string]string{"": "admin@proa.localhost", "ada@example.org": "ada@example.org"} {
		settings["EMAIL"] = email
		if s, err := ParseStart([]byte(file), setting); err != nil || s.Administrator.Email != want || s.Administrator.Name != "ada" {
			t.Errorf("with EMAIL=%q: %+v, %v", email, s.Administrator, err)
		}
	}
	delete(settings, "PASSWORD")
	if _, err := ParseStart([]byte(file), setting); err == nil || !strings.Contains(err.Error(), "PASSWORD_FILE") {
		t.Errorf("without a password: %v", err)
	}
	unread := errors.New("EMAIL_FILE cannot be read")
	_, err := ParseStart([]byte("administrator: {email_from: EMAIL}"), func(string) (string, error) { return "", unread })
	if !errors.Is(err, unread) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}
