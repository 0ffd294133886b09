package bits

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
)

// Where our programs are in every app container.
const (
	LauncherPath = "/proa/launcher"
	SFTPPath     = "/proa/sftp"
)

// Programs are the files of what we add to every image that apps run on.
type Programs struct {
	Launcher string // pid 1
	SFTP     string // what copies files for people
}

// RunImage makes of a run image one that apps run on here: the same with our programs in one more layer. It answers the
// reference by digest. The same image and programs make the same run image, which is pushed once; so a process may ask for
// it each time it starts.
func (r *Registry) RunImage(ctx context.Context, base string, programs Programs) (string, error) {
	repo, err := r.below("stack")
	if err != nil {
		return "", err
	}
	added, err := spool("", "programs", programs.write)
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

// write writes a layer that root owns, so that no app can change what watches over it.
func (p Programs) write(w io.Writer) error {
	out := tar.NewWriter(w)
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "proa/", Mode: 0o755, ModTime: epoch, Format: tar.FormatPAX}); err != nil {
		return err
	}
	for _, program := range []struct{ path, from string }{{LauncherPath, p.Launcher}, {SFTPPath, p.SFTP}} {
		if err := writeProgram(out, program.path, program.from); err != nil {
			return err
		}
	}
	return out.Close()
}

func writeProgram(out *tar.Writer, path, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read the program for %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the program for %s: %w", path, err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not a program: name what cmd/launcher and cmd/sftp build", from)
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path[1:], Mode: 0o755, Size: info.Size(), ModTime: epoch, Format: tar.FormatPAX}); err != nil {
		return err
	}
	if _, err := io.Copy(out, file); err != nil {
		return fmt.Errorf("read the program for %s: %w", path, err)
	}
	return nil
}
