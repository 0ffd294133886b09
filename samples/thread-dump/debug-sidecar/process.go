package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

var errNoJava = errors.New("there is no Java process that catches SIGQUIT")

// findJava finds the Java process in the container: the first by number that catches the signal. One that does not, because it is still
// starting or was started with -Xrs, would be ended by it.
func findJava(proc string) (int, error) {
	names, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "status"))
	if err != nil {
		return 0, err
	}
	found := 0
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		status, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		if isJava(string(status)) && (found == 0 || pid < found) {
			found = pid
		}
	}
	if found == 0 {
		return 0, errNoJava
	}
	return found, nil
}

// isJava reads /proc/PID/status: the name of the program, and the mask of the signals that it catches.
func isJava(status string) bool {
	var name, caught string
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "Name":
			name = strings.TrimSpace(value)
		case "SigCgt":
			caught = strings.TrimSpace(value)
		}
	}
	var mask uint64
	if _, err := fmt.Sscanf(caught, "%x", &mask); err != nil {
		return false
	}
	return name == "java" && mask&(1<<(syscall.SIGQUIT-1)) != 0
}
