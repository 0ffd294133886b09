package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func shown(rows [][]cell) string {
	var lines []string
	for _, row := range rows {
		line := ""
		for _, c := range row {
			line += string(c.letter)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n")
}

// The screen shows what a terminal would: the last of what was drawn over itself.
func TestScreen(t *testing.T) {
	for name, c := range map[string]struct{ written, want string }{
		"lines":           {"$ proa push\r\nPushing\r\n", "$ proa push\nPushing"},
		"a bar":           {"\rUploading  0%\x1b[K\rUploading 100%\x1b[K\r\n", "Uploading 100%"},
		"a shorter line":  {"long line\rok\x1b[K\r\n", "ok"},
		"a live block":    {"\r\x1b[K#0 starting\r\n\r\x1b[K#1 starting\r\n\x1b[2A\r\x1b[K#0 running\r\n\r\x1b[K#1 running\r\ndone", "#0 running\n#1 running\ndone"},
		"colours":         {"\x1b[1;32mOK\x1b[0m\r\n", "OK"},
		"a tab":           {"a\tb", "a       b"},
		"wrapped":         {"0123456789abcdefg", "0123456789abcd\nefg"},
		"erased below":    {"one\r\ntwo\r\n\x1b[2A\x1b[J", ""},
		"a title":         {"\x1b]0;a title\ahello\x1b]8;;x\x1b\\!", "hello!"},
		"cut off":         {"hello\x1b[3", "hello"},
		"absurd":          {"\x1b[999999999Bx\x1b[999999999A\ry", "y" + strings.Repeat("\n", 1000) + "x"},
		"what it ignores": {"\x1b[?25lhidden\x1b(B\x07\x00", "hidden"},
	} {
		s := newScreen(14)
		s.write(c.written)
		if got := shown(s.shown(0, 2000)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestLastRows(t *testing.T) {
	s := newScreen(80)
	s.write("one\r\ntwo\r\nthree\r\n\r\n")
	if got := shown(s.shown(0, 2)); got != "\n⋮\n\ntwo\nthree" {
		t.Errorf("got %q", got)
	}
}

// The picture is XML, holds the text and nothing of what steers a terminal, and puts columns where they were.
func TestDraw(t *testing.T) {
	s := newScreen(80)
	s.write("\x1b[32mrunning\x1b[0m  <web> & \"config\"\r\n")
	var out strings.Builder
	if err := draw(&out, "a <push>", 80, s.shown(0, 10)); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, &out)
		}
	}
	for _, want := range []string{`<text class="s32" x="16.0"`, `>running<`, `x="91.6"`, `&lt;web&gt; &amp; &#34;config&#34;<`, "<title>a &lt;push&gt;</title>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("the picture holds an escape sequence")
	}
}
