package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// object reads a JSON object that somebody wrote, or the file of that name. What is in it may be a secret, so no refusal repeats it.
func (e *Env) object(option, text string) (json.RawMessage, error) {
	source, data := "what was given", []byte(text)
	if inline := strings.HasPrefix(strings.TrimSpace(text), "{"); !inline {
		var err error
		if data, err = os.ReadFile(e.path(text)); errors.Is(err, fs.ErrNotExist) {
			return nil, usage("%s wants a JSON object, such as '{\"size\": 2}', or the name of a file with one. There is no such file.", option)
		} else if err != nil {
			return nil, usage("The file for %s cannot be read: %v.", option, err)
		}
		source = "the file " + text
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal(data, &object)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, usage("%s wants a JSON object, but %s is not valid JSON: look around byte %d.", option, source, syntax.Offset)
	case err != nil || object == nil:
		return nil, usage("%s wants a JSON object, such as '{\"size\": 2}', but %s is something else.", option, source)
	}
	return json.RawMessage(bytes.TrimSpace(data)), nil
}

// printObject writes JSON of a broker as people can copy from it: no & is written as \u0026, and no number loses a digit.
func (s *session) printObject(text json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return err
	}
	return s.json(value)
}

// parametersFlag is for what only the broker understands.
func parametersFlag(f *flags) func(*session) (json.RawMessage, error) {
	text := f.maybe("c,parameters", "JSON", "what the broker is told: a JSON object, or the name of a file with one")
	return func(s *session) (json.RawMessage, error) {
		if *text == nil {
			return nil, nil
		}
		return s.object("-c", **text)
	}
}

// tagsOf reads tags that stand between commas.
func tagsOf(text string) []string {
	tags := []string{}
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
