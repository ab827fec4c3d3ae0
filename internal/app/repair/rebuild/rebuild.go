// Package rebuild reconstructs the state of a crawl from its record files, which must be consistent. First, it marks
// fetched and filtered URLs as known. Then it admits all possibly pending URLs as a crawl does, which drops known URLs.
// These come from the links in the pages' metadata records and from the readable parts of the old state.
package rebuild

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// Config configures a rebuild.
type Config struct {
	From   *folder.Folder // the crawl, whose old state is read as far as possible
	Into   string         // the folder with the consistent record files, and for the new state
	Job    *job.Job       // the crawl's job
	Moved  bool           // missing WARC files were moved on purpose
	Report func(string)   // receives messages about lost data
	// Open opens the rebuilt crawl in a folder.
	Open func(*job.Job, *folder.Folder) (Crawl, error)
}

// A Crawl has a rebuilt state: fetched and excluded URLs are known, and the queues are empty.
type Crawl interface {
	// Reenter admits the URLs that f passes to the Reentry.
	Reenter(ctx context.Context, f func(*crawl.Reentry) error) error
	URLsKnown() int
	URLsWaiting() int
	Close() error
}

// Counts are the counts of a rebuilt state.
type Counts struct {
	Pages          int64
	Known, Waiting int // URLs
}

// State rebuilds a state.
func State(ctx context.Context, cfg Config) (Counts, error) {
	j := *cfg.Job
	j.Dir, j.Listener, j.Fresh, j.File, j.Moved = cfg.Into, crawl.Listener{}, false, nil, j.Moved || cfg.Moved
	b := &rebuilding{Config: cfg, job: &j, state: &recovery.Rebuilt{Stats: stats.New()},
		isScopeSeed: weburl.NewSet(), places: map[uint64]placed{}, recrawls: map[uint64]bool{}, nofollow: map[uint64]bool{},
		nofollowPages: map[string]bool{}, skipped: map[uint64]bool{}}
	if err := b.known(ctx); err != nil {
		return b.counts, err
	}
	return b.counts, b.reenter(ctx)
}

// A rebuilding is a rebuild in progress.
type rebuilding struct {
	Config
	job           *job.Job
	counts        Counts
	state         *recovery.Rebuilt
	scopeSeeds    []frontier.Item // from visits and the old state
	isScopeSeed   *weburl.Set
	places        map[uint64]placed // pages by location of their record
	recrawls      map[uint64]bool   // visits after the first one of a URL
	nofollow      map[uint64]bool   // URLs found only by nofollow links
	nofollowPages map[string]bool   // pages with a nofollow directive
	skipped       map[uint64]bool
	failed        []frontier.Item // possibly pending

	last      string // ID of the response whose metadata record follows
	lastDepth int32
}

// A placed is the data of a record from pages.jsonl.
type placed struct {
	depth  int32
	digest [20]byte // of the decoded body
}

func (b *rebuilding) at(elem ...string) string {
	return filepath.Join(append([]string{b.Into}, elem...)...)
}

// known writes the known URLs: fetched and excluded ones.
func (b *rebuilding) known(ctx context.Context) (err error) {
	cfg := seen.Config{Memory: b.job.MemoryBudget() / 4, Depths: true, Now: b.job.Crawl.Now}
	s := b.state
	if s.Seen, err = seen.Open(vfs.OS, b.at("state", "seen"), cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Seen.Close()) }()
	if s.Digests, err = seen.OpenDigests(vfs.OS, b.at("state", "digests"), cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Digests.Close()) }()
	if s.Frontier, _, err = frontier.Open(frontier.Config{Disk: vfs.OS, Dir: b.at("state", "frontier"),
		Slices: b.job.Frontier.Slices}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Frontier.Close()) }()
	for _, read := range []func(context.Context) error{b.pages, b.visits, b.records, b.skips, b.readDeferred, b.readRobots,
		b.readOldScopeSeeds, b.marks} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	b.counts.Pages = s.Stats.Pages()
	return s.Write(ctx)
}

// marks records the lengths of all record files.
func (b *rebuilding) marks(context.Context) error {
	for _, name := range []string{"pages.jsonl", "crawl.log", "text.jsonl", "fields.jsonl", "skipped.jsonl",
		statefile.RobotsAnswersName, filepath.Join("state", "deferred"), filepath.Join("state", "roots")} {
		if size, err := vfs.OS.Size(b.at(name)); err == nil {
			b.state.Marks = append(b.state.Marks, store.Mark{Name: name, Length: size})
		}
	}
	names, err := vfs.OS.List(b.at("warc"))
	for _, name := range names {
		if size, err := vfs.OS.Size(b.at("warc", name)); err == nil && strings.Contains(name, ".warc") {
			b.state.Marks = append(b.state.Marks, store.Mark{Name: "warc/" + name + ".open", Length: size})
		}
	}
	return err
}
