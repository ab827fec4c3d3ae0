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

// Options say how a repair goes.
type Options struct {
	DryRun bool
	Moved  bool                     // WARC files that are not here were moved on purpose
	Report func(string)             // is told what is found and done
	Job    func() (*job.Job, error) // the crawl's job, by the settings that its folder has
	Now    func() time.Time
}

// Openers open what a repair works on.
type Openers struct {
	// View opens what can be opened of a crawl, on a disk that keeps all changes to itself.
	View func(*folder.Folder) (p verify.Parts, done func() error)
	// Crawl is rebuild.Config's Open.
	Crawl func(*job.Job, *folder.Folder) (rebuild.Crawl, error)
}

// A Result is what came of a repair.
type Result struct {
	Intact       bool   `json:"whole"`             // nothing was to be done
	OnlySettings bool   `json:"only_settings"`     // were to be put back: all else is as it should be
	Damaged      string `json:"damaged,omitempty"` // the folder where the files are that were not whole, or are replaced
	// that were listed or had records, robots.txt among them, and are not kept: their URLs are fetched again
	Visits  int64 `json:"visits_lost"`
	Lines   int   `json:"lines_mended"` // of lists and indexes, that other files have told
	Pages   int64 `json:"pages"`        // that are kept
	Waiting int   `json:"urls_waiting"`
	Known   int   `json:"urls_known"`
}

// repairedName is the folder in the folder state where a repair builds what it will put in place.
const repairedName = "repaired"

// Run makes a crawl that can go on of the one in dir, from what is whole there: records whose visits are whole in
// all files are kept, and the state is made anew from them and from what can be read of the old one. What is replaced
// is moved aside, and nothing is removed.
func Run(ctx context.Context, dir string, o Options, open Openers) (_ *Result, err error) {
	if err := folder.CheckFormat(dir); err != nil {
		return nil, err
	}
	f := folder.At(dir, vfs.OS)
	if !f.IsCrawl() && !f.HasOutputs() {
		return nil, folder.NoCrawlError(dir)
	}
	if f.IsNodes() {
		return nil, advice.Usage("%s belongs to a node of a cluster, whose state is in the cluster, too: move the folder "+
			"away and start the node anew: "+
			"it joins as a new one, and the others take over what the old one had", dir)
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
	work     string   // where it builds
	restored []byte   // settings that are to be put back
	orphans  []string // indexes of WARC files that are not here
	result   *Result
}

func (r *repairer) run(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(r.work, readyName)); err == nil {
		if r.DryRun {
			return fmt.Errorf("an earlier repair was broken off while it put files in place: give the command without " +
				"--dry-run first")
		}
		r.Report("an earlier repair was broken off while it put files in place: that goes on first")
		if err := r.install(); err != nil {
			return err
		}
	}
	if err := r.checkSettings(); err != nil {
		return err
	}
	if err := r.FormatFault(); err != nil {
		r.Report(filepath.ToSlash(folder.FormatName) + " is not as kumo wrote it: it is written anew")
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
