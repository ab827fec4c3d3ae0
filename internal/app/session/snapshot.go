package session

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

// SnapshotName returns the default folder for a snapshot of the crawl in dir.
func SnapshotName(dir string, now time.Time) string {
	return filepath.Clean(dir) + ".snapshot-" + now.UTC().Format("20060102T150405Z")
}

// Snapshot copies the crawl in dir, as of one moment, into the new folder target. A running crawl makes the copy itself
// and continues. The copy can be resumed like any crawl.
func Snapshot(ctx context.Context, dir, target string, progress func(inspect.Copied)) error {
	target, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	f := folder.At(dir, vfs.OS)
	if !f.IsCrawl() {
		return folder.NoCrawlError(dir)
	}
	if f.IsNodes() {
		return advice.Usage("%s belongs to a node of a cluster: a copy would be a second node of the same name. If its "+
			"disk is lost, the other nodes "+
			"take over its data; closed record files can be copied (warc/*.gz without .open)", dir)
	}
	return retryWhileBusy(ctx, func() (again bool, err error) {
		err = snapshot(ctx, f, target, progress)
		return err != nil && (errors.Is(err, folder.ErrLocked) || errors.Is(err, inspect.ErrUnreachable) ||
			strings.Contains(err.Error(), crawl.ErrEnding.Error())), err
	})
}

// snapshot first tries to lock the folder: only if a crawl holds it, a server can make the copy.
func snapshot(ctx context.Context, f *folder.Folder, target string, progress func(inspect.Copied)) error {
	err := f.Share(os.O_CREATE)
	if errors.Is(err, folder.ErrLocked) {
		client, err := inspect.Dial(ctx, f.Path(folder.EndpointName))
		if err != nil {
			return err
		}
		defer client.Close() //nolint:errcheck // an idle connection
		for n, err := range client.Snapshot(ctx, target) {
			if err != nil {
				return err
			}
			progress(n)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only shared
	return folder.Make(target, func(part string) error {
		c := folder.NewCopy(f, part, func(n inspect.Copied) bool { progress(n); return true })
		return c.All(ctx)
	})
}

// Snapshot implements [inspect.Snapshotter].
func (s source) Snapshot(ctx context.Context, target string) iter.Seq2[inspect.Copied, error] {
	return func(yield func(inspect.Copied, error) bool) {
		from := s.session.Folder
		if from.IsNodes() {
			yield(inspect.Copied{}, errors.New("the folder belongs to a node of a cluster"))
			return
		}
		left := false // the client has canceled
		err := folder.Make(target, func(part string) error {
			return s.session.copyTo(ctx, folder.NewCopy(from, part, func(n inspect.Copied) bool {
				left = left || !yield(n, nil)
				return !left
			}))
		})
		if err != nil && !left {
			yield(inspect.Copied{}, err)
		}
	}
}

// copyTo copies the crawl as of one moment; files that never change are copied afterwards.
func (s *Session) copyTo(ctx context.Context, c *folder.Copy) error {
	err := s.Engine.Checkpoints.Snapshot(ctx, func(ctx context.Context, at journal.Position, marks []store.Mark) error {
		begun, err := s.JournalFiles(at)
		if err != nil {
			return err
		}
		return c.CopyMutable(ctx, begun, marks)
	})
	if err != nil {
		return err
	}
	return c.CopyImmutable(ctx)
}
