package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) pack(p platform.Package) v3.Package {
	self := "/v3/packages/" + p.GUID
	shown := v3.Package{Resource: resource(p.GUID, p.CreatedAt, p.UpdatedAt), Type: string(p.Type), State: string(p.State), Metadata: metadata(p.Metadata),
		Relationships: map[string]v3.ToOne{"app": v3.One(p.AppGUID)}, Links: v3.Links{"self": s.link(self), "app": s.link("/v3/apps/", p.AppGUID)}}
	if p.Type == platform.PackageDocker {
		shown.Data.Image = p.Docker.Image
		if p.Docker.Username != "" {
			password := "***"
			shown.Data.Username, shown.Data.Password = &p.Docker.Username, &password
		}
		return shown
	}
	shown.Data.Error, shown.Data.Checksum = unlessEmpty(p.Error), checksum(p.Image)
	shown.Links["upload"] = &v3.Link{Href: s.at(self + "/upload"), Method: http.MethodPost}
	return shown
}

func (s *Server) listPackages(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := s.Store.Packages(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.pack)
}

func (s *Server) listAppPackages(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return listOfApp(s, w, r, who, s.Store.Packages, s.pack)
}

func (s *Server) getPackage(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	p, err := s.Store.Package(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.pack(p))
}

func (s *Server) createPackage(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.PackageCreate
	if err := read(r, &in); err != nil {
		return err
	}
	p := platform.Package{AppGUID: in.Relationships.App.GUID(), Type: platform.PackageType(in.Type), Docker: platform.DockerSource(in.Data)}
	if p.AppGUID == "" {
		return fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships")
	}
	p.Metadata.Apply(noted(in.Metadata))
	p, err := s.Store.CreatePackage(r.Context(), who, p)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.pack(p))
}

func (s *Server) updatePackage(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.Noted
	if err := read(r, &in); err != nil {
		return err
	}
	p, err := s.Store.UpdatePackage(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.pack(p))
}

func (s *Server) deletePackage(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeletePackage(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

// matchResources knows no file: the registry keeps layers, and clients then send all of them.
func (s *Server) matchResources(w http.ResponseWriter, _ *http.Request, _ platform.Who) error {
	return web.JSON(w, http.StatusOK, v3.Matches{Resources: []v3.Match{}})
}

const (
	defaultUpload = 1 << 30 // as bits has it
	uploadTime    = time.Hour
	uploadRest    = 1 << 20 // what an upload may hold beside the archive
)

func (s *Server) largestUpload() int64 {
	if s.Bits != nil && s.Bits.Limits.Upload > 0 {
		return s.Bits.Limits.Upload
	}
	return defaultUpload
}

func (s *Server) uploadRoom() web.Room {
	return web.Room{Body: s.largestUpload() + uploadRest, Time: uploadTime}
}

// uploadPackage takes the archive to a file first: until all of it is here nothing has happened, and the client may try again. A process
// that dies while it pushes leaves the package in PROCESSING_UPLOAD.
func (s *Server) uploadPackage(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	ctx, guid := r.Context(), r.PathValue("guid")
	if err := s.Store.MayUpload(ctx, who, guid); err != nil {
		return err
	}
	if s.Bits == nil {
		return fault.Unavailable("This installation has no registry, so nothing can be uploaded. Tell your operator.")
	}
	file, err := os.CreateTemp(s.Bits.Dir, "upload-*.zip")
	if err != nil {
		return fmt.Errorf("take upload: %w", err)
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	size, err := s.take(r, file)
	if err != nil {
		return err
	}
	p, err := s.Store.BeginUpload(ctx, who, guid)
	if err != nil {
		return err
	}
	made, failed := s.Bits.Upload(ctx, p.AppGUID, file, size)
	p.EndUpload(made.Image, made.Size, failed)
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // also if the client has gone
	defer cancel()
	p, err = s.Store.EndUpload(done, p)
	if failed != nil || err != nil {
		return errors.Join(failed, err)
	}
	return web.JSON(w, http.StatusOK, s.pack(p))
}

// take writes the archive of an upload down, and answers its size.
func (s *Server) take(r *http.Request, to io.Writer) (int64, error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return 0, fault.Unprocessable("An upload must be a form of the type multipart/form-data with a file named bits.").Because(err)
	}
	size := int64(-1)
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.takePart(part, to, &size)
		}
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			return 0, fault.Unprocessable("The upload is larger than %s. Leave out what the app does not need, with a .cfignore file.", platform.FormatMegabytes(int(s.largestUpload()/megabyte)))
		case errors.As(err, new(*fault.Error)) || errors.As(err, new(*fs.PathError)): // the second is our own disk's
			return 0, err
		case err != nil:
			return 0, fault.Invalid("The upload ended before it was complete. Push again.").Because(err)
		}
	}
	if size < 0 {
		return 0, fault.Unprocessable("Upload must include bits: the app's files in a zip archive.")
	}
	return size, nil
}

func (s *Server) takePart(part *multipart.Part, to io.Writer, size *int64) (err error) {
	switch part.FormName() {
	case "resources":
		var matched []json.RawMessage
		if err := json.NewDecoder(io.LimitReader(part, uploadRest)).Decode(&matched); err != nil && !errors.Is(err, io.EOF) {
			return fault.Unprocessable("Resources must be a JSON array.").Because(err)
		}
		if len(matched) > 0 {
			return fault.Unprocessable("No file of an earlier upload is kept, so resources must be empty: send all files as bits.")
		}
	case "bits":
		if *size >= 0 {
			return fault.Unprocessable("An upload holds one archive, and this one holds two files named bits.")
		}
		*size, err = io.Copy(to, part)
	}
	return err
}
