package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
)

type curlOptions struct {
	method, data, file *string
	headers            *[]string
	include, fail      *bool
}

var curlCommand = command{
	name: "curl", args: "PATH", group: "Other", short: "Send a request to the API with your token, and print the reply as it is",
	examples: []string{
		"proa curl /v3/apps",
		`proa curl -X PATCH /v3/routes/GUID/destinations -d '{"destinations":[{"app":{"guid":"…","process":{"type":"web"}},"port":8081}]}'`,
		"proa curl /v3/apps/GUID --fail --output app.json",
	},
	needs: anAPI,
	setup: func(f *flags) action {
		o := curlOptions{
			method: f.text("X,request", "METHOD", "GET, or POST with -d, if it is not given"), headers: f.list("H,header", "LINE", "a header such as 'Accept: text/plain'"),
			data: f.text("d,data", "BODY", "the body, or @FILE to read it from"), include: f.on("i,include", "print the status and headers of the reply too"),
			fail: f.on("f,fail", "exit with 22 if the status is 400 or above"), file: f.text("output", "FILE", "write the body into a file"),
		}
		return o.run
	},
}

func (o curlOptions) run(ctx context.Context, s *session, args []string) error {
	method := firstOf(*o.method, http.MethodGet)
	var body io.Reader
	if *o.data != "" {
		data, err := s.readData(*o.data)
		if err != nil {
			return err
		}
		method, body = firstOf(*o.method, http.MethodPost), bytes.NewReader(data)
	}
	req, err := s.api.Request(ctx, strings.ToUpper(method), args[0], body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for _, line := range *o.headers {
		name, value, found := strings.Cut(line, ":")
		if !found {
			return usage("%q is not a header. Write it as 'Name: value'.", line)
		}
		req.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	resp, err := s.api.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if *o.include {
		fmt.Fprintf(s.Out, "%s %s\n", resp.Proto, resp.Status)
		for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
			for _, value := range resp.Header[name] {
				fmt.Fprintf(s.Out, "%s: %s\n", name, value)
			}
		}
		fmt.Fprintln(s.Out)
	}
	if err := s.copyBody(*o.file, resp.Body); err != nil {
		return err
	}
	if *o.fail && resp.StatusCode >= http.StatusBadRequest {
		return quiet(ExitRefused)
	}
	return nil
}

// readData reads a body as curl does: as it is given, or from @FILE, or from the input with @-.
func (s *session) readData(data string) ([]byte, error) {
	name, named := strings.CutPrefix(data, "@")
	switch {
	case !named:
		return []byte(data), nil
	case name == "-":
		return io.ReadAll(s.In)
	}
	return os.ReadFile(s.path(name))
}

// copyBody ends the line on a terminal, where the shell's prompt comes next.
func (s *session) copyBody(file string, body io.Reader) error {
	if file == "" {
		_, err := io.Copy(s.Out, body)
		if err == nil && s.OutTTY {
			fmt.Fprintln(s.Out)
		}
		return err
	}
	f, err := os.Create(s.path(file))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}
