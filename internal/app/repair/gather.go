package repair

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/repair/records"
	"kumo/internal/app/verify"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/state/statefile"
)

// gather links or copies the record files to the work folder. Files that never change are hard-linked. Files that were
// still open are copied completely, including uncommitted data.
func (r *repairer) gather() error {
	c := folder.NewCopy(r.Folder, r.work, func(inspect.Copied) bool { return true })
	if err := r.gatherWARCs(c); err != nil {
		return err
	}
	for _, name := range []string{"pages.jsonl", "crawl.log", "text.jsonl", "fields.jsonl"} {
		if err := c.Link(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range []string{"skipped.jsonl", statefile.RobotsAnswersName} { // lines will be appended to these
		if err := c.File(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// gatherWARCs gathers WARC files and their indexes, all under their final names.
func (r *repairer) gatherWARCs(c *folder.Copy) error {
	if err := vfs.OS.MkdirAll(filepath.Join(r.work, "warc")); err != nil {
		return err
	}
	names, err := vfs.OS.List(r.Path("warc"))
	if err != nil {
		return err
	}
	here := map[string]bool{} // stems of WARC files
	for _, name := range names {
		if stem, _, isWARC := strings.Cut(name, ".warc"); isWARC {
			here[stem] = true
		}
	}
	for _, name := range names {
		final, open := strings.CutSuffix(name, ".open")
		stem, isIndex := strings.CutSuffix(final, ".cdxj")
		switch {
		case isIndex && !here[stem] && !r.Moved:
			r.orphans = append(r.orphans, filepath.Join("warc", name))
		case !records.IsWARC(final) && !isIndex:
		case !open:
			err = c.Link(filepath.Join("warc", name))
		case slices.Contains(names, final): // just closed
		default:
			if err = c.File(filepath.Join("warc", name)); err == nil {
				err = vfs.OS.Rename(filepath.Join(r.work, "warc", name), filepath.Join(r.work, "warc", final))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const maxRounds = 20

// clean removes entries that are not consistent over all record files, until none are left.
func (r *repairer) clean(ctx context.Context) error {
	drop, taken := records.NewDrop(), map[string]int64{}
	for round := range maxRounds {
		done, err := records.Clean(r.work, drop, r.Moved)
		if err != nil {
			return err
		}
		for url, n := range done.Visits {
			taken[url] += n
		}
		mended, err := records.Mend(r.work)
		if err != nil {
			return err
		}
		r.result.Lines += mended
		all, lines, err := r.findDamage(ctx)
		if err != nil {
			return err
		}
		if all == nil {
			r.result.Visits, err = records.Lost(r.Dir, r.work, taken)
			return err
		}
		if drop = all; round == 0 && len(lines.Places) > 0 {
			drop = lines
		}
	}
	return errors.New("record files still disagree after repair; please report this bug")
}

// findDamage returns all inconsistent entries of the record files, nil if there are none; and the lines among them that
// can be rebuilt from the other files.
func (r *repairer) findDamage(ctx context.Context) (all, lines *records.Drop, err error) {
	drop, lines := records.NewDrop(), records.NewDrop()
	cfg := verify.Config{Moved: r.Moved, Fault: func(f verify.Fault) {
		if f.Offset < 0 && f.URL == "" || strings.HasPrefix(f.File, "state/") || f.File == "report.json" ||
			f.File == settings.Name {
			return
		}
		all = drop
		if f.URL != "" && f.Check != "skipped" {
			drop.URLs[f.URL] = true
		}
		if f.Offset < 0 {
			return
		}
		drop.Add(f.File, f.Offset)
		if f.File == "pages.jsonl" || f.File == "crawl.log" || strings.HasSuffix(f.File, ".cdxj") {
			lines.Add(f.File, f.Offset)
		}
	}}
	_, err = verify.Run(ctx, verify.Parts{Dir: r.work, Disk: vfs.OS, View: vfs.NewOverlay(vfs.OS)}, cfg)
	return all, lines, err
}
