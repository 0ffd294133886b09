package launch

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStatus(t *testing.T) {
	asBoth(t, func(t *testing.T, as option) {
		busy := shell("busy", "(while :; do :; done) & echo up; wait")
		busy.Memory = 64 << 20
		l := start(t, Config{Main: shell("", "trap '' TERM; echo up; "+forever), Sidecars: []Process{busy}, GraceSeconds: 1}, as)
		l.untilPrinted(Mark("busy") + "up")
		var s Status
		l.until("cpu time is seen", func() bool {
			s = l.status()
			return len(s.Processes) == 2 && s.Processes[1].CPU > int64(100*time.Millisecond)
		})
		for _, p := range s.Processes {
			if p.PID <= 1 || p.State != Running || p.Started == nil || time.Since(*p.Started) > time.Minute || p.RSS < 100<<10 || p.Status != nil {
				t.Errorf("got %+v", p)
			}
		}
		if s.Process != "web" || s.Index != 7 || s.Processes[1].Sidecar != "busy" || s.Processes[1].Memory != 64<<20 || s.Memory.Usage == 0 && findCgroup().dir != "" {
			t.Errorf("got %+v", s)
		}
		if err := syscall.Kill(l.child("do :; done"), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.until("busy has exited", func() bool {
			s = l.status()
			return s.Processes[1].State == Exited
		})
		if p := s.Processes[1]; s.Processes[0].State != Stopping || p.Status == nil || p.CPU < int64(100*time.Millisecond) {
			t.Errorf("got %+v", s)
		}
	})
}

// TestHostileClients connects a thousand times without reading a byte, and speaks out of turn. We neither stall nor leak.
func TestHostileClients(t *testing.T) {
	l := start(t, Config{Main: shell("", "trap 'exit 9' TERM; echo up; "+forever)})
	l.untilPrinted("up")
	before := l.status()
	files := openFiles(t, l)
	for i := range 1000 {
		conn, err := net.DialTimeout("unix", l.cfg.Socket, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if i%2 == 0 {
			_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n\x00{\"")) // may be hung up on already
		}
	}
	began := time.Now()
	if after := l.status(); after.Processes[0].PID != before.Processes[0].PID {
		t.Errorf("got %+v, before %+v", after, before)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the status took %v", took)
	}
	if n := openFiles(t, l); n > files+2 {
		t.Errorf("%d files are open, before %d", n, files)
	}
	if rss := rss(l.cmd.Process.Pid); rss > 96<<20 { // the race detector alone takes some 40 MiB
		t.Errorf("the launcher has grown to %d MiB", rss>>20)
	}
	l.signal(syscall.SIGTERM)
	if code, _ := l.wait(); code != 9 {
		t.Errorf("got exit code %d", code)
	}
}

func openFiles(t *testing.T, l *launched) int {
	t.Helper()
	files, err := os.ReadDir("/proc/" + itoa(l.cmd.Process.Pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestTakenSocket runs the app even if nobody can ask about it.
func TestTakenSocket(t *testing.T) {
	cfg := Config{Process: "web", Main: shell("", "exit 0"), Socket: socketName()}
	taken, err := net.Listen("unix", cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	(&crew{cfg: cfg}).serve()
	if _, err := Ask(context.Background(), socketName()); err == nil || !strings.Contains(err.Error(), "Nobody answers") {
		t.Errorf("asking where nobody is: got %v", err)
	}
}

func TestParseStat(t *testing.T) {
	text := "42 (a) b (\n) S 7 40 39 0 -1 4194560 1 2 3 4 100 50 25 25 20 0 1 0 12345 1000 3 184467 1"
	p, ok := parseStat([]byte(text))
	if !ok || p.pid != 42 || p.parent != 7 || p.group != 40 || p.session != 39 || p.cpu != 2*time.Second || p.rss != 3*int64(os.Getpagesize()) {
		t.Errorf("got %+v, %v", p, ok)
	}
	for _, bad := range []string{"", "42", "42 (a", ")(", "42 (a) S 1 2"} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q was understood", bad)
		}
	}
}
