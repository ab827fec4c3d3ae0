package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/verify"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// Verify checks all files of the crawl in dir against each other. It changes nothing. The crawl must not be running;
// other readers may use it at the same time.
func Verify(ctx context.Context, dir string, cfg verify.Config) (_ *verify.Report, err error) {
	f := folder.At(dir, vfs.OS)
	if !f.IsCrawl() {
		return nil, folder.NoCrawlError(dir)
	}
	if err := f.Share(0); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	parts, done := view(f)
	if cfg.Disk != nil {
		parts.Disk = cfg.Disk
	}
	defer func() { err = errors.Join(err, done()) }()
	if j := parts.Journal; j != nil && j.End() == 0 && !settings.IsFile(f.Path(settings.Name)) && !f.HasOutputs() {
		return nil, folder.NoCrawlError(dir) // the folder was created, but no crawl in it
	}
	if _, err := folder.ReadSettings(dir); err != nil {
		parts.Broken = append(parts.Broken, verify.Fault{Check: "settings", File: settings.Name, Offset: -1,
			What: err.Error(), Remedy: folder.RepairHint(dir)})
	}
	if err := f.FormatFault(); err != nil {
		parts.Broken = append(parts.Broken, verify.Fault{Check: "settings", File: filepath.ToSlash(folder.FormatName),
			Offset: -1, What: err.Error(), Remedy: "the next run or kumo repair rewrites it"})
	}
	return verify.Run(ctx, parts, cfg)
}

// view opens the readable parts of a crawl on an overlay disk, which discards changes. The parts include errors of the
// others.
func view(f *folder.Folder) (p verify.Parts, done func() error) {
	o := &overlayOpener{folder: f, parts: verify.Parts{Dir: f.Dir, Disk: vfs.OS, View: vfs.NewOverlay(vfs.OS),
		Shared: f.IsNodes()}}
	o.open()
	return o.parts, o.close
}

// An overlayOpener opens a crawl's state on an overlay disk, which discards changes.
type overlayOpener struct {
	folder  *folder.Folder
	parts   verify.Parts
	closers []io.Closer
}

func (o *overlayOpener) open() {
	p, path := &o.parts, o.folder.Path
	if !o.folder.HasJournal() && o.folder.HasOutputs() {
		o.broken("journal", "state/journal", errors.New("the crawl has lost its state: there is no journal"))
		return
	}
	if j, err := file.Open(p.View, path("state", "journal"), file.Config{}); o.opened(j, "journal", "state/journal", err) {
		p.Journal = j
	}
	if db, err := seen.Open(p.View, path("state", "seen"), seen.Config{}); o.opened(db, "seen", "state/seen", err) {
		p.Seen = db
	}
	if d, err := seen.OpenDigests(p.View, path("state", "digests"), seen.Config{}); o.opened(d, "digests", "state/digests",
		err) {
		p.Digests = d
	}
	f, note, err := frontier.Open(frontier.Config{Disk: p.View, Dir: path("state", "frontier"), Slices: o.slices()})
	if !o.opened(f, "frontier", "state/frontier", err) || len(p.Broken) > 0 {
		return
	}
	state, err := recovery.Recover(p.Journal, recovery.Views{Seen: p.Seen, Digests: p.Digests, Frontier: f, Note: note,
		Abandoned: statefile.OpenAbandoned(p.View, o.parts.Dir)})
	if err != nil {
		o.broken("journal", "state", err)
		return
	}
	p.State = state
	o.openDeferred()
	const answers = "state/robots.jsonl" // not read by any check
	if length, _ := store.FindMark(state.Marks, statefile.RobotsAnswersName); length > 0 {
		if size, err := p.Disk.Size(path(statefile.RobotsAnswersName)); err != nil || size < length {
			o.broken("deferred", answers, fmt.Errorf("the journal records %d bytes, but the file has %d", length, size))
		}
	}
}

// slices returns the number of slices of each host, if the settings can be read.
func (o *overlayOpener) slices() int {
	saved, err := folder.ReadSettings(o.folder.Dir)
	if err != nil {
		return 1 // the error is reported elsewhere
	}
	return job.SlicesOf(saved).Count()
}

// openDeferred truncates the uncommitted part of the file.
func (o *overlayOpener) openDeferred() {
	p := &o.parts
	// The verifier reports faults of the file itself.
	if a, err := statefile.OpenDeferred(p.View, p.Dir, p.State.Marks); err == nil {
		o.closers = append(o.closers, a)
	}
}

// opened registers a part for closing, or reports the error.
func (o *overlayOpener) opened(c io.Closer, check, name string, err error) bool {
	if err != nil {
		o.broken(check, name, err)
		return false
	}
	o.closers = append(o.closers, c)
	return true
}

func (o *overlayOpener) broken(check, name string, err error) {
	o.parts.Broken = append(o.parts.Broken, verify.Fault{Check: check, File: name, Offset: -1, What: err.Error(),
		Remedy: "the crawl cannot resume from it: " + folder.RepairHint(o.parts.Dir)})
}

func (o *overlayOpener) close() (err error) {
	for _, c := range o.closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// VerifyFiles checks the record files of a crawl without a state, such as an uploaded one. The disk has them below dir.
func VerifyFiles(ctx context.Context, dir string, cfg verify.Config) (*verify.Report, error) {
	return verify.Run(ctx, verify.Parts{Dir: dir, Disk: cfg.Disk, View: vfs.NewOverlay(vfs.OS), FilesOnly: true}, cfg)
}
