//go:build linux || darwin

package cli

import (
	"bufio"
	"context"
	"os"
	"os/signal"
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
	columns, _ := terminalSize(f)
	return columns
}

func terminalSize(f *os.File) (columns, rows int) {
	var size struct{ rows, columns, x, y uint16 }
	if control(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) != nil { //nolint:gosec // the kernel fills what it is pointed to
		return 0, 0
	}
	return int(size.columns), int(size.rows)
}

// resized tells when a terminal has changed its size. It may have done so several times.
func resized() (changed <-chan os.Signal, stop func()) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGWINCH)
	return heard, func() { signal.Stop(heard) }
}

// makeRaw lets every key of a terminal through as it is, Ctrl-C too, and changes nothing of what is written to it.
func makeRaw(f *os.File) (restore func(), err error) {
	var before syscall.Termios
	if err := control(f, getTermios, unsafe.Pointer(&before)); err != nil { //nolint:gosec // the kernel fills what it is pointed to
		return nil, err
	}
	raw := before
	raw.Iflag &^= syscall.IGNBRK | syscall.BRKINT | syscall.PARMRK | syscall.ISTRIP | syscall.INLCR | syscall.IGNCR | syscall.ICRNL | syscall.IXON
	raw.Oflag &^= syscall.OPOST
	raw.Lflag &^= syscall.ECHO | syscall.ECHONL | syscall.ICANON | syscall.ISIG | syscall.IEXTEN
	raw.Cflag = raw.Cflag&^(syscall.CSIZE|syscall.PARENB) | syscall.CS8
	raw.Cc[syscall.VMIN], raw.Cc[syscall.VTIME] = 1, 0
	if err := control(f, setTermios, unsafe.Pointer(&raw)); err != nil { //nolint:gosec // the kernel reads what it is pointed to
		return nil, err
	}
	return func() { _ = control(f, setTermios, unsafe.Pointer(&before)) }, nil //nolint:gosec // as above
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
