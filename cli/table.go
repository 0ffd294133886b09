package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table writes rows under headings. On a terminal that is too narrow, the widest columns are made narrower and their text wraps; on
// a very narrow one, each row becomes a block of names and values.
func (e *Env) table(w io.Writer, headings []string, rows [][]string) {
	widths, least := make([]int, len(headings)), make([]int, len(headings))
	total := gap * (len(headings) - 1)
	for i := range headings {
		for _, row := range append([][]string{headings}, rows...) {
			for line := range strings.SplitSeq(row[i], "\n") {
				widths[i] = max(widths[i], width(line))
				if strings.Contains(line, "\x1b") { // a painted word stays whole
					least[i] = max(least[i], width(line))
				}
			}
		}
		least[i] = max(least[i], narrowed)
		total += widths[i]
	}
	room := e.room()
	if room > 0 && total > room && room < veryNarrow {
		e.blocks(w, headings, rows)
		return
	}
	if room > 0 {
		fit(widths, least, total-room)
	}
	bold := make([]string, len(headings))
	for i, h := range headings {
		bold[i] = e.bold(h)
	}
	for _, row := range append([][]string{bold}, rows...) {
		writeRow(w, row, widths)
	}
}

func (e *Env) blocks(w io.Writer, headings []string, rows [][]string) {
	for n, row := range rows {
		if n > 0 {
			fmt.Fprintln(w)
		}
		var pairs [][2]string
		for i, cell := range row {
			if headings[i] == "" {
				fmt.Fprintln(w, e.bold(cell))
			} else if cell != "" {
				pairs = append(pairs, [2]string{headings[i], cell})
			}
		}
		e.pairs(w, pairs)
	}
}

// room is how wide a line may be; 0 for as wide as it likes.
func (e *Env) room() int {
	if !e.OutTTY {
		return 0
	}
	return e.Width()
}

const (
	gap      = 2
	indent   = 2
	narrowed = 8 // no column is made narrower than this

	veryNarrow = 60 // below this a table that does not fit is no table any more
)

// fit takes what is too much from the widest column, again and again, as long as there is one to take from.
func fit(widths, least []int, excess int) {
	for ; excess > 0; excess-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func writeRow(w io.Writer, row []string, widths []int) {
	cells, height := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = wrap(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var line strings.Builder
		for i := range row {
			text := ""
			if n < len(cells[i]) {
				text = cells[i][n]
			}
			line.WriteString(text)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", max(gap, gap+widths[i]-width(text))))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// wrap breaks a text into lines that are not wider, at spaces and after commas where it can, or else at the joints of an address. Where it has several lines already, what
// goes on is indented. A painted text is not broken: those are short words.
func wrap(text string, limit int) []string {
	if strings.Contains(text, "\n") {
		var lines []string
		for line := range strings.SplitSeq(text, "\n") {
			first := wrap(line, limit)
			if len(first) > 1 && limit > narrowed {
				first = strings.Split(strings.Join(wrap(line, limit-indent), "\n"+strings.Repeat(" ", indent)), "\n")
			}
			lines = append(lines, first...)
		}
		return lines
	}
	if width(text) <= limit || strings.Contains(text, "\x1b") {
		return []string{text}
	}
	var lines []string
	runes := []rune(text)
	for len(runes) > limit {
		cut, joint := 0, 0
		for i := limit; i > limit/4 && cut == 0; i-- {
			if runes[i-1] == ',' || runes[i-1] == ' ' || runes[i] == ' ' {
				cut = i
			}
			if joint == 0 && (strings.ContainsRune(".-:", runes[i-1]) || runes[i] == '/') {
				joint = i
			}
		}
		if cut == 0 {
			cut = joint
		}
		if cut == 0 {
			cut = limit
		}
		lines = append(lines, strings.TrimRight(string(runes[:cut]), " "))
		runes = []rune(strings.TrimLeft(string(runes[cut:]), " "))
	}
	return append(lines, string(runes))
}

// width is how many columns a text takes, without its colours.
func width(text string) int { return utf8.RuneCountInString(escapes.ReplaceAllString(text, "")) }

// pairs writes names and values below each other.
func (e *Env) pairs(w io.Writer, rows [][2]string) {
	longest := 0
	for _, r := range rows {
		longest = max(longest, width(r[0]))
	}
	for _, r := range rows {
		label := r[0] + ":" + strings.Repeat(" ", longest-width(r[0])+1)
		room := e.room() - width(label)
		if room < narrowed {
			room = max(width(r[1]), 1)
		}
		for i, line := range wrap(r[1], room) {
			if i > 0 {
				label = strings.Repeat(" ", width(label))
			}
			fmt.Fprintf(w, "%s%s\n", e.dim(label), line)
		}
	}
}

func (s *session) json(value any) error {
	enc := json.NewEncoder(s.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

// list writes values as JSON if that was asked for, and otherwise as a table, or the sentence when there are none.
func list[T any](s *session, values []T, none string, headings []string, row func(T) []string) error {
	if s.flags.json {
		return s.json(values)
	}
	if len(values) == 0 {
		fmt.Fprintln(s.Err, none)
		return nil
	}
	rows := make([][]string, len(values))
	for i, v := range values {
		rows[i] = row(v)
	}
	s.table(s.Out, headings, rows)
	return nil
}
