package wire

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"kumo/internal/advice"
	"kumo/internal/folder"
	"kumo/internal/frontier"
	"kumo/internal/journal"
	"kumo/internal/journal/file"
	"kumo/internal/recovery"
	seenrun "kumo/internal/seen/run"
	"kumo/internal/settings"
	"kumo/internal/statefile"
	"kumo/internal/store/warc"
	"kumo/internal/vfs"
)

// ToRepair adds to an error from a crawl's folder that a repair can help.
func ToRepair(err error, dir string) error {
	if err == nil {
		return nil
	}
	return advice.With(err, folder.HowToRepair(dir))
}

// SavedSettings reads the settings of the crawl in dir; none when there is no crawl.
func SavedSettings(dir string) ([]settings.Setting, error) {
	all, err := settings.Read(filepath.Join(dir, settings.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, ToRepair(err, dir)
}

// mendable adds to an error from opening a crawl's folder what can be done about it.
func (c *Crawl) mendable(err error) error {
	if c.folder == nil || c.peers != nil || err == nil || advice.Of(err) != "" || advice.IsUsage(err) {
		return err
	}
	for _, other := range []error{context.Canceled, context.DeadlineExceeded, fs.ErrPermission, ErrNoSeeds,
		folder.ErrLocked} {
		if errors.Is(err, other) {
			return err
		}
	}
	if vfs.IsFull(err) || !vfs.IsOS(c.disk) && !isDamage(err) {
		return err
	}
	do := folder.HowToRepair(c.Job.Dir)
	if errors.Is(err, warc.ErrMissing) {
		do = "if it was moved away on purpose, say so with --moved; otherwise " + do
	}
	return advice.With(err, do)
}

// isDamage reports whether an error says that a file of a crawl is not as it was written.
func isDamage(err error) bool {
	for _, kind := range []error{seenrun.ErrDamaged, seenrun.ErrVersion, frontier.ErrDamaged, frontier.ErrVersion,
		file.ErrDamaged, file.ErrVersion,
		journal.ErrDropped, recovery.ErrState, statefile.ErrScopeSeeds, statefile.ErrDeferred, warc.ErrMissing, fs.ErrNotExist,
		fs.ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
