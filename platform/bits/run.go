package bits

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
)

// LauncherPath is where pid 1 of every app container is.
const LauncherPath = "/proa/launcher"

// RunImage makes of a run image one that apps run on here: the same with our launcher in one more layer. It answers the
// reference by digest. The same image and launcher make the same run image, which is pushed once; so a process may ask for
// it each time it starts.
func (r *Registry) RunImage(ctx context.Context, base, launcher string) (string, error) {
	repo, err := r.below("stack")
	if err != nil {
		return "", err
	}
	added, err := spool("", "launcher", func(w io.Writer) error { return writeLauncher(w, launcher) })
	if err != nil {
		return "", err
	}
	defer added.close()
	ref, err := r.over(ctx, base, added, repo)
	if err != nil {
		return "", fmt.Errorf("run image of %s: %w", base, err)
	}
	return ref.Name(), nil
}

// writeLauncher writes a layer that root owns, so that no app can change what watches over it.
func writeLauncher(w io.Writer, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read the launcher: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the launcher: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not a program: name the launcher that cmd/launcher builds", from)
	}
	out := tar.NewWriter(w)
	program := LauncherPath[1:]
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "proa/", Mode: 0o755, ModTime: epoch, Format: tar.FormatPAX},
		{Typeflag: tar.TypeReg, Name: program, Mode: 0o755, Size: info.Size(), ModTime: epoch, Format: tar.FormatPAX},
	} {
		if err := out.WriteHeader(h); err != nil {
			return err
		}
	}
	if _, err := io.Copy(out, file); err != nil {
		return fmt.Errorf("read the launcher: %w", err)
	}
	return out.Close()
}
