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

// A crawl whose record files are brought to a place.

// errPendingUploads is the end of a crawl whose place has not got all.
var errPendingUploads = errors.New("the same command brings the rest there")

// folderOfPlace is the crawl's folder, as far as the user has said: where --out is a place, the one on this machine.
func (o *options) folderOfPlace() (string, error) {
	if err := checkPlace(o.Out); err != nil {
		return "", err
	}
	if !places.IsURL(o.Out) {
		if o.Work != "" {
			return "", usagef("--work is the folder of a crawl whose files go to a place: name that with --out, as " +
				"s3://bucket/prefix, or only the folder with --out")
		}
		return o.Out, nil
	}
	o.place = strings.TrimRight(o.Out, "/")
	if o.Work != "" {
		return o.Work, checkFolder("--work", o.Work)
	}
	return uploads.FolderFor(o.place), nil
}

// checkPlace refuses a mistyped place, which would be a folder of that name.
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

// openPlace prepares what brings files to the crawl's place; nil if it has none.
func (o *options) openPlace(ctx context.Context, show *console) (*uploads.Upload, error) {
	if o.place == "" && o.Job.Dir != "" && !o.Job.Fresh { // the folder may know of one
		var err error
		if o.place, err = uploads.PlaceOf(o.Job.Dir); err != nil {
			return nil, err
		}
	}
	if o.place == "" {
		if !o.KeepLocal {
			return nil, usagef("--keep-local=false removes what a place has: name one with --out, as s3://bucket/prefix")
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
		return cmp.Or(s.Summary(), "nothing waits for "+s.Place)
	}
	show.logPlaceOpened(up, o.place, o.Job.Dir)
	return up, nil
}

func (s *console) logPlaceOpened(up *uploads.Upload, place, folder string) {
	late := up.Unreachable()
	if late == nil {
		s.log.Info("record files go to the place as they are closed", "place", place, "folder", folder)
		return
	}
	args := []any{"place", place, "folder", folder, "why", late}
	if do := advice.Of(late); do != "" {
		args = append(args, "do", do)
	}
	// An error, so that it is said with --quiet, too: the name may be wrong.
	s.log.Error("the place cannot be reached, or takes nothing yet: record files wait in the folder, and go there "+
		"once it does; it is tried again at least every 5 minutes", args...)
}

// logPlaceFailed says that the place fails. Where it is not tried again, somebody has to do something.
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

// A placeError is an error of the place, with the end of the run which is said elsewhere.
type placeError struct {
	error
	end error
}

func (b *placeError) Unwrap() []error { return []error{b.error, b.end} }

// withPlace adds to how a run ended what its place has to say.
func withPlace(end, place error) error {
	if place != nil && end != nil && isReported(end) {
		return &placeError{place, end}
	}
	return errors.Join(end, place)
}

func adviseUploads(err error) error {
	switch {
	case errors.Is(err, upload.ErrRelocatable):
		return advice.With(err, "the files stay in the crawl's folder; bring them to another place: kumo crawl -o PLACE "+
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
