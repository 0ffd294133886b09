package cli

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"os"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// upload packs the content of an app and sends it as a new package of the app.
func (s *session) upload(ctx context.Context, a v3.App, place string) (string, error) {
	s.say("Packing %s...", place)
	file, err := pack(place)
	if err != nil {
		return "", err
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	var pkg v3.Package
	ask := map[string]any{"type": "bits", "relationships": map[string]v3.ToOne{"app": v3.One(a.GUID)}}
	if err := s.post(ctx, "/v3/packages", ask, &pkg); err != nil {
		return "", err
	}
	if err := s.sendBits(ctx, pkg.GUID, file); err != nil {
		return "", err
	}
	return pkg.GUID, s.awaitPackage(ctx, pkg.GUID)
}

// pack writes the zip into a file that is ours alone, because its exact size must be known before the first byte is sent.
func pack(place string) (*os.File, error) {
	b, err := gather(place)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.close() }()
	file, err := os.CreateTemp("", "proa-*.zip")
	if err != nil {
		return nil, err
	}
	if err = b.zip(file); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}
	return file, err
}

func (s *session) sendBits(ctx context.Context, pkg string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	if err := form.WriteField("resources", "[]"); err != nil {
		return err
	}
	if _, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="bits"; filename="package.zip"`}, "Content-Type": {"application/octet-stream"},
	}); err != nil {
		return err
	}
	tail := bytes.NewBufferString("\r\n--" + form.Boundary() + "--\r\n")
	length := int64(head.Len()) + info.Size() + int64(tail.Len())
	bar := s.progress("Uploading", info.Size())
	body := io.MultiReader(&head, bar.through(file), tail)
	err = s.api.Upload(ctx, "/v3/packages/"+url.PathEscape(pkg)+"/upload", form.FormDataContentType(), body, length, &v3.Package{})
	bar.end()
	return err
}

// awaitPackage waits until the platform has taken the package in.
func (s *session) awaitPackage(ctx context.Context, guid string) error {
	for {
		var pkg v3.Package
		if err := s.get(ctx, "/v3/packages/"+url.PathEscape(guid), &pkg); err != nil {
			return err
		}
		switch pkg.State {
		case "READY":
			return nil
		case "FAILED", "EXPIRED":
			reason := "it is " + pkg.State
			if pkg.Data.Error != nil {
				reason = *pkg.Data.Error
			}
			return failed("proa push    # again", "The platform could not take the package %s in: %s.", guid, strings.TrimSuffix(reason, "."))
		}
		if err := s.wait(ctx, s.Poll); err != nil {
			return err
		}
	}
}

// dockerPackage makes a package of an image that is in a registry.
func (s *session) dockerPackage(ctx context.Context, a v3.App, image, user string) (string, error) {
	data := map[string]string{"image": image}
	if user != "" {
		data["username"], data["password"] = user, s.Getenv("PROA_DOCKER_PASSWORD")
	}
	var pkg v3.Package
	ask := map[string]any{"type": "docker", "data": data, "relationships": map[string]v3.ToOne{"app": v3.One(a.GUID)}}
	if err := s.post(ctx, "/v3/packages", ask, &pkg); err != nil || pkg.State == "READY" {
		return pkg.GUID, err
	}
	return pkg.GUID, s.awaitPackage(ctx, pkg.GUID)
}
