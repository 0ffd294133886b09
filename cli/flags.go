package cli

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// flags are the options of a command. They may stand before, between and after the arguments.
type flags struct {
	set   *flag.FlagSet
	shown []option
	asked bool // for help
	json  bool
}

// option is one of them as help and completion show it.
type option struct {
	names []string // with dashes, such as -p and --path
	value string   // what stands for the value; empty for a switch
	help  string
}

func newFlags(name string) *flags {
	f := &flags{set: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.set.SetOutput(io.Discard)
	f.set.Usage = func() {}
	return f
}

// add takes names separated by commas, such as "path,p".
func (f *flags) add(v flag.Value, names, value, help string) {
	o := option{value: value, help: help}
	for name := range strings.SplitSeq(names, ",") {
		f.set.Var(v, name, help)
		dashes := "--"
		if len(name) == 1 {
			dashes = "-"
		}
		o.names = append(o.names, dashes+name)
	}
	slices.SortFunc(o.names, func(a, b string) int { return len(a) - len(b) })
	f.shown = append(f.shown, o)
}

// setter is a flag.Value made of a function.
type setter struct {
	set      func(string) error
	isSwitch bool
}

func (s setter) String() string         { return "" }
func (s setter) Set(value string) error { return s.set(value) }
func (s setter) IsBoolFlag() bool       { return s.isSwitch }

func (f *flags) text(names, value, help string) *string {
	p := new(string)
	f.add(setter{set: func(v string) error { *p = v; return nil }}, names, value, help)
	return p
}

// maybe is a text that may also be given empty; nil when it is not given.
func (f *flags) maybe(names, value, help string) **string {
	p := new(*string)
	f.add(setter{set: func(v string) error { *p = &v; return nil }}, names, value, help)
	return p
}

func (f *flags) list(names, value, help string) *[]string {
	p := new([]string)
	f.add(setter{set: func(v string) error { *p = append(*p, v); return nil }}, names, value, help)
	return p
}

func (f *flags) on(names, help string) *bool {
	p := new(bool)
	f.add(setter{isSwitch: true, set: func(v string) (err error) {
		if *p, err = strconv.ParseBool(v); err != nil {
			return fmt.Errorf("want true or false, or nothing")
		}
		return nil
	}}, names, "", help)
	return p
}

// number is a whole number that is not negative; nil when it is not given.
func (f *flags) number(names, value, help string) **int {
	p := new(*int)
	f.add(setter{set: func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("want a whole number, such as 2")
		}
		*p = &n
		return nil
	}}, names, value, help)
	return p
}

// output lets the command print JSON.
func (f *flags) output() {
	f.add(setter{set: func(v string) error {
		if v != "json" && v != "table" {
			return fmt.Errorf("want json or table")
		}
		f.json = v == "json"
		return nil
	}}, "output", "FORMAT", "json for programs, or table")
}

// parse gives the arguments, also those before a mistake. After verbatim of them (if it is not 0) nothing is an option any more, and neither is after "--".
func (f *flags) parse(args []string, verbatim int) ([]string, error) {
	var plain []string
	for len(args) > 0 {
		if verbatim > 0 && len(plain) == verbatim {
			return append(plain, args...), nil
		}
		if err := f.set.Parse(args); err != nil {
			return plain, f.explain(err)
		}
		rest := f.set.Args()
		if used := len(args) - len(rest); used > 0 && args[used-1] == "--" {
			return append(plain, rest...), nil
		}
		if len(rest) == 0 {
			break
		}
		plain, args = append(plain, rest[0]), rest[1:]
	}
	return plain, nil
}

// explain turns the words of package flag into a sentence.
func (f *flags) explain(err error) error {
	text := err.Error()
	if name, unknown := strings.CutPrefix(text, "flag provided but not defined: -"); unknown {
		p := usage("There is no option %s.", dashed(strings.TrimLeft(name, "-")))
		var names []string
		for _, o := range f.shown {
			names = append(names, o.names...)
		}
		if near := nearest(dashed(name), names); near != "" {
			p.says += " Did you mean " + near + "?"
		}
		p.next = "proa " + f.set.Name() + " --help"
		return p
	}
	if name, lacks := strings.CutPrefix(text, "flag needs an argument: -"); lacks {
		return usage("The option %s needs a value.", dashed(name))
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return usage("The option %s cannot be %s: %s.", dashed(m[2]), m[1], m[3])
	}
	return usage("This option cannot be understood: %s.", strings.TrimSuffix(text, "."))
}

var badValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]+): (.*)$`)

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// nearest is the name that was probably meant, or empty.
func nearest(name string, names []string) string {
	best, distance := "", 3
	for _, n := range names {
		if d := editDistance(name, n); d < distance && 2*d < len(name) {
			best, distance = n, d
		}
	}
	if best == "" && len(name) > 2 {
		if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, name) }); i >= 0 {
			best = names[i]
		}
	}
	return best
}

// editDistance counts the letters to add, drop or change to make a of b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
