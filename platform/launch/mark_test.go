package launch

import "testing"

func FuzzParse(f *testing.F) {
	f.Add([]byte("plain"), "side")
	f.Add([]byte(Mark("config server")+"text\n"), "config server")
	f.Add([]byte("\x1e{}"), "\x03")
	f.Fuzz(func(t *testing.T, line []byte, name string) {
		if sidecar, text := Parse(line); Mark(sidecar)+string(text) != string(line) && (sidecar != "" || string(text) != string(line)) {
			t.Errorf("%q became %q of %q", line, text, sidecar)
		}
		if sidecar, text := Parse(append([]byte(Mark(name)), line...)); fitName(name) && (sidecar != name || string(text) != string(line)) {
			t.Errorf("a line of %q became %q of %q", name, text, sidecar)
		}
	})
}
