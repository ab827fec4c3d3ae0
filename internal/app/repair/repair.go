// Package repair restores a damaged crawl to a state from which it can resume. It finds the damage, collects the intact
// data, and replaces the damaged files.
package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/repair/rebuild"
	"kumo/internal/app/verify"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
)

// Options control a repair.
type Options struct {
	DryRun bool
	Moved  bool                     // missing WARC files were moved on purpose
	Report func(string)             // receives findings and actions
	Job    func() (*job.Job, error) // creates the crawl's job from the settings in its folder
	Now    func() time.Time
}

// Openers open a crawl.
type Openers struct {
	// View opens the readable parts of a crawl on an overlay disk, which discards changes.
	View func(*folder.Folder) (p verify.Parts, done func() error)
	// Crawl is rebuild.Config.Open.
	Crawl func(*job.Job, *folder.Folder) (rebuild.Crawl, error)
}

// A Result is the result of a repair.
type Result struct {
	Intact       bool   `json:"whole"`             // there was nothing to repair
	OnlySettings bool   `json:"only_settings"`     // only the settings had to be restored
	Damaged      string `json:"damaged,omitempty"` // the folder with the damaged and replaced files
	// Visits that were listed or had records, including robots.txt, and were removed; their URLs are fetched again.
	Visits  int64 `json:"visits_lost"`
	Lines   int   `json:"lines_mended"` // lines of lists and indexes rebuilt from other files
	Pages   int64 `json:"pages"`        // that were kept
	Waiting int   `json:"urls_waiting"`
	Known   int   `json:"urls_known"`
}

// repairedName is the work folder in the state folder.
const repairedName = "repaired"

// Run repairs the crawl in dir so that it can be resumed. It keeps the records whose visits are consistent in all
// files, and rebuilds the state from these and from the readable parts of the old state. Replaced files are moved
// aside; nothing is deleted.
func Run(ctx context.Context, dir string, o Options, open Openers) (_ *Result, err error) {
	if err := folder.CheckFormat(dir); err != nil {
		return nil, err
	}
	f := folder.At(dir, vfs.OS)
	if !f.IsCrawl() && !f.HasOutputs() {
		return nil, folder.NoCrawlError(dir)
	}
	if f.IsNodes() {
		return nil, advice.Usage("%s belongs to a node of a cluster, which has a part of its state: move the folder "+
			"away and start the node again: it joins as a new node, and the others take over the old one's data", dir)
	}
	if err := vfs.OS.MkdirAll(f.Path("state")); err != nil {
		return nil, err
	}
	if err := f.Lock(ctx, func(err error) { o.Report(err.Error()) }); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := &repairer{Options: o, open: open, Folder: f, work: f.Path("state", repairedName), result: &Result{}}
	return r.result, r.run(ctx)
}

type repairer struct {
	Options
	open Openers
	*folder.Folder
	work     string   // the work folder
	restored []byte   // settings to be restored
	orphans  []string // indexes without a WARC file
	result   *Result
}

func (r *repairer) run(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(r.work, readyName)); err == nil {
		if r.DryRun {
			return fmt.Errorf("an earlier repair was interrupted while it moved files into place: first run the command " +
				"without --dry-run")
		}
		r.Report("an earlier repair was interrupted while it moved files into place: completing it first")
		if err := r.install(); err != nil {
			return err
		}
	}
	if err := r.checkSettings(); err != nil {
		return err
	}
	if err := r.FormatFault(); err != nil {
		r.Report(filepath.ToSlash(folder.FormatName) + " is damaged: it is rewritten")
	}
	if !r.DryRun {
		if err := r.WriteFormat(); err != nil {
			return err
		}
	}
	whole, err := r.diagnose(ctx)
	if err != nil {
		return err
	}
	if whole && r.restored == nil {
		r.result.Intact = true
		return nil
	}
	if whole {
		return r.restoreSettings()
	}
	if err := os.RemoveAll(r.work); err != nil {
		return err
	}
	if err := r.build(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(r.work))
	}
	if r.DryRun {
		return os.RemoveAll(r.work)
	}
	return r.install()
}

func (r *repairer) build(ctx context.Context) error {
	if err := r.gather(); err != nil {
		return err
	}
	if err := r.clean(ctx); err != nil {
		return err
	}
	j, err := r.makeJob()
	if err != nil {
		return err
	}
	made, err := rebuild.State(ctx, rebuild.Config{From: r.Folder, Into: r.work, Job: j, Moved: r.Moved, Report: r.Report,
		Open: r.open.Crawl})
	r.result.Pages, r.result.Known, r.result.Waiting = made.Pages, made.Known, made.Waiting
	return err
}
