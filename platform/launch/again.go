package launch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// again tells whether a launcher of this pod has been here before, and leaves the mark for the next. Where that cannot be told, as in
// a full directory, this is the first.
func again(mark string) bool {
	if mark == "" {
		return false
	}
	fd, err := syscall.Open(mark, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return errors.Is(err, fs.ErrExist)
	}
	_ = syscall.Close(fd)
	return false
}

// hold waits in a container that was started again in its place, and tells whether it was asked to stop meanwhile. That time is the
// controller's, which records how the container before ended and places the instance anew, or lets it wait. When nobody comes, the app
// is started as always.
func (c *Config) hold(stop <-chan os.Signal) bool {
	if !again(c.Mark) {
		return false
	}
	select {
	case <-stop:
		return true
	case <-time.After(time.Duration(c.HoldSeconds * float64(time.Second))):
		return false
	}
}
