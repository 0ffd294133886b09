package env

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const fileNote = "Any variable NAME can be given as NAME_FILE, the path of a file that holds the value."

// Help writes the variables of the struct that dst points to as a table for a terminal.
func Help(w io.Writer, dst any) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tDEFAULT\tMEANING")
	for _, f := range fields(dst) {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", f.name, cmp.Or(f.shown(), "-"), f.help)
	}
	_ = tw.Flush() // help that cannot be written has no other place to say so
	fmt.Fprintf(w, "\n%s\n", fileNote)
}

// Markdown writes the same table for the reference page.
func Markdown(w io.Writer, dst any) {
	cell := strings.NewReplacer("|", `\|`, "\n", " ").Replace
	fmt.Fprint(w, "| Variable | Default | Meaning |\n|---|---|---|\n")
	for _, f := range fields(dst) {
		def := f.shown()
		if def != "" && !f.required {
			def = "`" + cell(def) + "`"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", f.name, def, cell(f.help))
	}
	fmt.Fprintf(w, "\n%s\n", fileNote)
}

// shown is what stands in the column of defaults.
func (f field) shown() string {
	switch {
	case f.required:
		return "required"
	case f.secret() && f.def != "":
		return redacted
	}
	return f.def
}
