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

// SnapshotName is where a snapshot of the crawl in dir goes unless the user says otherwise.
func SnapshotName(dir string, now time.Time) string {
	return filepath.Clean(dir) + ".snapshot-" + now.UTC().Format("20060102T150405Z")
}

// Snapshot copies the crawl in dir, as it is at one moment, into the new folder target. A crawl that runs there makes
// the copy itself, and goes on meanwhile. The copy is a crawl that can be gone on with.
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
		return advice.Usage("%s belongs to a node of a cluster: a copy would be a second node of the same name. What a "+
			"node has, the others "+
			"take over if its disk is lost; its record files can be copied once they are closed (warc/*.gz without .open)", dir)
	}
	return retryWhileBusy(ctx, func() (again bool, err error) {
		err = snapshot(ctx, f, target, progress)
		return err != nil && (errors.Is(err, folder.ErrLocked) || errors.Is(err, inspect.ErrUnreachable) ||
			strings.Contains(err.Error(), crawl.ErrEnding.Error())), err
	})
}

// snapshot asks for the folder first: only where a crawl has it, there is somebody to make the copy.
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

// Snapshot is inspect.Snapshooter's.
func (s source) Snapshot(ctx context.Context, target string) iter.Seq2[inspect.Copied, error] {
	return func(yield func(inspect.Copied, error) bool) {
		from := s.session.Folder
		if from.IsNodes() {
			yield(inspect.Copied{}, errors.New("the folder is that of a node of a cluster"))
			return
		}
		left := false // by who asked
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

// copyTo copies the crawl as it is at one moment; what never changes is copied after it.
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
