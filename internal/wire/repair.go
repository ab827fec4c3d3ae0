package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/advice"
	"kumo/internal/folder"
	"kumo/internal/inspect"
	"kumo/internal/repair"
	"kumo/internal/settings"
	"kumo/internal/statefile"
	"kumo/internal/stats"
	"kumo/internal/verify"
	"kumo/internal/vfs"
)

// RepairOptions say how a repair goes.
type RepairOptions struct {
	DryRun bool
	Moved  bool                 // WARC files that are not here were moved on purpose
	Say    func(string)         // is told what is found and done
	Job    func() (*Job, error) // the crawl's job, by the settings that its folder has
	Now    func() time.Time
}

// A Repaired is what came of a repair.
type Repaired struct {
	Whole   bool   `json:"whole"`             // nothing was to be done
	Only    bool   `json:"only_settings"`     // were to be put back: all else is as it should be
	Damaged string `json:"damaged,omitempty"` // the folder where the files are that were not whole, or are replaced
	// that were listed or had records, robots.txt among them, and are not kept: their URLs are fetched again
	Visits  int64 `json:"visits_lost"`
	Lines   int   `json:"lines_mended"` // of lists and indexes, that other files have told
	Pages   int64 `json:"pages"`        // that are kept
	Waiting int   `json:"urls_waiting"`
	Known   int   `json:"urls_known"`
}

const (
	repairedName = "repaired" // in the folder state: where a repair builds what it will put in place
	readyName    = "ready"    // there: all is built, and is being put in place
	movedName    = "moved"    // there: what is replaced has been moved away
)

// Repair makes a crawl that can go on of the one in dir, from what is whole there: records whose visits are whole in
// all files are kept, and the state is made anew from them and from what can be read of the old one. What is replaced
// is moved aside, and nothing is removed.
func Repair(ctx context.Context, dir string, o RepairOptions) (_ *Repaired, err error) {
	f := folder.At(dir, vfs.OS)
	if !f.IsCrawl() && !f.HasOutputs() {
		return nil, nothingIn(dir)
	}
	if f.IsNodes() {
		return nil, advice.Usage("%s belongs to a node of a cluster, whose state is in the cluster, too: move the folder "+
			"away and start the node anew: "+
			"it joins as a new one, and the others take over what the old one had", dir)
	}
	if err := vfs.OS.MkdirAll(f.Path("state")); err != nil {
		return nil, err
	}
	if err := f.Hold(ctx, func(err error) { o.Say(err.Error()) }); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := &repairer{RepairOptions: o, Folder: f, work: f.Path("state", repairedName), result: &Repaired{}}
	return r.result, r.run(ctx)
}

// A repairer is one repair.
type repairer struct {
	RepairOptions
	*folder.Folder
	work     string   // where it builds
	restored []byte   // settings that are to be put back
	orphans  []string // indexes of WARC files that are not here
	result   *Repaired
}

func (r *repairer) run(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(r.work, readyName)); err == nil {
		if r.DryRun {
			return fmt.Errorf("an earlier repair was broken off while it put files in place: give the command without " +
				"--dry-run first")
		}
		r.Say("an earlier repair was broken off while it put files in place: that goes on first")
		if err := r.place(); err != nil {
			return err
		}
	}
	if err := r.settings(); err != nil {
		return err
	}
	whole, err := r.diagnose(ctx)
	if err != nil {
		return err
	}
	if whole && r.restored == nil {
		r.result.Whole = true
		return nil
	}
	if whole {
		return r.putBack()
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
	return r.place()
}

// settings finds out whether the settings are as kumo wrote them, and makes them so for a while, so that the job can be
// made.
func (r *repairer) settings() error {
	text, err := os.ReadFile(r.Path(settings.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, ok := settings.ReadKept(r.Path("state", settings.Name))
	if ok && string(kept) != string(text) {
		r.restored = kept
		r.Say(settings.Name + " is not as kumo wrote it: it is put back")
		return nil
	}
	if _, bad := settings.Read(r.Path(settings.Name)); !ok && (err != nil || bad != nil) {
		return advice.Usage("%s, which has the settings of the crawl, cannot be read, and neither can its copy in state: "+
			"write it anew, with the settings that "+
			"the crawl was begun with (scope, depth and the like); kumo crawl --dry-run writes none, but says them",
			r.Path(settings.Name))
	}
	return nil
}

// putBack puts the settings back, of which alone something was wrong.
func (r *repairer) putBack() error {
	r.result.Only = true
	if r.DryRun {
		return nil
	}
	r.result.Damaged = r.damagedName()
	if err := r.moveAway([]string{settings.Name}); err != nil {
		return err
	}
	return r.Replace(settings.Name, r.restored)
}

func (r *repairer) damagedName() string {
	return r.Path("state", "damaged-"+r.Now().UTC().Format("20060102T150405Z"))
}

// diagnose says what is wrong, if anything is.
func (r *repairer) diagnose(ctx context.Context) (whole bool, err error) {
	parts := verify.Parts{Dir: r.Dir, Disk: vfs.OS, View: vfs.NewOverlay(vfs.OS)}
	o := &onlooker{folder: r.Folder, parts: parts}
	o.open()
	said, faults := map[string]int{}, 0
	cfg := verify.Config{Moved: r.Moved, Fault: func(f verify.Fault) {
		if f.Remedy = ""; said[f.Check] < saidFaults {
			r.Say(f.Check + ": " + f.String())
		}
		said[f.Check]++
		faults++
	}}
	report, err := verify.Run(ctx, o.parts, cfg)
	r.counts(report)
	if err = errors.Join(err, o.close()); err != nil {
		return false, err
	}
	for check, n := range said {
		if n > saidFaults {
			r.Say(fmt.Sprintf("%s: %s more", check, stats.Count(n-saidFaults, "faults")))
		}
	}
	return faults == 0, nil
}

// counts takes over what a check has counted: it is true where nothing is wrong.
func (r *repairer) counts(report *verify.Report) {
	for _, c := range report.Checks {
		for _, n := range c.Counts {
			switch c.Name + ": " + n.Unit {
			case "pages: pages":
				r.result.Pages = n.N
			case "seen: URLs":
				r.result.Known = int(n.N)
			case "frontier: URLs waiting":
				r.result.Waiting = int(n.N)
			}
		}
	}
}

const saidFaults = 10 // of each check

// build makes all that is to be put in place, in a folder of its own.
func (r *repairer) build(ctx context.Context) error {
	if err := r.gather(); err != nil {
		return err
	}
	if err := r.clean(ctx); err != nil {
		return err
	}
	b := &rebuilding{repairer: r}
	return b.build(ctx)
}

// gather brings the record files together. Those that never change have a second name there; of those that were still
// open all is taken that is there.
func (r *repairer) gather() error {
	c := folder.NewCopy(r.Folder, r.work, func(inspect.Copied) bool { return true })
	if err := vfs.OS.MkdirAll(filepath.Join(r.work, "warc")); err != nil {
		return err
	}
	names, err := vfs.OS.List(r.Path("warc"))
	if err != nil {
		return err
	}
	here := map[string]bool{} // WARC files, by what their indexes' names begin with
	for _, name := range names {
		if stem, _, isWARC := strings.Cut(name, ".warc"); isWARC {
			here[stem] = true
		}
	}
	for _, name := range names {
		final, open := strings.CutSuffix(name, ".open")
		if stem, isIndex := strings.CutSuffix(final, ".cdxj"); isIndex && !here[stem] && !r.Moved {
			r.orphans = append(r.orphans, filepath.Join("warc", name))
			continue
		}
		isWARC := strings.HasSuffix(final, ".warc.gz") || strings.HasSuffix(final, ".warc.zst")
		switch {
		case !isWARC && !strings.HasSuffix(final, ".cdxj"):
			continue
		case open:
			if _, err := os.Stat(r.Path("warc", final)); err == nil {
				continue // it was just closed
			}
		}
		name = filepath.Join("warc", name)
		if !open {
			err = c.Link(name)
		} else if err = c.File(name); err == nil {
			err = vfs.OS.Rename(filepath.Join(r.work, name), filepath.Join(r.work, "warc", final))
		}
		if err != nil {
			return err
		}
	}
	for _, name := range []string{"pages.jsonl", "crawl.log", "text.jsonl"} {
		if err := c.Link(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range []string{"skipped.jsonl", statefile.RobotsAnswersName} { // to which lines will be added
		if err := c.File(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

const maxRounds = 20

// clean takes out of the record files what is not whole in all of them, until they agree.
func (r *repairer) clean(ctx context.Context) error {
	drop, taken := repair.NewDrop(), map[string]int64{}
	for round := range maxRounds {
		done, err := repair.Clean(r.work, drop, r.Moved)
		if err != nil {
			return err
		}
		for url, n := range done.Visits {
			taken[url] += n
		}
		mended, err := repair.Mend(r.work)
		if err != nil {
			return err
		}
		r.result.Lines += mended
		drop = repair.NewDrop()
		lines := repair.NewDrop() // of which new ones may be made by what the other files say
		n := 0
		cfg := verify.Config{Moved: r.Moved, Fault: func(f verify.Fault) {
			if f.Offset < 0 && f.URL == "" || strings.HasPrefix(f.File, "state/") || f.File == "report.json" ||
				f.File == settings.Name {
				return
			}
			n++
			if f.URL != "" && f.Check != "skipped" {
				drop.URLs[f.URL] = true
			}
			if f.Offset >= 0 {
				drop.At(f.File, f.Offset)
			}
			if f.Offset >= 0 && (f.File == "pages.jsonl" || f.File == "crawl.log" || strings.HasSuffix(f.File, ".cdxj")) {
				lines.At(f.File, f.Offset)
			}
		}}
		if _, err := verify.Run(ctx, verify.Parts{Dir: r.work, Disk: vfs.OS, View: vfs.NewOverlay(vfs.OS)}, cfg); err != nil {
			return err
		}
		if n == 0 {
			r.result.Visits, err = countLost(r.Dir, r.work, taken)
			return err
		}
		if round == 0 && len(lines.Places) > 0 {
			drop = lines
		}
	}
	return errors.New("the record files do not come to agree: this is a fault of kumo")
}

// stateNames are the files of the state that are replaced.
func (r *repairer) stateNames() []string {
	names := []string{filepath.Join("state", "deferred"), filepath.Join("state", "roots"), statefile.RobotsAnswersName}
	for _, room := range []string{"frontier", "seen", "digests", "robots", "journal", "abandoned"} {
		here, _ := vfs.OS.List(r.Path("state", room))
		for _, name := range here {
			names = append(names, filepath.Join("state", room, name))
		}
	}
	return names
}

// place puts in place what was built. Where it is broken off, another repair goes on with it.
func (r *repairer) place() error {
	mark := func(name, text string) error { return folder.At(r.work, vfs.OS).Replace(name, []byte(text)) }
	ready, err := os.ReadFile(filepath.Join(r.work, readyName))
	if errors.Is(err, fs.ErrNotExist) {
		if r.restored != nil {
			if err := folder.At(r.work, vfs.OS).Replace(settings.Name, r.restored); err != nil {
				return err
			}
		}
		if err := r.leaveAlone(); err != nil {
			return err
		}
		away, err := r.away()
		if err != nil {
			return err
		}
		ready, err = json.Marshal(placement{r.damagedName(), away})
		if err != nil {
			return err
		}
		if err := mark(readyName, string(ready)); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	var p placement
	if err := json.Unmarshal(ready, &p); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(r.work, readyName), err)
	}
	r.result.Damaged = p.Damaged
	if _, err := os.Stat(filepath.Join(r.work, movedName)); err != nil {
		if err := r.moveAway(p.Away); err != nil {
			return err
		}
		if err := mark(movedName, "\n"); err != nil {
			return err
		}
	}
	if err := r.moveIn(); err != nil {
		return err
	}
	return os.RemoveAll(r.work)
}

// A placement says what goes where.
type placement struct {
	Damaged string
	Away    []string
}

// leaveAlone takes out of what was built the files that are as they were.
func (r *repairer) leaveAlone() error {
	return r.built(func(name string) error {
		was, err := os.Stat(r.Path(name))
		if err != nil {
			return nil //nolint:nilerr // it is new
		}
		is, err := os.Stat(filepath.Join(r.work, name))
		if err == nil && os.SameFile(was, is) {
			err = os.Remove(filepath.Join(r.work, name))
		}
		return err
	})
}

// away are the files that are to be moved away.
func (r *repairer) away() ([]string, error) {
	names := append(r.stateNames(), "report.json", "index.cdxj")
	names = append(names, r.orphans...)
	open, err := vfs.OS.List(r.Path("warc"))
	if err != nil {
		return nil, err
	}
	for _, name := range open {
		if strings.HasSuffix(name, ".open") {
			names = append(names, filepath.Join("warc", name))
		}
	}
	err = r.built(func(name string) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// built calls f with the files that were built.
func (r *repairer) built(f func(name string) error) error {
	return filepath.WalkDir(r.work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(r.work, path)
		if err != nil || name == readyName || name == movedName {
			return err
		}
		return f(name)
	})
}

func (r *repairer) moveAway(names []string) error {
	for _, name := range names {
		to := filepath.Join(r.result.Damaged, name)
		if err := vfs.OS.MkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		if err := os.Rename(r.Path(name), to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.syncAll()
}

func (r *repairer) moveIn() error {
	err := r.built(func(name string) error {
		if err := vfs.OS.MkdirAll(filepath.Dir(r.Path(name))); err != nil {
			return err
		}
		return vfs.OS.Rename(filepath.Join(r.work, name), r.Path(name))
	})
	return errors.Join(err, r.syncAll())
}

// syncAll makes durable what was moved from and to the crawl's folders.
func (r *repairer) syncAll() (err error) {
	for _, dir := range []string{"", "warc", "state", "state/journal", "state/seen", "state/digests", "state/frontier"} {
		if _, there := os.Stat(r.Path(dir)); there == nil {
			err = errors.Join(err, vfs.OS.SyncDir(r.Path(dir)))
		}
	}
	return err
}
