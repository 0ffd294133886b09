package launch

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// playLines writes that many numbered lines of changing length, cut into writes that do not end where lines do.
func playLines(args []string) {
	n, err := strconv.Atoi(args[1])
	must(err)
	out := bufio.NewWriterSize(os.Stdout, 1013)
	for i := range n {
		fmt.Fprintln(out, numbered(args[0], i))
	}
	must(out.Flush())
	time.Sleep(time.Hour)
}

func numbered(name string, i int) string {
	return fmt.Sprintf("%s %d %s", name, i, strings.Repeat(name, i*7%151))
}

// playPieces writes that many kibibytes without ever ending the line.
func playPieces(args []string) {
	n, err := strconv.Atoi(args[0])
	must(err)
	for range n {
		_, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 1024))
		must(err)
	}
	fmt.Fprint(os.Stderr, "wrote it\n")
	time.Sleep(time.Hour)
}

// TestLines lets three processes write 100,000 lines at once. Each arrives whole, in order, under the right name.
func TestLines(t *testing.T) {
	const each = 33_334
	l := start(t, Config{
		Main:     play("", "lines", "m", itoa(each)),
		Sidecars: []Process{play("s 1", "lines", "a", itoa(each)), play("s 2", "lines", "b", itoa(each))},
	})
	next := map[string]int{}
	l.until("all lines are there", func() bool { return strings.Count(l.stdout.String(), "\n") >= 3*each })
	for line := range strings.Lines(l.stdout.String()) {
		name, text := Parse([]byte(line))
		letter := map[string]string{"": "m", "s 1": "a", "s 2": "b"}[name]
		if want := numbered(letter, next[name]) + "\n"; string(text) != want {
			t.Fatalf("got line %q, want %q of %q", line, want, name)
		}
		next[name]++
	}
	if next[""] != each || next["s 1"] != each || next["s 2"] != each {
		t.Errorf("got %v lines", next)
	}
}

// TestLastLine ends processes right after, or in the middle of, a line.
func TestLastLine(t *testing.T) {
	side := shell("side", "printf 'first\\nlast of side'; sleep 0.3; printf 'error of side' >&2; kill -9 $$")
	l := start(t, Config{Main: shell("", "trap 'printf last; printf error >&2; exit' TERM; printf 'first\\n\\n'; "+forever), Sidecars: []Process{side}})
	if _, r := l.wait(); r.Sidecar != "side" {
		t.Errorf("got %+v", r)
	}
	out, errors := l.stdout.String(), l.stderr.String()
	if !strings.Contains(out, "first\n\n") || !strings.Contains(out, Mark("side")+"first\n") ||
		!strings.HasSuffix(out, Mark("side")+"last of side\nlast") && !strings.HasSuffix(out, "last\n"+Mark("side")+"last of side\n") {
		t.Errorf("got output %q", out)
	}
	if !strings.HasPrefix(errors, Mark("side")+"error of side\n") || !strings.HasSuffix(errors, "\nerror") {
		t.Errorf("got errors %q", errors) // between them the shell may say that its sleep was terminated
	}

	alone := start(t, Config{Main: shell("", "printf 'no sidecar, no newline'; kill -9 $$")})
	alone.wait()
	if alone.stdout.String() != "no sidecar, no newline" {
		t.Errorf("got output %q", alone.stdout)
	}
}

// TestBytes passes what is no text, and what looks like a mark.
func TestBytes(t *testing.T) {
	l := start(t, Config{Main: shell("", `printf '\000\377\r\n\036{"json":"sequence"}\n\036\002\003\n\033[31mred\n'; exec sleep 0.2`), Sidecars: []Process{shell("side", forever)}})
	l.wait()
	if want := "\x00\xff\r\n\x1e{\"json\":\"sequence\"}\n\x1e\x02\x03\n\x1b[31mred\n"; l.stdout.String() != want {
		t.Errorf("got %q, want %q", l.stdout, want)
	}
	for line := range strings.Lines(l.stdout.String()) {
		if name, text := Parse([]byte(line)); name != "" || string(text) != line {
			t.Errorf("%q is taken for a line of %q", line, name)
		}
	}
}

// TestEndlessLine has a sidecar and a main process that never end a line. The others go on, nothing is lost, and we do
// not grow.
func TestEndlessLine(t *testing.T) {
	const kib = 20 << 10
	for name, cfg := range map[string]Config{
		"sidecar": {Main: shell("", "while :; do echo tick; sleep 0.01; done"), Sidecars: []Process{play("endless", "pieces", itoa(kib))}},
		"main":    {Main: play("", "pieces", itoa(kib)), Sidecars: []Process{shell("ticker", "while :; do echo tick; sleep 0.01; done")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, cfg)
			l.until("everything is written", func() bool { return strings.Contains(l.stderr.String(), "wrote it") })
			l.untilPrinted("tick")
			if rss := rss(l.cmd.Process.Pid); rss > 96<<20 { // the race detector alone takes some 40 MiB
				t.Errorf("the launcher has grown to %d MiB", rss>>20)
			}
			l.end()
			x := 0
			for line := range strings.Lines(l.stdout.String()) {
				_, text := Parse([]byte(line))
				x += bytes.Count(text, []byte("x"))
				if trimmed := bytes.Trim(text, "x\n"); len(trimmed) > 0 && string(text) != "tick\n" {
					t.Fatalf("lines were mixed: %.100q", text)
				}
			}
			if x != kib<<10 {
				t.Errorf("got %d bytes of the endless line, want %d", x, kib<<10)
			}
		})
	}
}

// TestNobodyListens takes the log away. The app goes on, as it would with a log that drops lines.
func TestNobodyListens(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	done := filepath.Join(t.TempDir(), "done")
	talk := "i=0; while [ $i -lt 20000 ]; do echo line; i=$((i+1)); done; touch " + done + "; "
	l := start(t, Config{Main: shell("", talk+forever), Sidecars: []Process{shell("side", "echo up; "+forever)}}, func(cmd *exec.Cmd) { cmd.Stdout = write })
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	l.until("it has talked", func() bool {
		_, err := os.Stat(done)
		return err == nil
	})
	l.signal(syscall.SIGTERM)
	if code, r := l.wait(); code != 143 || r.Cause != CauseStopped {
		t.Errorf("got exit code %d and %+v", code, r)
	}
}

// TestDrainEnds has somebody from outside hold the output open, as a shell from kubectl exec might: we end all the same,
// and do not lose the last words.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	to, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	var c crew
	s, fd, err := newStream(&sink{file: to}, "")
	if err != nil {
		t.Fatal(err)
	}
	c.passing.Go(s.pass)
	held := os.NewFile(uintptr(fd), "held")
	defer func() { _ = held.Close() }()
	if _, err := held.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	drain([]*stream{s}, &c.passing)
	if took := time.Since(began); took > drainTime+time.Second {
		t.Errorf("took %v", took)
	}
	if text, err := os.ReadFile(to.Name()); err != nil || string(text) != "last words" {
		t.Errorf("got %q, %v", text, err)
	}
}

func rss(pid int) int64 {
	text, _ := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	p, _ := parseStat(text)
	return p.rss
}
