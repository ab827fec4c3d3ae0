package wire

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"kumo/internal/crawl"
	"kumo/internal/frontier"
	"kumo/internal/recovery"
	"kumo/internal/seen"
	"kumo/internal/settings"
	"kumo/internal/statefile"
	"kumo/internal/stats"
	"kumo/internal/store"
	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// A rebuilding makes a state of record files that agree, in the folder where they were brought together. First what was
// fetched or left out is made known; then all that may wait goes through the crawl's door, which drops what is known:
// links of pages, by their metadata records, and what can be read of the old state.
type rebuilding struct {
	*repairer
	job      *Job
	state    *recovery.Rebuilt
	roots    []frontier.Item // that visits and the old state tell of
	isRoot   *weburl.Set
	places   map[uint64]placed // pages, by the place of their record
	recrawls map[uint64]bool   // visits that were not a URL's first
	nofollow map[uint64]bool   // URLs that only links led to that are not to be followed
	asking   map[string]bool   // pages that ask for that in their head
	skipped  map[uint64]bool
	failed   []frontier.Item // may wait

	last      string // id of the answer whose metadata follow
	lastDepth int32
}

// A placed page is what pages.jsonl says of a record.
type placed struct {
	depth  int32
	digest [20]byte // of the body, without its chunks
}

func key(parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, parts...)
	return h.Sum64()
}

func (b *rebuilding) build(ctx context.Context) (err error) {
	if b.job, err = b.makeJob(); err != nil {
		return err
	}
	job := *b.job
	job.Dir, job.Listener, job.Fresh, job.File = b.work, crawl.Listener{}, false, nil
	b.job = &job
	b.isRoot, b.places, b.recrawls, b.nofollow = weburl.NewSet(), map[uint64]placed{}, map[uint64]bool{}, map[uint64]bool{}
	b.asking, b.skipped = map[string]bool{}, map[uint64]bool{}
	if err := b.known(ctx); err != nil {
		return err
	}
	return b.reenter(ctx)
}

// makeJob makes the job by the settings that are to be put back, if any are.
func (b *rebuilding) makeJob() (_ *Job, err error) {
	if b.restored != nil {
		name := b.Path(settings.Name)
		was, failed := os.ReadFile(name)
		if err := b.Replace(settings.Name, b.restored); err != nil {
			return nil, err
		}
		defer func() {
			if failed != nil {
				err = errors.Join(err, os.Remove(name))
			} else {
				err = errors.Join(err, b.Replace(settings.Name, was))
			}
		}()
	}
	return b.Job()
}

func (b *rebuilding) at(elem ...string) string {
	return filepath.Join(append([]string{b.work}, elem...)...)
}

// known makes the part of the state that says what was fetched or left out.
func (b *rebuilding) known(ctx context.Context) (err error) {
	cfg := seen.Config{Memory: b.memory(), Depths: true, Now: b.job.Crawl.Now}
	s := &recovery.Rebuilt{Stats: stats.New()}
	b.state = s
	if s.Seen, err = seen.Open(vfs.OS, b.at("state", "seen"), cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Seen.Close()) }()
	if s.Digests, err = seen.OpenDigests(vfs.OS, b.at("state", "digests"), cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Digests.Close()) }()
	if s.Frontier, _, err = frontier.Open(frontier.Config{Disk: vfs.OS, Dir: b.at("state", "frontier")}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Frontier.Close()) }()
	for _, read := range []func(context.Context) error{b.pages, b.visits, b.records, b.skips, b.asides, b.answers,
		b.oldRoots, b.marks} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	b.result.Pages = s.Stats.Pages()
	return s.Write(ctx)
}

func (b *rebuilding) memory() int64 { return b.job.MemoryBudget() / 4 }

// marks are the lengths of all record files.
func (b *rebuilding) marks(context.Context) error {
	for _, name := range []string{"pages.jsonl", "crawl.log", "text.jsonl", "skipped.jsonl", statefile.RobotsAnswersName,
		filepath.Join("state", "deferred"),
		filepath.Join("state", "roots")} {
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
