package main

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A cell is one letter and how it is drawn: the numbers of SGR, such as "1" for bold and "32" for green.
type cell struct {
	letter rune
	style  string
}

// A screen is a terminal that forgets nothing: rows that scroll out at the top stay. It knows what our command and the programs
// around it write; any other sequence is left out.
type screen struct {
	columns  int
	rows     [][]cell
	row, col int
	style    string
}

func newScreen(columns int) *screen { return &screen{columns: columns, rows: [][]cell{nil}} }

func (s *screen) write(text string) {
	for len(text) > 0 {
		if strings.HasPrefix(text, "\x1b") {
			text = s.escape(text[1:])
			continue
		}
		letter, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch {
		case letter == '\n':
			s.down(1)
		case letter == '\r':
			s.col = 0
		case letter == '\b':
			s.col = max(s.col-1, 0)
		case letter == '\t':
			s.col = min(s.col/8*8+8, s.columns-1)
		case letter >= ' ' && letter != '\x7f':
			s.put(letter)
		}
	}
}

func (s *screen) put(letter rune) {
	if s.col == s.columns {
		s.down(1)
		s.col = 0
	}
	row := s.rows[s.row]
	for len(row) <= s.col {
		row = append(row, cell{letter: ' '})
	}
	row[s.col] = cell{letter, s.style}
	s.rows[s.row] = row
	s.col++
}

func (s *screen) down(n int) {
	s.row += n
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, nil)
	}
}

// escape takes what follows an ESC, does it, and gives back the rest.
func (s *screen) escape(text string) string {
	switch {
	case strings.HasPrefix(text, "["):
		end := strings.IndexFunc(text[1:], func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return ""
		}
		s.control(text[1:1+end], text[1+end])
		return text[2+end:]
	case strings.HasPrefix(text, "]"): // a title or a link: up to BEL or ST
		end := strings.IndexAny(text, "\a\x1b")
		if end < 0 {
			return ""
		}
		return strings.TrimPrefix(text[end+1:], "\\")
	}
	text = strings.TrimLeft(text, " !\"#$%&'()*+,-./") // such as the ( of a set of letters
	if text == "" {
		return ""
	}
	return text[1:]
}

const mostMoves = 1000 // what a sequence may move: a larger number is a mistake of the recording

// control does one CSI sequence.
func (s *screen) control(parameters string, final byte) {
	n := 1
	if given, err := strconv.Atoi(parameters); err == nil && given > 0 {
		n = min(given, mostMoves)
	}
	switch final {
	case 'm':
		s.paint(parameters)
	case 'A':
		s.row = max(s.row-n, 0)
	case 'B':
		s.down(n)
	case 'C':
		s.col = min(s.col+n, s.columns-1)
	case 'D':
		s.col = max(s.col-n, 0)
	case 'G':
		s.col = min(n, s.columns) - 1
	case 'K':
		s.erase(parameters)
	case 'J':
		s.erase(parameters)
		if parameters == "" || parameters == "0" {
			s.rows = s.rows[:s.row+1]
		}
	}
}

func (s *screen) erase(parameters string) {
	switch row := s.rows[s.row]; parameters {
	case "", "0":
		s.rows[s.row] = row[:min(s.col, len(row))]
	case "2":
		s.rows[s.row] = nil
	}
}

// paint keeps the numbers that are in force; a 0 ends all of them.
func (s *screen) paint(parameters string) {
	for p := range strings.SplitSeq(parameters, ";") {
		if p == "" || p == "0" {
			s.style = ""
		} else if !strings.Contains(" "+s.style+" ", " "+p+" ") {
			s.style = strings.TrimSpace(s.style + " " + p)
		}
	}
}

// shown gives the rows that hold something: all of them, or the first and the last so many, and a mark for those between.
func (s *screen) shown(first, last int) [][]cell {
	rows := s.rows
	for len(rows) > 0 && len(rows[len(rows)-1]) == 0 {
		rows = rows[:len(rows)-1]
	}
	if len(rows) <= first+last {
		return rows
	}
	return slices.Concat(rows[:first], [][]cell{nil, {{letter: '⋮', style: "2"}}, nil}, rows[len(rows)-last:])
}
