package rebuild

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/repair/records"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/seeds"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store/warc"
)

// readOldScopeSeeds reads the scope seeds of the old state: a seed that could not be fetched has no record.
func (b *rebuilding) readOldScopeSeeds(context.Context) error {
	whole, err := statefile.SalvageScopeSeeds(vfs.OS, b.From.Dir, b.Into)
	if err != nil {
		return err
	}
	told, err := b.readOldState(func(frontier.Item) error { return nil }, func(it frontier.Item) {
		if u, err := weburl.Parse(it.URL); err == nil && u.Host() != "" && it.Kind == page.Seed {
			b.addScopeSeed(frontier.Item{URL: it.URL, Seed: it.Seed, Kind: it.Kind, ScopeSeed: true})
		}
	})
	b.lists(told, whole)
	return err
}

// lists restores the positions in files of seeds. If seeds are lost, the files must be read again from the beginning.
func (b *rebuilding) lists(told *recovery.Salvage, whole int64) {
	b.state.Lists = told.Lists
	if whole >= told.ScopeSeedsLength {
		return
	}
	for i := range b.state.Lists {
		l := &b.state.Lists[i]
		l.Taken, l.Offset, l.Done = 0, 0, false
		b.Report(fmt.Sprintf("seeds of %s are lost: supply it again with --input-file", l.Name))
	}
}

// readOldState calls item with the pending URLs of the old journal and queues, as far as they are readable.
func (b *rebuilding) readOldState(item func(it frontier.Item) error, root func(frontier.Item)) (*recovery.Salvage,
	error) {
	var failed error
	s := &recovery.Salvage{ScopeSeed: root, Item: func(it frontier.Item) { failed = errors.Join(failed, item(it)) }}
	view := vfs.NewOverlay(vfs.OS)
	f, note, err := frontier.Open(frontier.Config{Disk: view, Dir: b.From.Path("state", "frontier")})
	if err == nil {
		s.Note(note)
		err = f.Inspector().Walk(frontier.Walker{Damaged: func(error) {},
			Item: func(_ string, it *frontier.Item) error { return item(*it) }})
		if err = errors.Join(err, f.Close()); err != nil {
			return s, err
		}
	}
	_, err = file.Salvage(vfs.OS, b.From.Path("state", "journal"), func(batch []byte) error {
		s.Batch(batch)
		return failed
	})
	return s, err
}

// reenter admits all possibly pending URLs through the crawl's regular admission.
func (b *rebuilding) reenter(ctx context.Context) (err error) {
	seeds, err := seeds.Parse(b.job.Seeds)
	if err != nil {
		return err
	}
	c, err := b.Open(b.job, folder.At(b.Into, vfs.OS))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Reenter(ctx, func(r *crawl.Reentry) error { return b.feed(ctx, seeds, r) }); err != nil {
		return err
	}
	b.counts.Known, b.counts.Waiting = c.URLsKnown(), c.URLsWaiting()
	return nil
}

func (b *rebuilding) feed(ctx context.Context, seeds []weburl.URL, r *crawl.Reentry) error {
	if err := r.Seeds(ctx, seeds); err != nil {
		return err
	}
	for i := range b.scopeSeeds {
		if err := r.Root(ctx, &b.scopeSeeds[i]); err != nil {
			return err
		}
	}
	if err := b.eachRecord(ctx, func(name string, rec *warc.Record) error {
		return b.links(ctx, r, name, rec)
	}); err != nil {
		return err
	}
	item := func(it frontier.Item) error {
		if it.Robots != "" {
			return nil
		}
		return r.Item(ctx, &it)
	}
	if _, err := b.readOldState(item, func(frontier.Item) {}); err != nil {
		return err
	}
	for i := range b.failed {
		if err := r.Item(ctx, &b.failed[i]); err != nil {
			return err
		}
	}
	whole, err := seen.Salvage(vfs.OS, b.From.Path("state", "seen"), func(url string, state seen.State,
		depth int32) error {
		if state != seen.Known {
			return nil
		}
		return r.Item(ctx, &frontier.Item{URL: url, Depth: depth, Kind: page.Anchor})
	})
	if !whole {
		b.Report("part of the URL database is unreadable: URLs known only there are found again by links")
	}
	return err
}

var sitemapLine = regexp.MustCompile(`(?im)^[ \t]*sitemap[ \t]*:[ \t]*(\S+)`)

// links admits the links in a page's metadata record, and the sitemaps named in a robots.txt.
func (b *rebuilding) links(ctx context.Context, r *crawl.Reentry, name string, rec *warc.Record) error {
	url := rec.Fields["WARC-Target-URI"]
	switch {
	case rec.BeginsVisit():
		b.last, b.lastDepth = rec.ID(), 0
		at, isPage := b.places[records.Key(name, rec.Offset)]
		if b.lastDepth = at.depth; isPage || !isRobots(url) {
			return nil
		}
		u, err := weburl.Parse(url)
		if err != nil {
			return nil //nolint:nilerr // nothing comes of it
		}
		pg := &page.Page{}
		for _, m := range sitemapLine.FindAllSubmatch(rec.Block, 1000) {
			if to, err := u.Resolve(string(m[1])); err == nil {
				pg.Links = append(pg.Links, page.Link{URL: to.Canonical().String(), Kind: page.Sitemap})
			}
		}
		return r.Page(ctx, &frontier.Item{URL: url}, pg)
	case rec.Fields["WARC-Type"] == "metadata":
		if rec.ResponseID() != b.last {
			return nil
		}
		it := frontier.Item{URL: url, Depth: b.lastDepth}
		pg := &page.Page{}
		pg.Robots.NoFollow = b.nofollowPages[url]
		for line := range strings.SplitSeq(string(rec.Block), "\r\n") {
			b.metadata(line, &it, pg)
		}
		if !b.hasPageList() {
			it.Depth = int32(strings.Count(it.Path, "L"))
		}
		it.ScopeSeed = strings.Trim(it.Path, "R") == "" && (it.Path != "" || it.From == "")
		return r.Page(ctx, &it, pg)
	}
	return nil
}

func (b *rebuilding) metadata(line string, it *frontier.Item, pg *page.Page) {
	name, value, _ := strings.Cut(line, ": ")
	switch name {
	case "seed":
		it.Seed = value
	case "via":
		it.From = value
	case "hopsFromSeed":
		it.Path = value
	case "outlink":
		f := strings.SplitN(value, " ", 3)
		kind, known := page.Kind(0), false
		if len(f) == 3 {
			kind, known = page.ParseKind(f[2])
		}
		if !known {
			return
		}
		if kind == page.Listed {
			it.Kind = page.Sitemap
		}
		l := page.Link{URL: f[0], Kind: kind}
		if b.nofollow[records.Key(l.URL)] {
			l.NoFollow, l.Rel = true, "nofollow"
		}
		pg.Links = append(pg.Links, l)
	}
}
