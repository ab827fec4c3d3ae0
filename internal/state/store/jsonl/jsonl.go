// Package jsonl writes the results of a crawl as JSON lines, to pages.jsonl and skipped.jsonl.
//
// Each line of pages.jsonl is a page that answered. Each line of skipped.jsonl is a URL in scope that was excluded,
// with the reason. Times are UTC with milliseconds.
//
// # Pages
//
// A line of a page always has
//
//   - url, final, status, time, type, charset, lang, title, depth, from
//   - bytes: of the payload
//   - digest: "sha1:BASE32"
//   - links: their number
//   - connect_ms: milliseconds until the connection was open (name, TCP, TLS); 0 if it was open already
//   - first_byte_ms, total_ms: milliseconds from the beginning of the request to the first byte and to the end of the
//     response
//
// and, if they apply,
//
//   - warc, offset: the WARC file of the record and its position there
//   - h1: the first one with a text
//   - description: of the meta element, as written
//   - canonical: the URL that the page declares as its own, as written
//   - hreflang: a list of lang and url, the page in other languages
//   - importance: of the URL when it was fetched, by the links found until then
//   - truncated, malformed: the reasons
//   - links_cut: the limit that left links unread (memory, entries or length)
//   - revisit: the URL that had the same payload before
//   - sniffed: the detected media type, if it differs from the declared one
//   - near_duplicate_of: the URL of a page with nearly the same text
//   - robots: the page's directives for robots, as written
//   - noindex, noarchive: true if the page has the directive and the crawl obeys it
//   - recrawl: the result of a visit that was not the first
//
// # Skipped URLs
//
// A line of a skipped URL has url, host, rule, why, from, depth and time.
package jsonl

import (
	"encoding/base32"
	"strconv"
	"sync"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// The files, in the order in which Logs has them.
const (
	skipped = iota
	pages
)

var names = [...]string{skipped: "skipped.jsonl", pages: "pages.jsonl"}

// Config says where to write.
type Config struct {
	Dir     string // the crawl's folder
	NoPages bool   // write skipped.jsonl only
}

var _ store.Store = (*Store)(nil)

// A Store writes pages.jsonl and skipped.jsonl.
type Store struct {
	*store.Logs
	noPages bool
	lines   sync.Pool // of *line
}

type line struct{ b []byte }

// Open opens the files, cut back to marks.
func Open(disk vfs.FS, cfg Config, marks []store.Mark) (*Store, error) {
	open := names[:]
	if cfg.NoPages {
		open = names[:pages]
	}
	logs, err := store.OpenLogs(disk, cfg.Dir, marks, open...)
	if err != nil {
		return nil, err
	}
	return &Store{Logs: logs, noPages: cfg.NoPages, lines: sync.Pool{New: func() any { return new(line) }}}, nil
}

// Put writes a page's line. A visit without an answer and a robots.txt have none.
func (s *Store) Put(rec *page.Record) error {
	if rec.Response == nil || rec.Robots || s.noPages {
		return nil
	}
	l := s.lines.Get().(*line)
	defer s.lines.Put(l)
	l.b = l.b[:0]
	l.page(rec)
	return s.Append(pages, l.b)
}

// PutSkip writes a skip's line.
func (s *Store) PutSkip(skip *page.Skip) error {
	l := s.lines.Get().(*line)
	defer s.lines.Put(l)
	l.b = l.b[:0]
	l.skip(skip)
	return s.Append(skipped, l.b)
}

func (l *line) page(rec *page.Record) {
	res, read := rec.Response, rec.Page
	if read == nil {
		read = &page.Page{}
	}
	l.text("url", rec.URL)
	l.text("final", rec.Final)
	l.number("status", int64(res.Status))
	l.time("time", rec.Time)
	l.text("type", read.Type)
	l.text("charset", read.Charset)
	l.text("lang", read.Lang)
	l.text("title", read.Title)
	l.number("bytes", res.PayloadLen())
	l.digest("digest", rec.Digest)
	l.number("depth", int64(rec.Depth))
	l.text("from", rec.From)
	l.number("links", int64(len(read.Links)))
	l.number("connect_ms", res.Connecting().Milliseconds())
	l.number("first_byte_ms", res.FirstByte.Milliseconds())
	l.number("total_ms", res.Total.Milliseconds())
	if rec.Place.File != "" {
		l.text("warc", rec.Place.File)
		l.number("offset", rec.Place.Offset)
	}
	l.exception("h1", read.Heading)
	l.exception("description", read.Description)
	l.exception("canonical", read.Canonical)
	l.variants(read.Variants)
	if rec.Importance > 0 {
		l.key("importance")
		l.b = strconv.AppendFloat(l.b, rec.Importance, 'g', 5, 64)
	}
	if read.Sniffed != read.Type {
		l.exception("sniffed", read.Sniffed)
	}
	l.exception("truncated", string(res.Truncated))
	l.exception("malformed", res.Malformed)
	l.exception("links_cut", string(read.LinksCut))
	if rec.Revisit != nil {
		l.text("revisit", rec.Revisit.URL)
	}
	l.exception("near_duplicate_of", rec.NearDuplicate)
	l.exception("recrawl", string(rec.Recrawl))
	l.asks(rec)
	l.end()
}

func (l *line) variants(all []page.Variant) {
	if len(all) == 0 {
		return
	}
	l.key("hreflang")
	for i, v := range all {
		l.b = append(l.b, "[,"[min(i, 1)])
		l.b = append(l.b, `{"lang":`...)
		l.b = field.JSON(l.b, v.Lang)
		l.b = append(l.b, `,"url":`...)
		l.b = field.JSON(l.b, v.URL)
		l.b = append(l.b, '}')
	}
	l.b = append(l.b, ']')
}

func (l *line) skip(skip *page.Skip) {
	l.text("url", skip.URL)
	l.text("host", skip.Host)
	l.text("rule", skip.Rule)
	l.text("why", skip.Why)
	l.text("from", skip.From)
	l.number("depth", int64(skip.Depth))
	l.time("time", skip.Time)
	l.end()
}

// asks writes what the page asks of robots, by elements and by header fields.
func (l *line) asks(rec *page.Record) {
	if rec.Page == nil {
		return
	}
	l.exception("robots", rec.Page.Robots.String())
	l.flag("noindex", rec.NoIndex)
	l.flag("noarchive", rec.NoArchive)
}

// key begins a member; keys are plain words.
func (l *line) key(name string) {
	if len(l.b) == 0 {
		l.b = append(l.b, '{')
	} else {
		l.b = append(l.b, ',')
	}
	l.b = append(l.b, '"')
	l.b = append(l.b, name...)
	l.b = append(l.b, '"', ':')
}

func (l *line) text(name, value string) {
	l.key(name)
	l.b = field.JSON(l.b, value)
}

// exception adds a member that is there only when it has something to say.
func (l *line) exception(name, value string) {
	if value != "" {
		l.text(name, value)
	}
}

// flag adds a member only where it is true.
func (l *line) flag(name string, value bool) {
	if value {
		l.key(name)
		l.b = append(l.b, "true"...)
	}
}

func (l *line) number(name string, n int64) {
	l.key(name)
	l.b = strconv.AppendInt(l.b, n, 10)
}

func (l *line) time(name string, t time.Time) {
	l.key(name)
	l.b = t.UTC().AppendFormat(l.b, `"2006-01-02T15:04:05.000Z"`)
}

func (l *line) digest(name string, sum page.Digest) {
	l.key(name)
	l.b = append(l.b, `"sha1:`...)
	l.b = base32.StdEncoding.AppendEncode(l.b, sum[:])
	l.b = append(l.b, '"')
}

func (l *line) end() { l.b = append(l.b, '}', '\n') }
