package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

var applyManifestCommand = command{
	name: "apply-manifest", group: "Apps", short: "Create and change apps as a manifest says, without uploading anything",
	examples: []string{"proa apply-manifest -f manifest.yml", "proa apply-manifest -f . --var domain=example.com --vars-file prod.yml"},
	needs:    aSpace,
	setup: func(f *flags) action {
		file := f.text("f,manifest", "PATH", "the manifest, or the directory it is in (.)")
		pairs, files := f.list("var", "NAME=VALUE", "value of ((NAME))"), f.list("vars-file", "FILE", "YAML with values")
		redact := f.on("redact-env", "do not show values of environment variables")
		return func(ctx context.Context, s *session, _ []string) error {
			v, err := s.loadVars(*files, *pairs)
			if err != nil {
				return err
			}
			found, err := s.findManifest(*file)
			if err != nil {
				return err
			}
			if found == "" {
				return usage("There is no manifest.yml here. Name it with -f.")
			}
			m, err := readManifest(found, v)
			if err != nil {
				return err
			}
			s.say("Applying manifest %s %s...", found, s.where())
			if err := s.applyManifest(ctx, m, *redact); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

const yamlType = "application/x-yaml"

// applyManifest shows what a manifest changes, and changes it.
func (s *session) applyManifest(ctx context.Context, m *manifest, redact bool) error {
	text, err := m.bytes()
	if err != nil {
		return err
	}
	space, body := "/v3/spaces/"+url.PathEscape(s.cfg.Space.GUID), v3.Raw{Type: yamlType, Data: text}
	if m.file != "" {
		var reply v3.ManifestDiff
		switch err := s.post(ctx, space+"/manifest_diff", body, &reply); {
		case fault.Is(err, fault.KindUnavailable):
			s.warn("What the manifest changes cannot be shown: " + fault.From(err).Detail)
		case err != nil:
			return err
		default:
			s.printDiff(m, reply.Diff, redact)
		}
	}
	if m.applied != nil {
		if body.Data, err = m.applied.bytes(); err != nil {
			return err
		}
	}
	job, err := s.api.Begin(ctx, http.MethodPost, space+"/actions/apply_manifest", body)
	if err != nil {
		return err
	}
	return s.api.Finish(ctx, job)
}

func (s *session) printDiff(m *manifest, diff []v3.Difference, redact bool) {
	diff = slices.DeleteFunc(diff, func(d v3.Difference) bool { return slices.Contains(m.unasked, d.Path) })
	if len(diff) == 0 {
		s.say("The manifest changes nothing.")
		return
	}
	s.say("The manifest changes:")
	for _, c := range diff {
		name := m.label(c.Path)
		hide := redact && strings.Contains(c.Path+"/", "/env/")
		if c.Op != "add" {
			s.printChange(s.red, "- ", name, as(c.Was.Value), hide)
		}
		if c.Op != "remove" {
			s.printChange(s.green, "+ ", name, as(c.Value.Value), hide)
		}
	}
}

func (s *session) printChange(colour func(string) string, sign, name string, value any, hide bool) {
	text, err := yaml.Marshal(value)
	if err != nil || hide {
		text = []byte("(hidden)")
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(lines) == 1 {
		fmt.Fprintln(s.Out, "  "+colour(sign+clean(name)+": "+clean(lines[0])))
		return
	}
	fmt.Fprintln(s.Out, "  "+colour(sign+clean(name)+":"))
	for _, line := range lines {
		fmt.Fprintln(s.Out, "  "+colour(sign+"  "+clean(line)))
	}
}
