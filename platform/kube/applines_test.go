package kube

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/proa-dev/proa/platform/launch"
)

func readLines(from io.Reader) (lines []string, err error) {
	r := appLines{from: from}
	err = r.each(func(l AppLine) bool {
		text := string(l.Text)
		if len(text) > 100 {
			text = fmt.Sprintf("%.3s.. %d", text, len(text))
		}
		lines = append(lines, fmt.Sprintf("%d %s|%s", l.At, l.Sidecar, text))
		return true
	}, func() {})
	return lines, err
}

func TestAppLines(t *testing.T) {
	const start = "2023-11-14T22:13:20."
	long := strings.Repeat("x", 150_000)
	for _, c := range []struct{ name, log, want string }{
		{"nothing", "", ""},
		{"main", start + "000000001Z one\n" + start + "000000002Z  two \n", "1700000000000000001 |one\n1700000000000000002 | two "},
		{"empty", start + "000000001Z \n" + start + "000000002Z x\n", "1700000000000000001 |\n1700000000000000002 |x"},
		{"sidecar", start + "000000001Z " + launch.Mark("config server") + "hello\n" + start + "000000002Z " + launch.Mark("config server") + "\n" + start + "000000003Z " + launch.Mark("b") + "x\n",
			"1700000000000000001 config server|hello\n1700000000000000002 config server|\n1700000000000000003 b|x"},
		{"half a mark", start + "000000001Z " + launch.MarkStart + "x\n", "1700000000000000001 |" + launch.MarkStart + "x"},
		{"another second, and zone", start + "000000001Z a\n2023-11-14T22:13:21.000000000Z b\n2023-11-14T23:13:22.000000000+01:00 c\n2023-11-14T22:13:23.5Z d\n",
			"1700000000000000001 |a\n1700000001000000000 |b\n1700000002000000000 |c\n1700000003500000000 |d"},
		{"an older time", start + "000000005Z a\n" + start + "000000003Z b\n" + start + "000000006Z c\n", "1700000000000000005 |a\n1700000000000000005 |b\n1700000000000000006 |c"},
		{"a long line", start + "000000001Z " + long + "\n" + start + "000000002Z y\n",
			"1700000000000000001 |xxx.. 65540\n1700000000000000001 |xxx.. 65571\n1700000000000000001 |xxx.. 18889\n1700000000000000002 |y"},
		{"no end", start + "000000001Z a\n" + start + "000000002Z b", "1700000000000000001 |a\n1700000000000000002 |b"},
		{"carriage return", start + "000000001Z a\r\n", "1700000000000000001 |a\r"},
	} {
		for way, from := range map[string]io.Reader{"at once": strings.NewReader(c.log), "by bytes": iotest.OneByteReader(strings.NewReader(c.log)), "by halves": iotest.HalfReader(strings.NewReader(c.log))} {
			got, err := readLines(from)
			if err != nil || strings.Join(got, "\n") != c.want {
				t.Errorf("%s %s: %v\ngot  %q\nwant %q", c.name, way, err, strings.Join(got, "\n"), c.want)
			}
		}
	}
}

func TestAppLinesThatEndBadly(t *testing.T) {
	for log, want := range map[string]string{
		"2023-11-14T22:13:20.000000001Z a\nunable to retrieve container logs for containerd://1\n": `the node says: "unable to retrieve`,
		"2023-11-14T22:13:20.00000000xZ a\n": "the node says",
		"2023-13-14T22:13:20.000000001Z a\n": "the node says",
		"\n":                                 "the node says",
	} {
		if got, err := readLines(strings.NewReader(log)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q %v", log, got, err)
		}
	}
	broken := errors.New("broken")
	got, err := readLines(io.MultiReader(strings.NewReader("2023-11-14T22:13:20.000000001Z a\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("%q %v", got, err)
	}
}

// TestAppLinesOfManySidecars: whoever forges marks is read too, and remembered not without end.
func TestAppLinesOfManySidecars(t *testing.T) {
	var log strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&log, "2023-11-14T22:13:20.000000001Z %sx\n", launch.Mark(fmt.Sprint("forged ", n)))
	}
	r := appLines{from: strings.NewReader(log.String())}
	n := 0
	err := r.each(func(l AppLine) bool {
		if l.Sidecar != fmt.Sprint("forged ", n) || string(l.Text) != "x" {
			t.Errorf("%d: %q %q", n, l.Sidecar, l.Text)
		}
		n++
		return true
	}, func() {})
	if err != nil || n != 1000 || len(r.marks) > maxMarks {
		t.Errorf("%d lines, %d marks, %v", n, len(r.marks), err)
	}
}

// TestAppLinesKeepLittle: a log that is quiet after a flood holds a small buffer.
func TestAppLinesKeepLittle(t *testing.T) {
	line := "2023-11-14T22:13:20.000000001Z hello\n"
	readers := []io.Reader{strings.NewReader(strings.Repeat(line, 100_000))}
	for range 2 * maxScant {
		readers = append(readers, strings.NewReader(line))
	}
	r := appLines{from: io.MultiReader(readers...)}
	most := 0
	if err := r.each(func(AppLine) bool { most = max(most, len(r.buf)); return true }, func() {}); err != nil {
		t.Fatal(err)
	}
	if most != maxRead || len(r.buf) != minRead {
		t.Errorf("the buffer had %d bytes at most, and has %d", most, len(r.buf))
	}
}

func BenchmarkAppLines(b *testing.B) {
	log := strings.Repeat("2023-11-14T22:13:20.000000001Z "+launch.Mark("clock")+strings.Repeat("x", 80)+"\n2023-11-14T22:13:20.000000002Z "+strings.Repeat("y", 80)+"\n", 5000)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		r := appLines{from: strings.NewReader(log)}
		if err := r.each(func(AppLine) bool { n++; return true }, func() {}); err != nil || n != 10_000 {
			b.Fatal(n, err)
		}
	}
}
