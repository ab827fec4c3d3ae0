package batch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/extsort"
	"kumo/internal/base/field"
	"kumo/internal/base/weburl"
	"kumo/internal/state/store/xml"
)

// Files beside a day's XML. Each task writes its own index; the pipeline merges them.
const (
	IndexName  = "index.jsonl" // one [Entry] per line, sorted by URL
	SitesName  = "sites.jsonl" // one [Site] per line, sorted by name
	CountsName = "counts.json" // [Counts]

	indexPrefix = "index-" // index-00012.jsonl, of part-00012.xml
)

// An Entry is the position of a page's XML record: Length bytes from Offset in the file Part of the day's folder.
type Entry struct {
	URL      string    `json:"url"`
	Fetched  time.Time `json:"fetched"`
	Language string    `json:"language,omitempty"`
	Encoding string    `json:"encoding,omitempty"`
	Headline string    `json:"headline,omitempty"` // beginning of the headline
	Part     string    `json:"part"`
	Offset   int64     `json:"offset"`
	Length   int64     `json:"length"`
}

// maxHeadline limits the bytes of a headline in an index.
const maxHeadline = 200

// appendLine appends the entry as a line.
func (e *Entry) appendLine(b []byte) []byte {
	b = field.JSON(append(b, `{"url":`...), e.URL)
	b = e.Fetched.UTC().AppendFormat(append(b, `,"fetched":"`...), time.RFC3339)
	b = append(b, '"')
	for _, f := range [...]struct{ name, text string }{{"language", e.Language}, {"encoding", e.Encoding},
		{"headline", e.Headline}} {
		if f.text != "" {
			b = append(append(append(b, `,"`...), f.name...), `":`...)
			b = field.JSON(b, f.text)
		}
	}
	b = field.JSON(append(b, `,"part":`...), e.Part)
	b = strconv.AppendInt(append(b, `,"offset":`...), e.Offset, 10)
	b = strconv.AppendInt(append(b, `,"length":`...), e.Length, 10)
	return append(b, "}\n"...)
}

// ParseEntry parses a line of an index.
func ParseEntry(line []byte) (e Entry, err error) {
	if err := parseLine(line, &e); err != nil {
		return e, fmt.Errorf("line of an index: %w", err)
	}
	if e.URL == "" || e.Part == "" || strings.ContainsAny(e.Part, "/\\") || e.Offset < 0 || e.Length <= 0 {
		return e, fmt.Errorf("line of an index: %w", ErrDamaged)
	}
	return e, nil
}

// entryOf returns the entry of an XML record's line, without its position.
func entryOf(line []byte) (e Entry, err error) {
	r, err := xml.Parse(line)
	if err != nil {
		return e, err
	}
	head := strings.Join(strings.Fields(r.Headline), " ")
	return Entry{URL: r.URL, Fetched: r.Fetched, Language: r.Language, Encoding: r.Encoding,
		Headline: strings.ToValidUTF8(head[:min(len(head), maxHeadline)], ""), Length: int64(len(line))}, nil
}

// A Site is a registered domain with the number of its pages on a day.
type Site struct {
	Site  string `json:"site"`
	Pages int    `json:"pages"`
}

// ParseSite parses a line of sites.jsonl.
func ParseSite(line []byte) (s Site, err error) {
	err = parseLine(line, &s)
	return s, err
}

// siteOf returns the site of a URL.
func siteOf(url string) string {
	u, err := weburl.Parse(url)
	if err != nil {
		return ""
	}
	return weburl.Domain(u.Hostname())
}

// writeIndexes merges the parts' indexes in a day's folders xml/ and other/, and writes the schema beside the days. The
// parts' indexes stay until the day is done, so that it can be interrupted and repeated. It returns the number of sites
// with pages in the collection's language.
func (p *Pipeline) writeIndexes(ctx context.Context, pt *collectionDay) (sites int, err error) {
	for _, folder := range []string{folders[KindPage], folders[KindOther]} {
		dir := DayFolder(pt.Collection, folder, p.Date)
		parts, err := indexParts(ctx, p.Place, dir)
		if err != nil {
			return 0, err
		}
		if len(parts) == 0 && folder != folders[KindPage] {
			continue
		}
		if err := writeSchema(ctx, p.Place, path.Dir(dir)); err != nil {
			return 0, err
		}
		pages, err := mergeIndex(ctx, p.Place, parts, path.Join(dir, IndexName))
		if err != nil {
			return 0, err
		}
		if folder != folders[KindPage] {
			continue
		}
		sites = len(pages)
		if err := writeSites(ctx, p.Place, path.Join(dir, SitesName), pages); err != nil {
			return 0, err
		}
	}
	return sites, nil
}

// indexParts returns the names of the parts' indexes in a folder.
func indexParts(ctx context.Context, p place.Place, dir string) (names []string, err error) {
	infos, err := p.List(ctx, dir)
	for _, i := range infos {
		if !i.IsDir && strings.HasPrefix(i.Name, indexPrefix) {
			names = append(names, path.Join(dir, i.Name))
		}
	}
	return names, err
}

// removeIndexParts removes the parts' indexes after they were merged.
func (p *Pipeline) removeIndexParts(ctx context.Context, pt *collectionDay) error {
	for _, folder := range []string{folders[KindPage], folders[KindOther]} {
		names, err := indexParts(ctx, p.Place, DayFolder(pt.Collection, folder, p.Date))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := p.Place.Remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeSchema writes the schema to a folder unless it exists.
func writeSchema(ctx context.Context, p place.Place, dir string) error {
	name := path.Join(dir, xml.SchemaName)
	if _, err := p.Stat(ctx, name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return place.WriteFile(ctx, p, name, xml.Schema)
}

func writeSites(ctx context.Context, p place.Place, name string, pages map[string]int) error {
	var b []byte
	for _, site := range slices.Sorted(maps.Keys(pages)) {
		b = field.JSON(append(b, `{"site":`...), site)
		b = append(strconv.AppendInt(append(b, `,"pages":`...), int64(pages[site]), 10), "}\n"...)
	}
	return place.WriteFile(ctx, p, name, b)
}

// mergeIndex merges sorted indexes and returns the number of pages per site.
func mergeIndex(ctx context.Context, p place.Place, parts []string, name string) (pages map[string]int, err error) {
	var all []extsort.Records
	for _, part := range parts {
		src, err := p.Open(ctx, part, 0, -1)
		if err != nil {
			return nil, err
		}
		defer src.Close() // opened for reading only
		all = append(all, &indexReader{name: part, in: bufio.NewReaderSize(src, 64<<10)})
	}
	w, err := p.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	out := bufio.NewWriterSize(w, 64<<10)
	pages = map[string]int{}
	err = extsort.MergeSorted(all).Each(ctx, func(url, line []byte) error {
		pages[siteOf(string(url))]++
		_, err := out.Write(line)
		return err
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return nil, err
	}
	return pages, w.Close()
}

// An indexReader reads the entries of a part's index and checks their order.
type indexReader struct {
	name string
	in   *bufio.Reader
	last string // last URL
}

func (r *indexReader) Next() (url, line []byte, err error) {
	if line, err = r.in.ReadBytes('\n'); errors.Is(err, io.EOF) {
		if len(line) == 0 {
			return nil, nil, err
		}
		err = fmt.Errorf("the last line is truncated: %w", ErrDamaged) // io.EOF would mean a regular end
	}
	var e Entry
	if err == nil {
		e, err = ParseEntry(line)
	}
	if err == nil && e.URL < r.last {
		err = fmt.Errorf("%q after %q: %w", e.URL, r.last, ErrDamaged)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.name, err)
	}
	r.last = e.URL
	return []byte(e.URL), line, nil
}

// probeSize is the number of bytes that are read at once to find a line of an index.
const probeSize = 16 << 10

// FindEntry finds the entry of a URL in an index by binary search. The error is fs.ErrNotExist if there is none.
func FindEntry(ctx context.Context, p place.Place, name, url string) (*Entry, error) {
	info, err := p.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	from, to := int64(0), info.Size // the line begins in [from, to)
	for to-from > probeSize {
		middle := from + (to-from)/2
		begin, e, err := entryAfter(ctx, p, name, middle, to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case e == nil || e.URL > url:
			to = middle
		default:
			from = begin
		}
	}
	r, err := p.Open(ctx, name, from, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close() // opened for reading only
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil, fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		e, err := ParseEntry(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case e.URL == url:
			return &e, nil
		case e.URL > url:
			return nil, fs.ErrNotExist
		}
	}
}

// entryAfter returns the first entry whose line begins after at, and its position; nil if there is none before end.
func entryAfter(ctx context.Context, p place.Place, name string, at, end int64) (begin int64, e *Entry, err error) {
	r, err := p.Open(ctx, name, at, end-at)
	if err != nil {
		return 0, nil, err
	}
	defer r.Close() // opened for reading only
	in := bufio.NewReaderSize(r, 4<<10)
	var line []byte
	skipped, err := in.ReadBytes('\n')
	if err == nil {
		line, err = in.ReadBytes('\n')
	}
	if errors.Is(err, io.EOF) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	entry, err := ParseEntry(line)
	return at + int64(len(skipped)), &entry, err
}
