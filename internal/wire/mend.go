package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"kumo/internal/crawl"
	"kumo/internal/frontier"
	"kumo/internal/journal"
	"kumo/internal/journal/file"
	seenrun "kumo/internal/seen/run"
	"kumo/internal/store/warc"
	"kumo/internal/vfs"
)

// ToRepair adds to an error from a crawl's folder that a repair can help.
func ToRepair(err error, dir string) error {
	if err == nil {
		return nil
	}
	return AdviseTo(err, toRepair(dir))
}

// toRepair is what to do about a folder from which a crawl cannot go on.
func toRepair(dir string) string {
	return fmt.Sprintf("kumo repair %s goes on from what is whole there, and says what is lost (--dry-run: says it, and changes nothing)", dir)
}

// mendable adds to an error from opening a crawl's folder what can be done about it.
func (c *Crawl) mendable(err error) error {
	if c.folder == nil || c.peers != nil || err == nil || Advice(err) != "" {
		return err
	}
	if _, wrong := errors.AsType[*JobError](err); wrong {
		return err
	}
	for _, other := range []error{context.Canceled, context.DeadlineExceeded, fs.ErrPermission, ErrNoSeeds, ErrLocked} {
		if errors.Is(err, other) {
			return err
		}
	}
	if vfs.IsFull(err) || !vfs.IsOS(c.disk) && !isDamage(err) {
		return err
	}
	do := toRepair(c.Job.Dir)
	if errors.Is(err, warc.ErrMissing) {
		do = "if it was moved away on purpose, say so with --moved; otherwise " + do
	}
	return AdviseTo(err, do)
}

// isDamage reports whether an error says that a file of a crawl is not as it was written.
func isDamage(err error) bool {
	for _, kind := range []error{seenrun.ErrDamaged, seenrun.ErrVersion, frontier.ErrDamaged, frontier.ErrVersion, file.ErrDamaged, file.ErrVersion,
		journal.ErrDropped, crawl.ErrState, crawl.ErrRoots, crawl.ErrAsides, warc.ErrMissing, fs.ErrNotExist, fs.ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
