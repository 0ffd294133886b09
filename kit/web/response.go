package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// response remembers what was sent, for the log line and the metrics.
type response struct {
	http.ResponseWriter
	status int
	bytes  int64
	err    *fault.Error
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// FlushError begins the reply, if nothing has yet.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection below.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard takes a reply that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// JSON writes v with a status.
func JSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode reply: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}

// Read decodes a request's JSON body into v, whatever type it claims to be: curl says it is a form. Faults name the field and
// what was expected.
func Read(r *http.Request, v any) error { return read(r, v, false) }

// ReadStrict is Read for a protocol in which a field that is not known is a mistake.
func ReadStrict(r *http.Request, v any) error { return read(r, v, true) }

func read(r *http.Request, v any, strict bool) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return badJSON(err)
	}
	if !utf8.Valid(body) {
		return fault.Invalid("The body is not UTF-8. Encode it so, and send it again.")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(v); err != nil {
		return badJSON(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fault.Invalid("The body must hold one JSON value and nothing after it.")
	}
	return nil
}

func badJSON(err error) error {
	var (
		tooLarge *http.MaxBytesError
		typeErr  *json.UnmarshalTypeError
		syntax   *json.SyntaxError
		known    *fault.Error
	)
	switch {
	case errors.As(err, &tooLarge):
		return err
	case errors.As(err, &known):
		return known
	case errors.As(err, &typeErr):
		field := typeErr.Field
		if field == "" {
			field = "The body"
		}
		return fault.Invalid("%s must be %s, not %s.", field, jsonName(typeErr.Type.Kind().String()), article(typeErr.Value)).Because(err)
	case errors.As(err, &syntax):
		return fault.Invalid("The body is not valid JSON at byte %d. Check the syntax there.", syntax.Offset).Because(err)
	case errors.Is(err, io.EOF):
		return fault.Invalid("The body is empty. Send a JSON object.")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fault.Invalid("%s is not a field of this request. Remove it, or check its spelling.", strings.TrimPrefix(err.Error(), "json: unknown field ")).Because(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Invalid("The body ends in the middle of a JSON value. Send all of it.")
	}
	return fault.Invalid("The body could not be read as JSON. Check it and try again.").Because(err)
}

// jsonName says in JSON's words what a Go kind takes.
func jsonName(kind string) string {
	switch {
	case kind == "bool":
		return "true or false"
	case strings.HasPrefix(kind, "uint"):
		return "a whole number from 0 up"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "slice", kind == "array":
		return "a list"
	case kind == "struct", kind == "map":
		return "an object"
	}
	return "a " + kind
}

func article(value string) string {
	value, literal, _ := strings.Cut(value, " ")
	switch {
	case literal != "" && len(literal) <= 20: // a number that does not fit
		return literal
	case literal != "":
		return "one so long"
	}
	switch value {
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + value
}

type contextKey int

const requestIDKey contextKey = iota

// WithRequestID puts a request's id into a context.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, id)
}

// RequestID is the id of the request that a context belongs to, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// requestID takes over a caller's id when it is short and plain, so that one id follows a request through several servers.
func requestID(r *http.Request) string {
	for _, name := range []string{"X-Vcap-Request-Id", "X-Request-Id"} {
		if id := r.Header.Get(name); id != "" && len(id) <= 128 && !strings.ContainsFunc(id, notIDRune) {
			return id
		}
	}
	return strings.ToLower(rand.Text())
}

func notIDRune(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.:", c)
}

// Addr is the address a request comes from. X-Forwarded-For counts only as far as trusted proxies wrote it: it is read from
// the right, and the first address that is not a trusted proxy is the caller.
func (a *App) Addr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && a.trusted(addr); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = hop.Unmap()
	}
	return addr
}

func (a *App) trusted(addr netip.Addr) bool {
	return slices.ContainsFunc(a.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
