package cli

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// pty opens a terminal of which the test is the other side.
func pty(t *testing.T) (here, there *os.File) {
	t.Helper()
	here, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	var locked, number int32
	for request, at := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		if err := control(here, request, unsafe.Pointer(at)); err != nil {
			t.Fatal(err)
		}
	}
	there, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close() })
	return here, there
}

func TestRawTerminal(t *testing.T) {
	here, there := pty(t)
	settings := func() (s syscall.Termios) {
		if err := control(there, getTermios, unsafe.Pointer(&s)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := settings()
	restore, err := makeRaw(there)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.WriteString("\x03\r\x04"); err != nil { // Ctrl-C, Enter, Ctrl-D: keys like any other
		t.Fatal(err)
	}
	keys := make([]byte, 8)
	n, err := there.Read(keys)
	if err != nil || string(keys[:n]) != "\x03\r\x04" {
		t.Errorf("read %q, %v", keys[:n], err)
	}
	if _, err := there.WriteString("a\nb"); err != nil {
		t.Fatal(err)
	}
	n, err = here.Read(keys)
	if err != nil || string(keys[:n]) != "a\nb" {
		t.Errorf("written as %q, %v: nothing is echoed and no line is changed", keys[:n], err)
	}
	restore()
	if after := settings(); after != before {
		t.Errorf("put back to %+v, it was %+v", after, before)
	}
	size := struct{ rows, columns, x, y uint16 }{17, 91, 0, 0}
	if err := control(here, syscall.TIOCSWINSZ, unsafe.Pointer(&size)); err != nil {
		t.Fatal(err)
	}
	if columns, rows := terminalSize(there); columns != 91 || rows != 17 || !isTerminal(there) {
		t.Errorf("the size is %dx%d", columns, rows)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := makeRaw(file); err == nil || isTerminal(file) {
		t.Error("a file was taken for a terminal")
	}
}
