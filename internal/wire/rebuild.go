package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kumo/internal/crawl"
	"kumo/internal/folder"
	"kumo/internal/frontier"
	"kumo/internal/journal"
	"kumo/internal/journal/file"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/settings"
	"kumo/internal/stats"
	"kumo/internal/store"
	"kumo/internal/store/crawllog"
	"kumo/internal/store/jsonl"
	"kumo/internal/store/warc"
	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// A rebuilding makes a state of record files that agree, in the folder where they were brought together. First what was fetched or left out
// is made known; then all that may wait goes through the crawl's door, which drops what is known: links of pages, by their metadata
// records, and what can be read of the old state.
type rebuilding struct {
	*repairer
	job      *Job
	state    *crawl.Rebuilt
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
	s := &crawl.Rebuilt{Stats: stats.New()}
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
	for _, read := range []func(context.Context) error{b.pages, b.visits, b.records, b.skips, b.asides, b.answers, b.oldRoots, b.marks} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	b.result.Pages = s.Stats.Pages()
	return s.Write(ctx)
}

func (b *rebuilding) memory() int64 { return b.job.MemoryBudget() / 4 }

// eachLine calls f with the lines of a file.
func (b *rebuilding) eachLine(ctx context.Context, name string, f func(line []byte) error) error {
	src, err := os.Open(b.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	in := bufio.NewReaderSize(src, 256<<10)
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if n%1000 == 0 {
			err = errors.Join(err, ctx.Err(), b.state.Room(ctx))
		}
		if err == nil {
			err = f(bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

func (b *rebuilding) pages(ctx context.Context) error {
	return b.eachLine(ctx, "pages.jsonl", func(line []byte) error {
		p, err := jsonl.ParsePage(line)
		if err != nil {
			return err
		}
		at := placed{depth: int32(p.Depth)}
		copyDigest(at.digest[:], p.Digest)
		b.places[key(p.WARC, p.Offset)] = at
		if p.Recrawl != "" {
			b.recrawls[key(p.URL, p.Time.UnixMilli())] = true
		}
		if asks := strings.ToLower(p.Robots); strings.Contains(asks, "nofollow") || strings.Contains(asks, "none") {
			b.asking[p.URL] = true
		}
		b.state.Seen.Replay(p.Time)
		b.state.Seen.Know([]seen.URL{{URL: p.URL, Depth: int32(p.Depth), State: seen.Known}})
		return nil
	})
}

func (b *rebuilding) visits(ctx context.Context) error {
	var sums stats.Sums
	answered := map[uint64]bool{} // URLs
	err := b.eachLine(ctx, "crawl.log", func(line []byte) error {
		e, err := crawllog.Parse(line)
		if err != nil {
			return err
		}
		if e.Has("robots") {
			sums.Robots++
			sums.ExtraBytes += e.Size
			return nil
		}
		if e.Status <= 0 {
			return nil
		}
		u, err := weburl.Parse(e.URL)
		if err != nil {
			return err
		}
		m := seen.Meta{Fetched: e.Begin.Truncate(time.Second), Status: e.Status}
		switch k := key(e.URL); {
		case e.Status == http.StatusNotModified && answered[k]: // the page is as it was
			m.Status = http.StatusOK
		case e.Status >= http.StatusBadRequest && answered[k]: // what the page was is to be known when it is back
		default:
			copyDigest(m.Digest[:], e.Digest)
			answered[k] = true
		}
		b.state.Seen.Replay(e.Begin)
		b.state.Seen.Know([]seen.URL{{URL: e.URL, Depth: int32(strings.Count(e.Path, "L")), State: seen.Known}})
		b.state.Seen.Note(e.URL, m)
		b.state.Stats.Visited(stats.Visit{Host: u.Host(), Status: e.Status, Type: e.MIME, Bytes: e.Size, Took: e.Took,
			Duplicate: e.Has("duplicate:notModified") || e.Has("duplicate:digest") && e.Status/100 == 2, Recrawl: b.recrawls[key(e.URL, e.Begin.UnixMilli())]})
		b.root(e.URL, e.Seed, e.Path, e.Via)
		return nil
	})
	b.state.Seen.Replay(time.Time{})
	b.state.Stats.Restore(sums)
	return err
}

// root adds a URL to the crawl's roots if its path says that it is one: a seed, or where one redirects to.
func (b *rebuilding) root(url, seed, path, via string) {
	it := frontier.Item{URL: url, Seed: seed, Kind: page.Redirect, Root: true}
	switch {
	case path == "" && via == "":
		it.Kind = page.Seed
	case path == "" || strings.Trim(path, "R") != "":
		return
	}
	b.addRoot(it)
}

func (b *rebuilding) addRoot(it frontier.Item) {
	if b.isRoot.Add(it.URL) {
		b.roots = append(b.roots, it)
	}
}

func copyDigest(to []byte, text string) {
	if sum, err := base32.StdEncoding.DecodeString(strings.TrimPrefix(text, "sha1:")); err == nil && len(sum) == len(to) {
		copy(to, sum)
	}
}

// eachRecord calls f with the records of all WARC files.
func (b *rebuilding) eachRecord(ctx context.Context, f func(name string, rec *warc.Record) error) error {
	names, err := vfs.OS.List(b.at("warc"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".warc.gz") && !strings.HasSuffix(name, ".warc.zst") {
			continue
		}
		if err := b.eachRecordOf(ctx, name, f); err != nil {
			return fmt.Errorf("warc/%s: %w", name, err)
		}
	}
	return nil
}

func (b *rebuilding) eachRecordOf(ctx context.Context, name string, f func(name string, rec *warc.Record) error) error {
	size, err := vfs.OS.Size(b.at("warc", name))
	if err != nil {
		return err
	}
	src, err := vfs.OS.OpenAt(b.at("warc", name))
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is only read
	in, err := warc.NewReader(src, size, name)
	if err != nil {
		return err
	}
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err == nil {
			err = f(name, rec)
		}
		if err != nil {
			return err
		}
	}
}

// records makes known what only the answers themselves say: their digests, and by what a server is asked whether they have changed.
func (b *rebuilding) records(ctx context.Context) error {
	n := 0
	answered := map[uint64]bool{} // URLs
	return b.eachRecord(ctx, func(name string, rec *warc.Record) error {
		if n++; n%1000 == 0 {
			if err := b.state.Room(ctx); err != nil {
				return err
			}
		}
		stored := rec.Fields["WARC-Type"] == "response"
		if !stored && (rec.Fields["WARC-Type"] != "revisit" || len(rec.Block) == 0) {
			return nil
		}
		url := rec.Fields["WARC-Target-URI"]
		digest := b.places[key(name, rec.Offset)].digest
		if !b.listed() && !isRobots(url) {
			digest = rec.BodyDigest()
		}
		if digest == [20]byte{} {
			return nil
		}
		if stored {
			if err := b.stored(rec, digest); err != nil {
				return err
			}
		}
		resp, err := rec.Response()
		if err != nil {
			return nil //nolint:nilerr // it has no head to ask
		}
		_ = resp.Body.Close()
		k := key(url)
		if resp.StatusCode >= http.StatusBadRequest && answered[k] {
			return nil
		}
		answered[k] = true
		m := seen.Meta{Digest: digest, ETag: resp.Header.Get("ETag")}
		if modified, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
			m.Modified = modified
		}
		b.state.Seen.Note(url, m)
		return nil
	})
}

// stored makes known a record that has a body, to which revisits may refer.
func (b *rebuilding) stored(rec *warc.Record, digest [20]byte) error {
	at, err := time.Parse(time.RFC3339Nano, rec.Fields["WARC-Date"])
	if _, body, _ := bytes.Cut(rec.Block, []byte("\r\n\r\n")); err != nil || len(body) == 0 {
		return err
	}
	ref := seen.Ref{URL: rec.Fields["WARC-Target-URI"], Time: at, ID: rec.ID()}
	if copyDigest(ref.Chunked[:], rec.Fields["WARC-Payload-Digest"]); ref.Chunked == digest {
		ref.Chunked = [20]byte{}
	}
	b.state.Digests.Put(digest, ref)
	return nil
}

// forGood are the rules by which a URL is left out that no better link brings in.
var forGood = map[string]bool{"robots": true, "clean-param": true, "max-pages-per-host": true, "url": true}

func (b *rebuilding) skips(ctx context.Context) error {
	return b.eachLine(ctx, "skipped.jsonl", func(line []byte) error {
		s, err := jsonl.ParseSkip(line)
		if err != nil {
			return err
		}
		if s.Rule == "failed" {
			b.state.Told = append(b.state.Told, s.URL)
			b.failed = append(b.failed, frontier.Item{URL: s.URL, From: s.From, Depth: int32(s.Depth), Kind: page.Anchor})
			return nil
		}
		b.state.Stats.Skipped(s.Rule)
		b.skipped[key(s.URL)] = true
		u := seen.URL{URL: s.URL, Depth: int32(s.Depth), State: seen.Aside}
		if forGood[s.Rule] {
			u.State = seen.Known
		}
		b.isNoFollow(s.URL, s.Rule)
		b.state.Seen.Know([]seen.URL{u})
		return nil
	})
}

func (b *rebuilding) isNoFollow(url, rule string) {
	if rule == "nofollow" {
		b.nofollow[key(url)] = true
	}
}

// asides keeps of the file of URLs that were set aside what skipped.jsonl does not have.
func (b *rebuilding) asides(context.Context) error {
	skips, err := crawl.SalvageAsides(vfs.OS, b.Dir)
	if err != nil {
		return err
	}
	var kept []page.Skip
	for i := range skips {
		s := &skips[i]
		u, err := weburl.Parse(s.URL)
		if err != nil || u.String() != s.URL || !utf8.ValidString(s.URL) || u.Host() != s.Host || b.skipped[key(s.URL)] {
			continue
		}
		b.isNoFollow(s.URL, s.Rule)
		b.state.Seen.Know([]seen.URL{{URL: s.URL, Depth: int32(s.Depth), State: seen.Aside}})
		kept = append(kept, *s)
	}
	return crawl.WriteAsides(vfs.OS, b.work, kept)
}

// answers keeps the lines that can be read.
func (b *rebuilding) answers(ctx context.Context) error {
	var kept []byte
	err := b.eachLine(ctx, crawl.AnswersName, func(line []byte) error {
		var a crawl.Answer
		if json.Unmarshal(line, &a) == nil && a.Origin != "" {
			kept = append(append(kept, line...), '\n')
		}
		return nil
	})
	if err == nil && kept != nil {
		err = folder.At(b.work, vfs.OS).Replace(crawl.AnswersName, kept)
	}
	return err
}

// oldRoots takes the roots that the old state knows: a seed that could not be fetched is in no record.
func (b *rebuilding) oldRoots(context.Context) error {
	whole, err := crawl.SalvageRoots(vfs.OS, b.Dir, b.work)
	if err != nil {
		return err
	}
	told, err := b.old(func(string, frontier.Item) error { return nil }, func(it frontier.Item) {
		if u, err := weburl.Parse(it.URL); err == nil && u.Host() != "" && it.Kind == page.Seed {
			b.addRoot(frontier.Item{URL: it.URL, Seed: it.Seed, Kind: it.Kind, Root: true})
		}
	})
	b.lists(told, whole)
	return err
}

// lists keeps how far lists of seeds were taken in. Where seeds are lost, the lists are to be given again, from their beginning.
func (b *rebuilding) lists(told *crawl.Salvage, whole int64) {
	b.state.Lists = told.Lists
	if whole >= told.Roots {
		return
	}
	for i := range b.state.Lists {
		l := &b.state.Lists[i]
		l.Taken, l.Offset, l.Done = 0, 0, false
		b.Say(fmt.Sprintf("seeds of %s are lost: give it again with --input-file", l.Name))
	}
}

// old calls item with what the old journal and the old queues say of URLs that wait, as far as they can be read.
func (b *rebuilding) old(item func(host string, it frontier.Item) error, root func(frontier.Item)) (*crawl.Salvage, error) {
	var failed error
	s := &crawl.Salvage{Root: root, Item: func(host string, it frontier.Item) { failed = errors.Join(failed, item(host, it)) }}
	view := vfs.NewOverlay(vfs.OS)
	f, note, err := frontier.Open(frontier.Config{Disk: view, Dir: b.Path("state", "frontier")})
	if err == nil {
		s.Note(note)
		err = f.Walk(frontier.Walker{Bad: func(error) {}, Item: func(host string, it *frontier.Item) error { return item(host, *it) }})
		if err = errors.Join(err, f.Close()); err != nil {
			return s, err
		}
	}
	_, err = file.Salvage(vfs.OS, b.Path("state", "journal"), func(batch []byte) error {
		s.Batch(batch)
		return failed
	})
	return s, err
}

// marks are the lengths of all record files.
func (b *rebuilding) marks(context.Context) error {
	for _, name := range []string{"pages.jsonl", "crawl.log", "text.jsonl", "skipped.jsonl", crawl.AnswersName, filepath.Join("state", "asides"),
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

// reenter lets all that may wait in, through the door of a crawl that begins with what is known.
func (b *rebuilding) reenter(ctx context.Context) (err error) {
	c := &Crawl{Job: b.job, journal: journal.Discard, disk: vfs.OS}
	defer func() { err = errors.Join(err, c.Close()) }()
	b.job.Moved = b.job.Moved || b.Moved
	if err := c.check(); err != nil {
		return err
	}
	c.folder = folder.At(b.work, vfs.OS)
	if err := c.openState(); err != nil {
		return err
	}
	if err := c.assemble(); err != nil {
		return err
	}
	if err := c.engine.Reenter(ctx, func(r *crawl.Reentry) error { return b.feed(ctx, c, r) }); err != nil {
		return err
	}
	c.stores = nil // the engine has closed them
	b.result.Known, b.result.Waiting = c.engine.Known(), c.Frontier.Counts().URLs
	return nil
}

func (b *rebuilding) feed(ctx context.Context, c *Crawl, r *crawl.Reentry) error {
	if err := r.Seeds(ctx, c.seeds); err != nil {
		return err
	}
	for i := range b.roots {
		if err := r.Root(ctx, &b.roots[i]); err != nil {
			return err
		}
	}
	if err := b.eachRecord(ctx, func(name string, rec *warc.Record) error { return b.links(ctx, r, name, rec) }); err != nil {
		return err
	}
	item := func(_ string, it frontier.Item) error {
		if it.Robots != "" {
			return nil
		}
		return r.Item(ctx, &it)
	}
	if _, err := b.old(item, func(frontier.Item) {}); err != nil {
		return err
	}
	for i := range b.failed {
		if err := r.Item(ctx, &b.failed[i]); err != nil {
			return err
		}
	}
	whole, err := seen.Salvage(vfs.OS, b.Path("state", "seen"), func(url string, state seen.State, depth int32) error {
		if state != seen.Known {
			return nil
		}
		return r.Item(ctx, &frontier.Item{URL: url, Depth: depth, Kind: page.Anchor})
	})
	if !whole {
		b.Say("the URL database could not be read in whole: what it alone knew is found again by links")
	}
	return err
}

var sitemapLine = regexp.MustCompile(`(?im)^[ \t]*sitemap[ \t]*:[ \t]*(\S+)`)

// links lets the links of a page in, by its metadata record, and the sitemaps that a robots.txt names.
func (b *rebuilding) links(ctx context.Context, r *crawl.Reentry, name string, rec *warc.Record) error {
	url := rec.Fields["WARC-Target-URI"]
	switch rec.Fields["WARC-Type"] {
	case "response", "revisit", "resource":
		b.last, b.lastDepth = rec.ID(), 0
		at, isPage := b.places[key(name, rec.Offset)]
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
	case "metadata":
		if rec.Answer() != b.last {
			return nil
		}
		it := frontier.Item{URL: url, Depth: b.lastDepth}
		pg := &page.Page{}
		pg.Robots.NoFollow = b.asking[url]
		for line := range strings.SplitSeq(string(rec.Block), "\r\n") {
			b.metadata(line, &it, pg)
		}
		if !b.listed() {
			it.Depth = int32(strings.Count(it.Path, "L"))
		}
		it.Root = strings.Trim(it.Path, "R") == "" && (it.Path != "" || it.From == "")
		return r.Page(ctx, &it, pg)
	}
	return nil
}

// listed reports whether pages.jsonl names what was fetched.
func (b *rebuilding) listed() bool {
	return len(b.job.Formats) == 0 || slices.Contains(b.job.Formats, "jsonl")
}

func isRobots(url string) bool { return strings.HasSuffix(url, "/robots.txt") }

var kindsByName = func() map[string]page.Kind {
	all := map[string]page.Kind{}
	for k := page.Kind(0); k.String() != page.Kind(255).String(); k++ {
		all[k.String()] = k
	}
	return all
}()

// metadata reads a line of a metadata record.
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
			kind, known = kindsByName[f[2]]
		}
		if !known {
			return
		}
		if kind == page.Listed {
			it.Kind = page.Sitemap
		}
		l := page.Link{URL: f[0], Kind: kind}
		if b.nofollow[key(l.URL)] {
			l.NoFollow, l.Rel = true, "nofollow"
		}
		pg.Links = append(pg.Links, l)
	}
}
