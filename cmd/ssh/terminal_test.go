package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// A terminal is a person's: what a program prints on it can be heard, and typed to.
type terminal struct {
	t             *testing.T
	master, slave *os.File
	said          lockedBuffer
}

func newTerminal(t *testing.T, columns, rows uint16) *terminal {
	t.Helper()
	master := get[*os.File](t)(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))
	t.Cleanup(func() { _ = master.Close() })
	var number, locked uint32
	control(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	tty := &terminal{t: t, master: master, slave: get[*os.File](t)(os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0))}
	tty.resize(columns, rows)
	return tty
}

func control(t *testing.T, file *os.File, what uintptr, about unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), what, uintptr(about)); errno != 0 {
		t.Fatal(errno)
	}
}

func (tty *terminal) resize(columns, rows uint16) {
	tty.t.Helper()
	size := struct{ rows, columns, x, y uint16 }{rows: rows, columns: columns}
	control(tty.t, tty.master, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// run starts a program at the terminal.
func (tty *terminal) run(cmd *exec.Cmd) {
	tty.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty.slave, tty.slave, tty.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(tty.t, cmd.Start())
	must(tty.t, tty.slave.Close())
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := tty.master.Read(part)
			_, _ = tty.said.Write(part[:n])
			if err != nil {
				return
			}
		}
	}()
}

func (tty *terminal) say(text string) {
	tty.t.Helper()
	get[int](tty.t)(tty.master.WriteString(text))
}

func (tty *terminal) heard() string { return tty.said.String() }

func (tty *terminal) hear(text string) {
	tty.t.Helper()
	w := &world{T: tty.t}
	w.until(20*time.Second, fmt.Sprintf("%q on the terminal", text), func() error {
		if !strings.Contains(tty.heard(), text) {
			return errors.New(tty.heard())
		}
		return nil
	})
}
