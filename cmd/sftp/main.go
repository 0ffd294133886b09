// Command sftp copies files from and to an app's container, for somebody who has logged in to it over SSH. It speaks on its
// stdin and stdout, and may do what the app may.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// The streams that the SSH server is at the other end of.
type streams struct {
	io.Reader
	io.WriteCloser
}

func main() {
	if err := serve(streams{os.Stdin, os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "sftp:", err)
		os.Exit(1)
	}
}

// serve answers until the other side has ended. A path without a slash before it begins in the app's directory.
func serve(with streams) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("where am I: %w", err)
	}
	server, err := sftp.NewServer(with, sftp.WithServerWorkingDirectory(dir))
	if err != nil {
		return err
	}
	if err := server.Serve(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
