package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// notes is what is not usual about a destination, with its share of a total if that is not 0.
func notes(d v3.Destination, total int) string {
	text := ""
	if kind := typeOf(d); kind != "web" {
		text += " " + clean(kind)
	}
	if d.Protocol == "http2" {
		text += " http2"
	}
	if d.Weight != nil {
		text += fmt.Sprintf(" weight %d", *d.Weight)
	}
	if d.Weight != nil && total > 0 {
		text += fmt.Sprintf(" of %d", total)
	}
	if d.State == v3.DestinationPending {
		text += " pending"
	}
	return text
}

const usualPort = 8080

// portOf is the port that gets the requests. Another platform may leave it out where it is the usual one.
func portOf(d v3.Destination) int {
	if d.Port == 0 {
		return usualPort
	}
	return d.Port
}

func typeOf(d v3.Destination) string {
	if d.App.Process == nil {
		return "web"
	}
	return firstOf(d.App.Process.Type, "web")
}

// printPending says which apps must be restarted before their destinations get requests.
func (s *session) printPending(apps map[string]string, routes []v3.Route) {
	ports := map[string][]int{}
	for _, r := range routes {
		for _, d := range r.Destinations {
			if d.State == v3.DestinationPending {
				ports[d.App.GUID] = append(ports[d.App.GUID], portOf(d))
			}
		}
	}
	guids := slices.SortedFunc(maps.Keys(ports), func(a, b string) int { return strings.Compare(apps[a], apps[b]) })
	switch len(guids) {
	case 0:
	case 1:
		noun, texts := "port", inOrderOnce(ports[guids[0]])
		if len(texts) > 1 {
			noun = "ports"
		}
		s.say("\n%s restart the app to open %s %s", s.yellow("pending:"), noun, strings.Join(texts, ", "))
		s.say("Next: proa restart %s", shell(apps[guids[0]]))
	default:
		s.say("\n%s restart these apps to open their ports", s.yellow("pending:"))
		for i, guid := range guids[:min(len(guids), maxPending)] {
			lead := map[bool]string{true: "Next:", false: "     "}[i == 0]
			s.say("%s proa restart %s    # %s", lead, shell(apps[guid]), strings.Join(inOrderOnce(ports[guid]), ", "))
		}
		if more := len(guids) - maxPending; more > 0 {
			s.say("      and %d more", more)
		}
	}
}

// maxPending is how many commands are listed for a person to type.
const maxPending = 8

func inOrderOnce(ports []int) []string {
	var texts []string
	slices.Sort(ports)
	for _, p := range slices.Compact(ports) {
		texts = append(texts, strconv.Itoa(p))
	}
	return texts
}

func (s *session) printDestinations(names names, r v3.Route) {
	rows := make([][]string, len(r.Destinations))
	for i, d := range r.Destinations {
		weight, state := "-", clean(firstOf(d.State, v3.DestinationMapped))
		if d.Weight != nil {
			weight = fmt.Sprint(*d.Weight)
		}
		if state == v3.DestinationPending {
			state = s.yellow(state)
		}
		rows[i] = []string{clean(names.apps[d.App.GUID]), clean(typeOf(d)), fmt.Sprint(portOf(d)), clean(d.Protocol), weight, state}
	}
	s.table(s.Out, []string{"app", "process", "port", "protocol", "weight", "state"}, rows)
	s.printPending(names.apps, []v3.Route{r})
}

// toApp are the routes with only their destinations that are of an app.
func toApp(a v3.App, routes []v3.Route) []v3.Route {
	own := make([]v3.Route, len(routes))
	for i, r := range routes {
		r.Destinations = slices.DeleteFunc(slices.Clone(r.Destinations), func(d v3.Destination) bool { return d.App.GUID != a.GUID })
		own[i] = r
	}
	return own
}

// routesTo are the routes of an app as its page shows them, one destination to a line.
func routesTo(a v3.App, routes []v3.Route) string {
	var lines []string
	for i, own := range toApp(a, routes) {
		if len(own.Destinations) == 0 {
			lines = append(lines, clean(own.URL))
		}
		total := 0
		for _, d := range routes[i].Destinations {
			total += as(d.Weight)
		}
		for _, d := range own.Destinations {
			line := clean(own.URL)
			if portOf(d) != usualPort {
				line += fmt.Sprintf(" port %d", portOf(d))
			}
			lines = append(lines, line+notes(d, total))
		}
	}
	return firstOf(strings.Join(lines, "\n"), "-")
}
