package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/app/wire/places"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/upload"
	"kumo/internal/base/advice"
)

// Uploads of a node's record files to a storage location.

// resolvePlace sets the node's folder, and the storage location if --out is one.
func (n *nodeRunner) resolvePlace() error {
	if err := checkPlace(n.out); err != nil {
		return err
	}
	if places.IsURL(n.out) {
		n.o.place, n.out = strings.TrimRight(n.out, "/"), n.o.Work
		return checkFolder("--work", n.out)
	}
	if n.o.Work != "" {
		return usagef("--work is for a node whose files are uploaded: give --out a storage location, such as " +
			"s3://bucket/prefix, or give only the folder with --out")
	}
	return checkFolder("--out", n.out)
}

// findPlace uses the storage location saved in the folder, if none is given.
func (n *nodeRunner) findPlace() error {
	if n.o.place == "" {
		of, err := uploads.PlaceOf(n.out)
		if err != nil {
			return err
		}
		if of != "" {
			n.o.place = uploads.Parent(of)
		}
	}
	if n.o.place == "" && !n.o.KeepLocal {
		return usagef("--keep-local=false needs a storage location: name one with --out, such as s3://bucket/prefix")
	}
	return nil
}

// checkPlace rejects a storage location that can never be opened. If it cannot be reached at present, it logs a
// warning.
func (n *nodeRunner) checkPlace(ctx context.Context, show *console) error {
	if n.o.place == "" {
		return nil
	}
	late, err := uploads.Check(ctx, n.o.place)
	if late != nil {
		show.log.Warn("the storage location cannot be reached at present: record files stay in this node's folder",
			"place", n.o.place, "why", late)
	}
	if err == nil || advice.IsUsage(err) || ctx.Err() != nil {
		return err
	}
	if of, linkErr := uploads.PlaceOf(n.out); of == "" || linkErr != nil {
		return errors.Join(err, linkErr)
	}
	show.log.Warn("the storage location cannot be opened at present", "place", n.o.place, "why", err)
	return nil
}

// uploaderFactory returns a function that creates the uploader of each session; nil without a storage location.
func (n *nodeRunner) uploaderFactory(show *console) session.NewUploader {
	if n.o.place == "" {
		return nil
	}
	show.uploads = func() string {
		up := n.upload.Load()
		if up == nil {
			return "no files are pending"
		}
		s := up.Status()
		return cmp.Or(s.Summary(), "no files are pending for "+s.Place)
	}
	return func(ctx context.Context, j *job.Job, life string) (session.Uploader, error) {
		at, earlier := uploads.Child(n.o.place, life), j.Dir != n.out
		if earlier { // files of an earlier session go where the others of that session are
			var err error
			if at, err = uploads.PlaceOf(j.Dir); err != nil {
				return nil, err
			}
		}
		up, err := uploads.New(ctx, j, uploads.Config{Place: at, KeepLocal: n.o.KeepLocal, Wait: n.o.PlaceWait,
			Failed: show.logPlaceFailed, Works: show.logPlaceRecovered,
			Cut: func(c upload.TrimStats) {
				show.log.Info("this node's state is uploaded, so the servers keep less of its journal", "checkpoints",
					c.States, "bytes_brought", c.Bytes, "bytes_of_journal_dropped", c.Log)
			}})
		if err != nil {
			return nil, err
		}
		if !earlier {
			n.upload.Store(up)
			show.logPlaceOpened(up, at, j.Dir)
		}
		return up, nil
	}
}

// refetched returns how many pages of dead nodes this node has scheduled to be fetched again.
func refetched(one cluster.Node) int64 {
	if n, is := one.(interface{ Refetched() int64 }); is {
		return n.Refetched()
	}
	return 0
}
