package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"kumo/internal/app/wire/places"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/upload"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
)

// Uploads of a crawl's record files to a storage location.

// errPendingUploads means that a run ended before all files were uploaded.
var errPendingUploads = errors.New("the same command brings the rest there")

// folderOfPlace returns the crawl's folder as given by the user. If --out is a storage location, it is the folder on
// this machine.
func (o *options) folderOfPlace() (string, error) {
	if err := checkPlace(o.Out); err != nil {
		return "", err
	}
	if !places.IsURL(o.Out) {
		if o.Work != "" {
			return "", usagef("--work is for a crawl whose files are uploaded: give --out a storage location, such as " +
				"s3://bucket/prefix, or give only the folder with --out")
		}
		return o.Out, nil
	}
	o.place = strings.TrimRight(o.Out, "/")
	if o.Work != "" {
		return o.Work, checkFolder("--work", o.Work)
	}
	return uploads.FolderFor(o.place), nil
}

// checkPlace rejects a mistyped storage location, which would become a folder of that name.
func checkPlace(out string) error {
	scheme, rest, _ := strings.Cut(out, ":")
	if scheme != "file" && scheme != "hdfs" && scheme != "s3" && scheme != "gs" {
		return nil
	}
	switch path, is := strings.CutPrefix(rest, "//"); {
	case !is && strings.HasPrefix(rest, "/"):
		return usagef("--out %s: a place is written %s://%s", out, scheme, strings.TrimLeft(rest, "/"))
	case is && strings.Trim(path, "/") == "", is && strings.HasPrefix(path, "/") && (scheme == "s3" || scheme == "gs"):
		return usagef("--out %s: the place has no name: write it as %s", out, map[string]string{"file": "file:///FOLDER",
			"hdfs": "hdfs://HOST:PORT/FOLDER"}[scheme]+map[string]string{"s3": "s3://BUCKET/PREFIX",
			"gs": "gs://BUCKET/PREFIX"}[scheme])
	}
	return nil
}

// openPlace prepares the uploads to the crawl's storage location; nil if it has none.
func (o *options) openPlace(ctx context.Context, show *console) (*uploads.Upload, error) {
	if o.place == "" && o.Job.Dir != "" && !o.Job.Fresh { // the folder may name one
		var err error
		if o.place, err = uploads.PlaceOf(o.Job.Dir); err != nil {
			return nil, err
		}
	}
	if o.place == "" {
		if !o.KeepLocal {
			return nil, usagef("--keep-local=false needs a storage location: name one with --out, such as s3://bucket/prefix")
		}
		return nil, nil
	}
	up, err := uploads.New(ctx, &o.Job, uploads.Config{Place: o.place, KeepLocal: o.KeepLocal, Wait: o.PlaceWait,
		Failed: show.logPlaceFailed, Works: show.logPlaceRecovered})
	if err != nil {
		return nil, err
	}
	show.uploads = func() string {
		s := up.Status()
		return cmp.Or(s.Summary(), "no files are pending for "+s.Place)
	}
	show.logPlaceOpened(up, o.place, o.Job.Dir)
	return up, nil
}

func (s *console) logPlaceOpened(up *uploads.Upload, place, folder string) {
	late := up.Unreachable()
	if late == nil {
		s.log.Info("record files are uploaded when they are closed", "place", place, "folder", folder)
		return
	}
	args := []any{"place", place, "folder", folder, "why", late}
	if do := advice.Of(late); do != "" {
		args = append(args, "do", do)
	}
	// Logged as an error so that --quiet does not hide it: the name may be wrong.
	s.log.Error("the storage location cannot be reached, or accepts no files yet: record files stay in the folder "+
		"and are uploaded later; kumo retries at least every 5 minutes", args...)
}

// logPlaceFailed logs that uploads fail. If kumo does not retry, the user must act.
func (s *console) logPlaceFailed(u stats.Uploads) {
	if u.Next == 0 {
		s.log.Error("place: "+u.Summary(), "place", u.Place)
		return
	}
	s.log.Warn("place: "+u.Summary(), "place", u.Place)
}

func (s *console) logPlaceRecovered(u stats.Uploads) {
	s.log.Info("place: it works again", "place", u.Place)
}

// A placeError is an upload error, together with the error that ended the run, which is reported elsewhere.
type placeError struct {
	error
	end error
}

func (b *placeError) Unwrap() []error { return []error{b.error, b.end} }

// withPlace adds an upload error to the error that ended a run.
func withPlace(end, place error) error {
	if place != nil && end != nil && isReported(end) {
		return &placeError{place, end}
	}
	return errors.Join(end, place)
}

func adviseUploads(err error) error {
	switch {
	case errors.Is(err, upload.ErrRelocatable):
		return advice.With(err, "the files stay in the crawl's folder; to upload them elsewhere: kumo crawl -o PLACE "+
			"--work FOLDER")
	case errors.Is(err, upload.ErrIncomplete):
		err = fmt.Errorf("%w; %w", err, errPendingUploads)
	}
	return err
}

func printUploads(w io.Writer, s stats.Uploads) {
	fmt.Fprintf(w, "  %-9s %s: %s (%s)\n", "place", s.Place, stats.Count(s.Files, "files"), stats.Bytes(s.Bytes))
	if words := s.Summary(); words != "" {
		fmt.Fprintf(w, "  %-9s %s\n", "", words)
	}
	if s.State != nil {
		fmt.Fprintf(w, "  %-9s %s\n", "state", s.State.Summary(time.Now()))
	}
	if words := s.State.MissingHint(); words != "" {
		fmt.Fprintf(w, "  %-9s %s\n", "", words)
	}
}
