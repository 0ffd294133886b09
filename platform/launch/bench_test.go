package launch

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

const flood = 512 << 20

// playFlood writes that many bytes of 100-byte lines, in writes of that size.
func playFlood(args []string) {
	total, err := strconv.Atoi(args[0])
	must(err)
	size, err := strconv.Atoi(args[1])
	must(err)
	lines := bytes.Repeat(append(bytes.Repeat([]byte("x"), 99), '\n'), size/100)
	for written := 0; written < total; written += len(lines) {
		_, err := os.Stdout.Write(lines)
		must(err)
	}
}

// BenchmarkOutput measures how fast the main process can write: alone, through `cat`, through us without a sidecar (it
// then has our stdout) and with one (its lines pass through us).
func BenchmarkOutput(b *testing.B) {
	for name, size := range map[string]int{"writes of 32000 bytes": 32000, "writes of a line": 100} {
		total := flood
		if size == 100 {
			total /= 16
		}
		args := []string{itoa(total), itoa(size)}
		alone := exec.Command(os.Args[0], args...)
		alone.Env = append(os.Environ(), "LAUNCH_TEST=flood")
		cat := exec.Command("sh", "-c", `"$0" "$@" | cat`, os.Args[0], args[0], args[1])
		cat.Env = alone.Env
		main := play("", "flood", args...)
		for _, run := range []struct {
			how string
			cmd *exec.Cmd
		}{
			{"alone", alone},
			{"through cat", cat},
			{"launched", launcherFor(b, Config{Main: main})},
			{"launched with a sidecar", launcherFor(b, Config{Main: main, Sidecars: []Process{shell("side", "exec sleep 1000")}})},
		} {
			b.Run(name+"/"+run.how, func(b *testing.B) {
				b.SetBytes(int64(total))
				for b.Loop() {
					swallow(b, run.cmd, total)
				}
			})
		}
	}
}

func launcherFor(b *testing.B, cfg Config) *exec.Cmd {
	b.Helper()
	cfg.Process, cfg.Socket, cfg.TerminationLog = "web", socketName(), filepath.Join(b.TempDir(), "log")
	text, err := json.Marshal(cfg)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LAUNCH_TEST=launcher", EnvConfig+"="+string(text))
	return cmd
}

// swallow runs a command like this one and reads all it prints.
func swallow(b *testing.B, like *exec.Cmd, want int) {
	b.Helper()
	cmd := exec.Command(like.Path, like.Args[1:]...)
	cmd.Env, cmd.Stderr = like.Env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{out}, make([]byte, 256<<10))
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	if err != nil || got < int64(want) {
		b.Fatalf("got %d bytes of %d: %v", got, want, err)
	}
}
