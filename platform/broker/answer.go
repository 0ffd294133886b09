package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/proa-dev/proa/platform"
)

// maxText is how long an operation or an address may be, in characters.
const maxText = 10_000

// understand makes an answer of what came. Malformed is only said of a 2xx: of a refusal the status says enough.
func understand(resp *http.Response, body []byte, read func(*platform.Answer, []byte) error) platform.Answer {
	a := platform.Answer{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	clean, err := settle(body)
	switch {
	case a.Status >= 200 && a.Status <= 299:
		if err == nil {
			err = read(&a, clean)
		}
		a.Malformed = err != nil
	case err == nil:
		err = readRefusal(&a, clean)
	}
	if err != nil {
		a.Cause = err.Error()
	}
	if a.Malformed {
		return platform.Answer{Status: a.Status, Malformed: true, Cause: a.Cause, RetryAfter: a.RetryAfter}
	}
	return a
}

// settle reads a body as one object and writes it again, so that what we keep of it can be kept everywhere: without NUL, broken
// characters, numbers without end and depths that exhaust who reads them.
func settle(body []byte) ([]byte, error) {
	if len(body) > maxBody {
		return nil, fmt.Errorf("the body is larger than %d MB", maxBody>>20)
	}
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&all); err != nil || all == nil {
		return nil, errors.New("the body is not a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body goes on after its JSON object")
	}
	if err := harmless(all, 0); err != nil {
		return nil, err
	}
	var clean bytes.Buffer
	e := json.NewEncoder(&clean)
	e.SetEscapeHTML(false)
	err := e.Encode(all)
	return clean.Bytes(), err
}

const maxDepth = 64

func harmless(value any, depth int) error {
	if depth > maxDepth {
		return errors.New("the body is nested too deep")
	}
	switch v := value.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return errors.New("the body has a NUL character")
		}
	case json.Number:
		if _, err := v.Float64(); err != nil || len(v) > 1000 {
			return errors.New("the body has a number without end")
		}
	case []any:
		for _, inner := range v {
			if err := harmless(inner, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, inner := range v {
			if err := errors.Join(harmless(name, depth), harmless(inner, depth+1)); err != nil {
				return err
			}
		}
	}
	return nil
}

func readRefusal(a *platform.Answer, body []byte) error {
	var said struct {
		Error       any `json:"error"`
		Description any `json:"description"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}
	a.Code, _ = said.Error.(string)
	a.Description, _ = said.Description.(string)
	return nil
}

// accepted is what a broker says that goes on working.
type accepted struct {
	Operation *string `json:"operation"`
}

func (s accepted) read(a *platform.Answer) error {
	if s.Operation == nil || a.Status != http.StatusAccepted {
		return nil
	}
	if utf8.RuneCountInString(*s.Operation) > maxText {
		return fmt.Errorf("the operation is longer than %d characters", maxText)
	}
	a.Token = *s.Operation
	return nil
}

// readInstance reads what is said of an instance when it is made, changed or asked for.
func readInstance(a *platform.Answer, body []byte) error {
	var said struct {
		accepted
		DashboardURL any             `json:"dashboard_url"`
		Parameters   json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}
	if at, _ := said.DashboardURL.(string); webAddress(at) {
		a.DashboardURL = at
	}
	var err error
	if a.Parameters, err = shaped(said.Parameters, '{', ""); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	return said.read(a)
}

// readBinding reads credentials. They are an object and the volume mounts a list in any case, unless the binding is still to come.
func readBinding(a *platform.Answer, body []byte) error {
	var said struct {
		accepted
		Credentials    json.RawMessage `json:"credentials"`
		SyslogDrainURL *string         `json:"syslog_drain_url"`
		VolumeMounts   json.RawMessage `json:"volume_mounts"`
		Parameters     json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}
	if a.Status == http.StatusAccepted {
		return said.read(a)
	}
	var wrong [3]error
	a.Details.Credentials, wrong[0] = shaped(said.Credentials, '{', "{}")
	a.Details.VolumeMounts, wrong[1] = shaped(said.VolumeMounts, '[', "[]")
	a.Parameters, wrong[2] = shaped(said.Parameters, '{', "")
	for i, name := range [3]string{"credentials", "volume_mounts", "parameters"} {
		if wrong[i] != nil {
			return fmt.Errorf("%s: %w", name, wrong[i])
		}
	}
	if said.SyslogDrainURL != nil && *said.SyslogDrainURL != "" {
		at, err := url.Parse(*said.SyslogDrainURL)
		if err != nil || at.Scheme == "" || at.Host == "" || len(*said.SyslogDrainURL) > maxText {
			return errors.New("syslog_drain_url: not an address")
		}
		a.Details.SyslogDrainURL = *said.SyslogDrainURL
	}
	return nil
}

func readDeletion(a *platform.Answer, body []byte) error {
	var said accepted
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}
	return said.read(a)
}

func readOperation(a *platform.Answer, body []byte) error {
	var said struct {
		State       platform.OperationState `json:"state"`
		Description any                     `json:"description"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}
	switch said.State {
	case platform.OperationRunning, platform.OperationSucceeded, platform.OperationFailed:
		a.State = said.State
	default:
		return errors.New("the state is none of: in progress, succeeded, failed")
	}
	a.Description, _ = said.Description.(string)
	return nil
}

// shaped takes a value that begins as an object or a list does. One that is missing or null is what there is instead.
func shaped(value json.RawMessage, first byte, instead string) (json.RawMessage, error) {
	switch {
	case len(value) == 0 || string(value) == "null":
		if instead == "" {
			return nil, nil
		}
		return json.RawMessage(instead), nil
	case value[0] != first:
		return nil, map[byte]error{'{': errors.New("not an object"), '[': errors.New("not a list")}[first]
	}
	return value, nil
}

// webAddress tells whether a person can follow it in a browser.
func webAddress(at string) bool {
	place, err := url.Parse(at)
	return err == nil && (place.Scheme == "http" || place.Scheme == "https") && place.Host != "" && len(at) <= maxText
}
