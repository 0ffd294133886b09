package env

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that stays out of logs, errors and encodings: however it is printed it reads
// "[secret]". Keep it in exported fields; package fmt cannot see the methods of unexported ones.
type Secret string

const redacted = "[secret]"

// Reveal gives the text itself.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string               { return redacted }
func (s Secret) GoString() string             { return redacted }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// Format covers the verbs that pass String by: fmt prints the raw value for a verb that does not
// fit, such as %d.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }
