// Command picture draws what a terminal shows at the end of a recorded session as SVG: record.sh beside it makes docs/push.svg with it.
//
//	script -qec 'proa apps' /dev/null </dev/null | go run ./docs/picture -title 'proa apps' > apps.svg
package main

import (
	"bufio"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	letterWidth, lineHeight = 8.4, 19.0 // of a letter of 14 pixels
	margin, bar             = 16.0, 34.0
)

func main() {
	title := flag.String("title", "", "what stands above the picture, and describes it to those who cannot see it")
	columns := flag.Int("columns", 100, "width of the terminal that was recorded")
	first := flag.Int("first", 0, "rows to show of the beginning, when not all are shown")
	last := flag.Int("last", 40, "rows to show of the end")
	flag.Parse()
	if *columns < 1 || *columns > 500 || *first < 0 || *last < 1 {
		fmt.Fprintln(os.Stderr, "A terminal has 1 to 500 columns, and at least one row.")
		os.Exit(2)
	}
	recorded, err := io.ReadAll(os.Stdin)
	if err == nil {
		s := newScreen(*columns)
		s.write(string(recorded))
		err = draw(os.Stdout, *title, *columns, s.shown(*first, *last))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "The picture was not made:", err)
		os.Exit(1)
	}
}

const style = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d8dee9;white-space:pre}` +
	`.s1{font-weight:bold;fill:#fff}.s2{fill:#8a94a6}.s31,.s91{fill:#f07178}.s32,.s92{fill:#9ccc65}.s33,.s93{fill:#ffcb6b}` +
	`.s34,.s94{fill:#82aaff}.s35,.s95{fill:#c792ea}.s36,.s96{fill:#89ddff}.title{fill:#8a94a6;text-anchor:middle}`

// draw writes the window. Each run of letters has its place and its width, so that columns stand below each other in any font.
func draw(to io.Writer, title string, columns int, rows [][]cell) error {
	out := bufio.NewWriter(to)
	width, height := 2*margin+float64(columns)*letterWidth, bar+float64(len(rows))*lineHeight+margin
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" xml:space="preserve">`+"\n", width, height, width, height)
	fmt.Fprintf(out, "<title>%s</title>\n<style>%s</style>\n", escaped(title), style)
	fmt.Fprintf(out, `<rect width="%.0f" height="%.0f" rx="8" fill="#1b1f27"/>`+"\n", width, height)
	for i, colour := range []string{"#f07178", "#ffcb6b", "#9ccc65"} {
		fmt.Fprintf(out, `<circle cx="%d" cy="17" r="6" fill="%s"/>`+"\n", 20+20*i, colour)
	}
	fmt.Fprintf(out, `<text class="title" x="%.0f" y="22">%s</text>`+"\n", width/2, escaped(title))
	for i, row := range rows {
		y := bar + float64(i+1)*lineHeight - 5
		for start := 0; start < len(row); {
			end := runEnd(row, start)
			drawRun(out, row[start:end], margin+float64(start)*letterWidth, y)
			start = end
		}
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// runEnd finds where letters of another kind begin. Two blanks end a run, too, so that a gap is a place and not a width.
func runEnd(row []cell, start int) int {
	blank := row[start].letter == ' '
	end := start + 1
	for end < len(row) && row[end].style == row[start].style {
		gap := row[end].letter == ' ' && (end+1 == len(row) || row[end+1].letter == ' ')
		if blank != (row[end].letter == ' ') && (blank || gap) {
			break
		}
		end++
	}
	return end
}

func drawRun(out io.Writer, run []cell, x, y float64) {
	var text strings.Builder
	for _, c := range run {
		text.WriteRune(c.letter)
	}
	if strings.TrimSpace(text.String()) == "" {
		return
	}
	class := ""
	if run[0].style != "" {
		class = ` class="s` + strings.ReplaceAll(run[0].style, " ", " s") + `"`
	}
	fmt.Fprintf(out, `<text%s x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n",
		class, x, y, float64(len(run))*letterWidth, escaped(text.String()))
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
