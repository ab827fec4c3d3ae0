package repair

import (
	"context"
	"errors"
	"io/fs"

	"kumo/internal/app/folder"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/recovery"
	seenrun "kumo/internal/state/seen/run"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store/warc"
)

// Advise adds advice to an error from opening a crawl's folder.
func Advise(err error, f *folder.Folder) error {
	if err == nil || advice.Of(err) != "" || advice.IsUsage(err) {
		return err
	}
	for _, other := range []error{context.Canceled, context.DeadlineExceeded, fs.ErrPermission, folder.ErrLocked} {
		if errors.Is(err, other) {
			return err
		}
	}
	if vfs.IsFull(err) || !vfs.IsOS(f.Disk) && !IsDamage(err) {
		return err
	}
	do := folder.RepairHint(f.Dir)
	if errors.Is(err, warc.ErrMissing) {
		do = "if it was moved away on purpose, use --moved; otherwise " + do
	}
	return advice.With(err, do)
}

// IsDamage reports whether an error means that a file of a crawl is damaged or missing.
func IsDamage(err error) bool {
	for _, kind := range []error{seenrun.ErrDamaged, seenrun.ErrVersion, frontier.ErrDamaged, frontier.ErrVersion,
		file.ErrDamaged, file.ErrVersion, journal.ErrDropped, recovery.ErrInconsistent, statefile.ErrScopeSeeds,
		statefile.ErrDeferred, warc.ErrMissing, fs.ErrNotExist, fs.ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
