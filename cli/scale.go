package cli

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var scaleCommand = command{
	name: "scale", args: "APP", group: "Apps", short: "Change how many instances run, and how large they are",
	long:     "More or fewer instances do not disturb those that run. Another size restarts the app; -f does so without asking.",
	examples: []string{"proa scale shop -i 3", "proa scale shop --process worker -m 512M -f"},
	needs:    aSpace,
	setup: func(f *flags) action {
		instances, memory := f.number("instances,i", "NUMBER", "how many instances"), f.text("memory,m", "SIZE", "memory of each, such as 512M or 1G")
		disk, kind := f.text("disk,k", "SIZE", "disk of each, such as 1G"), f.text("process", "TYPE", "which process (web)")
		force, w := f.on("force,f", "restart without asking"), waitFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			ask, err := scaling(*instances, *memory, *disk)
			if err != nil {
				return err
			}
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			if len(ask) == 0 {
				return s.showApp(ctx, a)
			}
			resize := a.State == "STARTED" && (*memory != "" || *disk != "")
			if resize {
				if err := s.confirm(ctx, *force, fmt.Sprintf("This restarts app %s. Go on?", clean(a.Name))); err != nil {
					return err
				}
			}
			s.say("Scaling app %s %s...", s.bold(clean(a.Name)), s.where())
			path := "/v3/apps/" + url.PathEscape(a.GUID) + "/processes/" + url.PathEscape(firstOf(*kind, "web")) + "/actions/scale"
			if err := s.post(ctx, path, ask, &v3.Process{}); err != nil {
				return err
			}
			if a.State != "STARTED" {
				s.ok()
				return nil
			}
			if !resize {
				return s.comeUp(ctx, a, w())
			}
			if err := s.act(ctx, a, "stop"); err != nil {
				return err
			}
			return s.begin(ctx, a, "start", w())
		}
	},
}

func scaling(instances *int, memory, disk string) (map[string]int, error) {
	ask := map[string]int{}
	if instances != nil {
		ask["instances"] = *instances
	}
	for key, text := range map[string]string{"memory_in_mb": memory, "disk_in_mb": disk} {
		if text == "" {
			continue
		}
		mb, err := megabytes(text)
		if err != nil {
			return nil, err
		}
		ask[key] = mb
	}
	return ask, nil
}

var sizeText = regexp.MustCompile(`^([0-9]{1,9})([MGT])B?$`)

// megabytes reads a size as manifests write it: 512M, 1G, 256MB.
func megabytes(text string) (int, error) {
	m := sizeText.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(text)))
	if m == nil {
		return 0, usage("%q is not a size. Write it as 512M or 1G.", text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	return n * map[string]int{"M": 1, "G": 1 << 10, "T": 1 << 20}[m[2]], nil
}
