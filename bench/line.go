package main

import (
	"fmt"
	"slices"
	"strconv"
)

// line is one figure as it is printed: ours, the bare engine's from the same run, the ratio of the two, and what we aim at.
type line struct {
	name       string
	ours, bare quantity
	aim        aim
	notes      []string // what helps to understand it, printed below
}

const (
	layout  = "%-32s %20s %24s %8s   %-14s %s"
	noValue = "-"
)

var heading = fmt.Sprintf(layout, "# figure", "ours", "bare", "ratio", "aim", "")

func (l line) String() string {
	text := fmt.Sprintf(layout, l.name, l.ours, l.bare, fmt.Sprintf("%.2f", l.ratio()), l.aim, l.verdict())
	for _, note := range l.notes {
		text += "\n#   " + note
	}
	return text
}

func (l line) ratio() float64 { return l.ours.value / l.bare.value }

func (l line) verdict() string {
	switch {
	case l.aim == aim{}:
		return noValue
	case l.aim.holds(l):
		return "met"
	}
	return "missed"
}

// aim bounds the ratio or our own value. The zero aim is none.
type aim struct {
	of    string // ratio or ours
	is    string // <, <= or >=
	bound float64
	unit  string
}

func (a aim) String() string {
	if a == (aim{}) {
		return noValue
	}
	return a.of + " " + a.is + " " + strconv.FormatFloat(a.bound, 'g', -1, 64) + a.unit
}

func (a aim) holds(l line) bool {
	value := l.ours.value
	if a.of == "ratio" {
		value = l.ratio()
	}
	switch a.is {
	case "<":
		return value < a.bound
	case "<=":
		return value <= a.bound
	}
	return value >= a.bound
}

type quantity struct {
	value float64
	unit  string
}

func (q quantity) String() string { return number(q.value) + " " + q.unit }

// number writes three digits that count, and more only of a large number, with commas.
func number(v float64) string {
	if v < 100 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
