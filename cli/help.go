package cli

import (
	"context"
	"fmt"
	"strings"
)

// overview lists all commands by what they are about.
func (e *Env) overview() {
	fmt.Fprintf(e.Out, "%s runs your apps on the platform.\n\n", e.bold("proa"))
	fmt.Fprintf(e.Out, "First steps:  proa login -a URL\n              proa push APP -p DIRECTORY\n")
	e.chapter(commands())
	fmt.Fprintf(e.Out, "\nproa COMMAND --help shows options and examples; proa help exit-codes and proa help environment show more.\n")
}

// chapter lists some commands.
func (e *Env) chapter(some []command) {
	longest := 0
	for _, c := range some {
		longest = max(longest, len(c.name))
	}
	group := ""
	for _, c := range some {
		if c.group != group {
			group = c.group
			fmt.Fprintf(e.Out, "\n%s\n", e.bold(group))
		}
		e.entry("  "+c.name+strings.Repeat(" ", longest-len(c.name)+2), c.short)
	}
}

// entry writes a label and a text beside it, which wraps on a narrow terminal.
func (e *Env) entry(label, text string) {
	total := e.room()
	if total == 0 {
		total = 110
	}
	room := total - width(label)
	if room < 20 {
		room = max(width(text), 1)
	}
	for i, line := range wrap(text, room) {
		if i > 0 {
			label = strings.Repeat(" ", width(label))
		}
		fmt.Fprintln(e.Out, label+line)
	}
}

// page shows all about one command.
func (e *Env) page(c command) {
	f := newFlags(c.name)
	c.setup(f)
	fmt.Fprintf(e.Out, "%s.\n\n%s\n  %s", c.short, e.bold("Usage"), c.usage())
	if len(f.shown) > 0 {
		fmt.Fprint(e.Out, " [options]")
	}
	fmt.Fprintln(e.Out)
	if c.long != "" {
		fmt.Fprintln(e.Out)
		e.entry("", strings.ReplaceAll(c.long, "\n", " "))
	}
	if len(f.shown) > 0 {
		fmt.Fprintf(e.Out, "\n%s\n", e.bold("Options"))
		e.options(f.shown)
	}
	if len(c.examples) > 0 {
		fmt.Fprintf(e.Out, "\n%s\n", e.bold("Examples"))
		for _, x := range c.examples {
			fmt.Fprintln(e.Out, "  "+x)
		}
	}
}

func (e *Env) options(shown []option) {
	labels, longest := make([]string, len(shown)), 0
	for i, o := range shown {
		labels[i] = "  " + strings.Join(o.names, ", ")
		if len(o.names) == 1 && len(o.names[0]) > 2 {
			labels[i] = "      " + o.names[0]
		}
		if o.value != "" {
			labels[i] += " " + o.value
		}
		longest = max(longest, len(labels[i]))
	}
	for i, o := range shown {
		e.entry(labels[i]+strings.Repeat(" ", longest-len(labels[i])+2), o.help)
	}
}

const environment = `  PROA_HOME            directory in which .proa holds the configuration (~/.config/proa without it)
  PROA_API_URL         the API to use; a login at another one is not used there
  PROA_USERNAME        who logs in, for login and auth
  PROA_PASSWORD        their password, or the secret of a client
  PROA_CLIENT_SECRET   the secret for create-client
  PROA_DOCKER_PASSWORD the password for push --docker-username
  PROA_BROKER_PASSWORD the password for create-service-broker and update-service-broker
  PROA_NOTIFY_URL      the notification service, if the API does not say where it is
  PROA_NOTIFY_CLIENT_ID, PROA_NOTIFY_CLIENT_SECRET
                       the client that sends, for proa notify
  PROA_AUTH_URL        the authorization server that gives it tokens, where there is no API
  PROA_STAGING_TIMEOUT how long push waits for staging (15m)
  PROA_STARTUP_TIMEOUT how long push waits for instances to start (5m)
  NO_COLOR             no colours`

func helpCommand() command {
	return command{
		name: "help", args: "[COMMAND] [WORD] [WORD]", group: "Other", short: "Show help",
		examples: []string{"proa help push", "proa help exit-codes", "proa help environment"},
		setup: func(*flags) action {
			return func(_ context.Context, s *session, args []string) error {
				switch {
				case len(args) == 0:
					s.overview()
				case args[0] == "exit-codes":
					s.say("%s\n%s", s.bold("Exit codes"), exitCodes)
				case args[0] == "environment":
					s.say("%s\n%s", s.bold("Environment variables"), environment)
				case len(family(args)) > 0:
					s.chapter(family(args))
				default:
					c, rest, err := find(args)
					if err != nil {
						return err
					}
					if len(rest) > 0 {
						return usage("%q is one argument too many.", rest[0])
					}
					s.page(c)
				}
				return nil
			}
		},
	}
}

var versionCommand = command{
	name: "version", group: "Other", short: "Show the version",
	setup: func(*flags) action {
		return func(_ context.Context, s *session, _ []string) error {
			s.say("proa %s", s.Version)
			return nil
		}
	},
}

// commands are all there are, in the order in which help shows them.
func commands() []command {
	return []command{
		loginCommand, authCommand, logoutCommand, targetCommand, apiCommand, tokenCommand,
		pushCommand, createAppCommand, applyManifestCommand, appsCommand, appCommand, startCommand, stopCommand, restartCommand, restageCommand,
		scaleCommand, deleteCommand, envCommand, setEnvCommand, unsetEnvCommand, eventsCommand, enableNotificationsCommand, disableNotificationsCommand, logsCommand,
		continueDeploymentCommand, cancelDeploymentCommand, revisionsCommand, revisionCommand, rollbackCommand,
		routesCommand, routeCommand, createRouteCommand, mapRouteCommand, unmapRouteCommand, checkRouteCommand, deleteRouteCommand, deleteOrphanedRoutesCommand,
		domainsCommand, createSharedDomainCommand, createPrivateDomainCommand, deletePrivateDomainCommand, deleteSharedDomainCommand,
		marketplaceCommand, createServiceCommand, servicesCommand, serviceCommand, updateServiceCommand, upgradeServiceCommand, renameServiceCommand, deleteServiceCommand,
		bindServiceCommand, unbindServiceCommand, createServiceKeyCommand, serviceKeysCommand, serviceKeyCommand, deleteServiceKeyCommand,
		createUserProvidedServiceCommand, updateUserProvidedServiceCommand, shareServiceCommand, unshareServiceCommand,
		createServiceBrokerCommand, updateServiceBrokerCommand, renameServiceBrokerCommand, deleteServiceBrokerCommand, serviceBrokersCommand,
		enableServiceAccessCommand, disableServiceAccessCommand, serviceAccessCommand, purgeServiceInstanceCommand,
		sshCommand, sshCodeCommand, enableSSHCommand, disableSSHCommand, sshEnabledCommand, allowSpaceSSHCommand, disallowSpaceSSHCommand, spaceSSHAllowedCommand,
		createOrgCommand, orgsCommand, deleteOrgCommand, createSpaceCommand, spacesCommand, deleteSpaceCommand,
		notifyRegisterCommand, notifyKindsCommand, notifySendCommand, notifyMessageCommand, notifyPreferencesCommand,
		notifyTemplateCreateCommand, notifyTemplateListCommand, notifyTemplateShowCommand, notifyTemplatePreviewCommand, notifyTemplateAssignCommand, notifyTemplateDeleteCommand,
		createUserCommand, setOrgRoleCommand, setSpaceRoleCommand, createClientCommand, updateClientCommand, clientsCommand, deleteClientCommand,
		curlCommand, completionCommand(), helpCommand(), versionCommand,
	}
}
