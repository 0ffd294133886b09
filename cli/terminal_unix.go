//go:build linux || darwin

package cli

import (
	"bufio"
	"context"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

func control(f *os.File, request uintptr, at unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(at)); errno != 0 {
		return errno
	}
	return nil
}

func isTerminal(f *os.File) bool {
	var t syscall.Termios
	return control(f, getTermios, unsafe.Pointer(&t)) == nil //nolint:gosec // the kernel fills what it is pointed to
}

func terminalWidth(f *os.File) int {
	var size struct{ rows, columns, x, y uint16 }
	if control(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) != nil { //nolint:gosec // the kernel fills what it is pointed to
		return 0
	}
	return int(size.columns)
}

// readHidden reads a line that the terminal does not show. The terminal shows again what is typed after it, also when the
// context ends first.
func readHidden(ctx context.Context, f *os.File) (string, error) {
	var before syscall.Termios
	if err := control(f, getTermios, unsafe.Pointer(&before)); err != nil { //nolint:gosec // the kernel fills what it is pointed to
		return "", err
	}
	silent := before
	silent.Lflag &^= syscall.ECHO
	silent.Lflag |= syscall.ICANON | syscall.ISIG
	if err := control(f, setTermios, unsafe.Pointer(&silent)); err != nil { //nolint:gosec // the kernel reads what it is pointed to
		return "", err
	}
	defer func() { _ = control(f, setTermios, unsafe.Pointer(&before)) }() //nolint:gosec // as above
	text, err := patiently(ctx, func() (string, error) { return bufio.NewReader(f).ReadString('\n') })
	return strings.TrimRight(text, "\r\n"), err
}
