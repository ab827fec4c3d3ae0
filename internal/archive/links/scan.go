package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/warc"
)

// pageLinks has the links of one visit to a page.
type pageLinks struct {
	url        string
	metadata   string // of the visit's record; "" if they come from crawl.log
	via        *outlink
	src        io.ReaderAt // WARC file; nil if there is none
	name       string
	size       int64
	responseAt int64             // offset of the response record
	texts      map[string]string // anchor texts by URL; nil until a query needs them
}

// An outlink is a link in a metadata record.
type outlink struct {
	raw  string // canonical URL in the page
	to   string // URL that the crawl requests
	kind string
}

// anchorText returns the link's text.
func (l *outlink) anchorText(texts map[string]string) string {
	if l.kind != page.Anchor.String() {
		return ""
	}
	return texts[l.raw]
}

// links iterates over the page's links.
func (p *pageLinks) links() iter.Seq[outlink] {
	return func(yield func(outlink) bool) {
		if p.via != nil {
			yield(*p.via)
			return
		}
		for line := range strings.SplitSeq(p.metadata, "\r\n") {
			value, is := strings.CutPrefix(line, "outlink: ")
			if !is {
				continue
			}
			url, rest, _ := strings.Cut(value, " ")
			_, kind, _ := strings.Cut(rest, " ")
			if !yield(outlink{raw: url, kind: kind}) {
				return
			}
		}
	}
}

// A Page is a page with the links of its last visit.
type Page struct {
	URL, Via, Seed, Path string
	Depth                int32
	Links                []page.Link // with URL and Kind
}

// Pages calls f with the pages in the WARC files of a crawl's folder. A page is valid until f returns.
func Pages(ctx context.Context, disk vfs.FS, dir string, call func(*Page) error) error {
	f := &Finder{cfg: Config{Dir: dir, Disk: disk, Progress: func(Progress) {}}, known: newOutcomes(0)}
	var p Page
	return f.eachPage(ctx, func(l *pageLinks) error {
		if l.via != nil {
			return nil // there are no WARC files
		}
		p = Page{URL: l.url, Links: p.Links[:0]}
		for line := range strings.SplitSeq(l.metadata, "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "via":
				p.Via = value
			case "seed":
				p.Seed = value
			case "hopsFromSeed":
				p.Path = value
			}
		}
		p.Depth = int32(strings.Count(p.Path, "L"))
		if strings.Contains(p.Path, "M") {
			p.Depth++
		}
		for link := range l.links() {
			if kind, known := page.ParseKind(link.kind); known {
				p.Links = append(p.Links, page.Link{URL: link.raw, Kind: kind})
			}
		}
		return call(&p)
	})
}

// eachPage calls f with the links of each page's last visit. They are valid until f returns.
func (f *Finder) eachPage(ctx context.Context, call func(*pageLinks) error) error {
	files, err := f.records()
	if err != nil || len(files) == 0 {
		f.addNote("the crawl has no WARC files here: only the page that first linked to each URL is known")
		return f.eachFirstPage(ctx, call)
	}
	var total, done int64
	sizes := map[string]int64{}
	for _, name := range files {
		size, err := f.cfg.Disk.Size(f.path("warc/" + name))
		if err != nil {
			return err
		}
		sizes[name] = size
		total += size
	}
	for _, name := range files {
		s := scan{Finder: f, ctx: ctx, name: name, size: sizes[name], before: done, total: total, call: call}
		if err := s.run(); err != nil {
			return fmt.Errorf("read warc/%s: %w", name, err)
		}
		done += sizes[name]
	}
	return nil
}

// records returns the names of the crawl's WARC files.
func (f *Finder) records() ([]string, error) {
	names, err := f.cfg.Disk.List(f.path("warc"))
	return slices.DeleteFunc(names, func(name string) bool {
		name = strings.TrimSuffix(name, ".open")
		return !strings.HasSuffix(name, ".warc.gz") && !strings.HasSuffix(name, ".warc.zst")
	}), err
}

// eachFirstPage is like eachPage, but reads only crawl.log.
func (f *Finder) eachFirstPage(ctx context.Context, call func(*pageLinks) error) error {
	return f.eachLine(ctx, "crawl.log", func(text []byte) error {
		e, err := crawllog.Parse(text)
		if err != nil || e.Via == "" || e.Has("robots") {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		kind := page.Anchor.String()
		switch {
		case strings.HasSuffix(e.Path, "R"):
			kind = page.Redirect.String()
		case strings.HasSuffix(e.Path, "E"):
			kind = "embed"
		case strings.HasSuffix(e.Path, "M"):
			kind = page.Listed.String()
		}
		return call(&pageLinks{url: e.Via, via: &outlink{raw: e.URL, kind: kind}})
	})
}

// A scan reads one WARC file.
type scan struct {
	*Finder
	ctx           context.Context
	name          string
	size          int64
	before, total int64 // bytes of the previous files, and of all files
	call          func(*pageLinks) error
	skips         []extent // records that need not be read, by offset
}

type extent struct{ at, length int64 }

const (
	minSkip          = 8 << 10  // bytes of a record
	progressInterval = 64 << 20 // bytes
)

func (s *scan) run() error {
	if err := s.readIndex(); err != nil {
		return err
	}
	src, err := s.cfg.Disk.OpenAt(s.path("warc/" + s.name))
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is only read
	in, err := warc.NewSkimmer(src, s.size, s.name)
	if err != nil {
		return err
	}
	p := pageLinks{src: src, name: s.name, size: s.size, responseAt: -1}
	for told := int64(0); ; {
		at := in.Offset()
		if at-told >= progressInterval {
			told = at
			s.cfg.Progress(Progress{"warc", s.before + at, s.total})
			if s.ctx.Err() != nil {
				return context.Cause(s.ctx)
			}
		}
		if n := s.skip(at); n > 0 {
			p.responseAt = at
			in.SeekTo(at + n)
			continue
		}
		rec, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, warc.ErrTorn) && strings.HasSuffix(s.name, ".open"):
			return nil
		case rec == nil:
			s.addNote("cannot read a record in warc/" + s.name + ": run kumo verify for details")
			in.Skip()
			continue
		}
		switch {
		case rec.BeginsVisit():
			p.responseAt = at
		case rec.Fields["WARC-Type"] == "metadata":
			if p.url = rec.Fields["WARC-Target-URI"]; s.isStale(p.url, rec.Fields["WARC-Date"]) {
				continue
			}
			p.metadata, p.texts = string(rec.Block), nil
			if err := s.call(&p); err != nil {
				return err
			}
		}
	}
}

// isStale reports whether a page was visited again after a record's time.
func (s *scan) isStale(url, date string) bool {
	if len(s.known.revisited) == 0 {
		return false
	}
	last, again := s.known.revisited[s.known.hash(url)]
	if !again {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, date)
	return err == nil && at.UnixMilli() < last
}

// readIndex reads which long response records of the file can be skipped. Without an index none are.
func (s *scan) readIndex() error {
	final := strings.TrimSuffix(s.name, ".open")
	stem, _, _ := strings.Cut(final, ".warc")
	index := "warc/" + stem + ".cdxj" + s.name[len(final):]
	_, err := store.EachLineOf(s.cfg.Disk, s.path(index), func(line []byte, _ int64) error {
		if x, err := warc.ParseIndexLine(line); err == nil && x.Length >= minSkip && x.File == final {
			s.skips = append(s.skips, extent{x.Offset, x.Length})
		}
		return nil
	})
	slices.SortFunc(s.skips, func(a, b extent) int { return cmp.Compare(a.at, b.at) })
	return err
}

// skip returns the length of the record at an offset if it need not be read, else 0.
func (s *scan) skip(at int64) int64 {
	for len(s.skips) > 0 && s.skips[0].at < at {
		s.skips = s.skips[1:]
	}
	if len(s.skips) > 0 && s.skips[0].at == at && at+s.skips[0].length <= s.size {
		return s.skips[0].length
	}
	return 0
}

const maxDecoded = 32 << 20 // bytes of a page that are read for anchor texts

// texts maps URLs to the anchor texts of a page's links, if its record exists.
func (f *Finder) texts(p *pageLinks) map[string]string {
	texts := map[string]string{}
	if p.src == nil || p.responseAt < 0 {
		return texts
	}
	in, err := warc.NewReader(p.src, p.size, p.name)
	if err != nil {
		return texts
	}
	in.SeekTo(p.responseAt)
	rec, err := in.Next()
	if err != nil || rec.Fields["WARC-Type"] != "response" || rec.Fields["WARC-Target-URI"] != p.url {
		return texts
	}
	answer, err := rec.Response()
	if err != nil {
		return texts
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // use the part that could be read
	resp := &page.Response{URL: p.url, Status: answer.StatusCode, Header: answer.Header, Payload: body, Body: body}
	_ = fetch.Decode(resp, maxDecoded) // use the part that could be decoded
	var pg page.Page
	if err := parse.New(parse.Config{AnchorText: true}).Parse(resp, &pg); err != nil {
		return texts
	}
	for _, l := range pg.Links {
		if l.Text != "" && l.Kind == page.Anchor {
			texts[l.URL] = l.Text
		}
	}
	return texts
}
