package cli

import (
	"context"
	"net/http"
	"net/url"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func noticesOf(a v3.App) string {
	return "/v3/apps/" + url.PathEscape(a.GUID) + "/features/notifications"
}

func appNotices(name, short string, on bool) command {
	return command{
		name: name, args: "APP", group: "Apps", short: short, needs: aSpace,
		setup: func(*flags) action {
			return func(ctx context.Context, s *session, args []string) error {
				a, err := s.findApp(ctx, args[0])
				if err != nil {
					return err
				}
				s.say("%s notifications for app %s %s...", map[bool]string{true: "Enabling", false: "Disabling"}[on], s.bold(clean(a.Name)), s.where())
				err = s.api.Call(ctx, http.MethodPatch, noticesOf(a), v3.FeatureChange{Enabled: &on}, nil)
				if fault.Is(err, fault.KindNotFound) {
					return failed("ask the operator of "+s.cfg.API, "This platform does not tell developers when an app breaks.")
				}
				if err != nil {
					return err
				}
				s.ok()
				if on {
					s.say("\nThe developers of this space get a mail when the app has crashed three times in a row, or an operation on a service fails.")
				}
				return nil
			}
		},
	}
}

var (
	enableNotificationsCommand  = appNotices("enable-notifications", "Tell the developers of the space by mail when an app breaks", true)
	disableNotificationsCommand = appNotices("disable-notifications", "Tell nobody when an app breaks", false)
)

// notices tells whether developers are told when the app breaks. A platform that knows nothing of it tells nobody.
func (s *session) notices(ctx context.Context, a v3.App) (bool, error) {
	var is v3.Feature
	err := s.get(ctx, noticesOf(a), &is)
	if fault.Is(err, fault.KindNotFound) {
		return false, nil
	}
	return is.Enabled, err
}
