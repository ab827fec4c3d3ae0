package records

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/warc"
)

// Mend rebuilds the missing lines of visits whose records are intact: a line of pages.jsonl, crawl.log or the index
// follows from the other two and the records, except for a few fields. It returns the number of lines written. It skips
// files that a run did not write at all.
func Mend(dir string) (int, error) {
	m := &mender{cleaner: cleaner{dir: dir}, listed: map[uint64]bool{}, indexed: map[uint64]bool{},
		logged: map[uint64][]span{}}
	if err := m.readLines(); err != nil {
		return 0, err
	}
	if err := EachWARC(dir, m.readRecords); err != nil {
		return 0, err
	}
	if err := m.readWanted(); err != nil {
		return 0, err
	}
	return m.write()
}

type mender struct {
	cleaner
	listed     map[uint64]bool   // records listed in pages.jsonl
	indexed    map[uint64]bool   // indexed records
	logged     map[uint64][]span // by URL: begin and duration of its visits in ms
	incomplete []*incompleteVisit

	pages, log []byte
	index      map[string][]byte
	n          int
}

type incompleteVisit struct {
	url, file, date, revisit, truncated string
	digest                              string // from the record
	offset, length                      int64
	status                              int
	metadataFields                      map[string]string // of the metadata record
	final                               string
	variants                            []page.Variant
	serverIP                            netip.Addr
	links                               int
	noPage, noLog, noIndex              bool
	page                                *jsonl.PageLine
	entry                               *crawllog.Entry
	declared                            string
}

// Key returns a hash that identifies a thing by parts.
func Key(parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, parts...)
	return h.Sum64()
}

func (m *mender) each(name string, f func(line []byte)) error {
	_, err := store.EachLineOf(vfs.OS, m.path(name), func(line []byte, _ int64) error {
		f(line)
		return nil
	})
	return err
}

func (m *mender) readLines() error {
	err := m.each("pages.jsonl", func(line []byte) {
		if p, err := jsonl.ParsePage(line); err == nil {
			m.listed[Key(p.WARC, p.Offset)] = true
		}
	})
	err = errors.Join(err, m.each("crawl.log", func(line []byte) {
		if e, err := crawllog.Parse(line); err == nil && e.Status > 0 {
			k := Key(e.URL)
			m.logged[k] = append(m.logged[k], span{e.Begin.UnixMilli(), e.Took.Milliseconds()})
		}
	}))
	names, listErr := vfs.OS.List(m.path("warc"))
	for _, name := range names {
		if strings.HasSuffix(name, ".cdxj") {
			err = errors.Join(err, m.each("warc/"+name, func(line []byte) {
				if x, err := warc.ParseIndexLine(line); err == nil {
					m.indexed[Key(x.File, x.Offset)] = true
				}
			}))
		}
	}
	return errors.Join(err, listErr)
}

// readRecords finds visits with missing lines in a WARC file.
func (m *mender) readRecords(name string, _ io.ReaderAt, in *warc.Reader) error {
	lists := true
	var w *incompleteVisit
	id := ""
	for {
		rec, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case rec == nil:
			in.Skip()
			continue
		case err != nil:
			continue
		}
		switch kind := rec.Fields["WARC-Type"]; {
		case kind == "warcinfo":
			text := string(rec.Block)
			lists = !strings.Contains(text, "kumo-format: ") || strings.Contains(text, "kumo-format: jsonl")
		case rec.BeginsVisit():
			id, w = rec.ID(), m.visitOf(name, rec)
		case kind == "metadata":
			if w == nil || rec.ResponseID() != id {
				continue
			}
			w.metadata(string(rec.Block))
			robots := strings.HasSuffix(w.url, "/robots.txt") && w.metadataFields["title"] == "" &&
				w.metadataFields["charset"] == ""
			w.noPage = lists && !robots && !m.listed[Key(name, w.offset)]
			w.noLog = !m.isLogged(w)
			if w.noPage || w.noLog || w.noIndex {
				m.incomplete = append(m.incomplete, w)
			}
			w = nil
		}
	}
}

// visitOf returns the visit of a response record.
func (m *mender) visitOf(name string, rec *warc.Record) *incompleteVisit {
	kind := rec.Fields["WARC-Type"]
	w := &incompleteVisit{url: rec.Fields["WARC-Target-URI"], file: name, date: rec.Fields["WARC-Date"],
		offset: rec.Offset,
		length: rec.Length, truncated: rec.Fields["WARC-Truncated"], digest: rec.Fields["WARC-Payload-Digest"],
		status: rec.Status(), metadataFields: map[string]string{}}
	w.serverIP, _ = netip.ParseAddr(rec.Fields["WARC-IP-Address"])
	if kind == "revisit" {
		w.revisit, w.truncated = rec.Fields["WARC-Refers-To-Target-URI"], ""
		if strings.HasSuffix(rec.Fields["WARC-Profile"], "/server-not-modified") {
			w.status = http.StatusOK // of the unchanged page
		}
	}
	if resp, err := rec.Response(); err == nil {
		w.declared, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
		_ = resp.Body.Close()
	}
	w.noIndex = kind != "resource" && !m.indexed[Key(name, rec.Offset)]
	return w
}

func (w *incompleteVisit) metadata(text string) {
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		if name == "hreflang" {
			lang, url, _ := strings.Cut(value, " ")
			w.variants = append(w.variants, page.Variant{Lang: lang, URL: url})
			continue
		}
		if name != "outlink" {
			w.metadataFields[name] = value
			continue
		}
		w.links++
		if f := strings.Fields(value); len(f) > 1 && f[1] == "R" && w.final == "" {
			w.final = f[0]
		}
	}
}

// isLogged reports whether crawl.log has a visit of the URL at the time of the record.
func (m *mender) isLogged(w *incompleteVisit) bool {
	return slices.ContainsFunc(m.logged[Key(w.url)], func(s span) bool { return w.within(s.at, s.length) })
}

func (w *incompleteVisit) within(begin, took int64) bool {
	at, err := time.Parse(time.RFC3339Nano, w.date)
	return err == nil && begin <= at.UnixMilli() && at.UnixMilli() <= begin+took+1
}

func (m *mender) readWanted() error {
	byURL := map[string][]*incompleteVisit{}
	for _, w := range m.incomplete {
		byURL[w.url] = append(byURL[w.url], w)
	}
	if len(byURL) == 0 {
		return nil
	}
	err := m.each("pages.jsonl", func(line []byte) {
		if p, err := jsonl.ParsePage(line); err == nil {
			for _, w := range byURL[p.URL] {
				if w.file == p.WARC && w.offset == p.Offset {
					w.page = &p
				}
			}
		}
	})
	return errors.Join(err, m.each("crawl.log", func(line []byte) {
		if e, err := crawllog.Parse(line); err == nil && e.Status > 0 {
			for _, w := range byURL[e.URL] {
				if w.within(e.Begin.UnixMilli(), e.Took.Milliseconds()) {
					w.entry = &e
				}
			}
		}
	}))
}

// write adds the lines that can be rebuilt.
func (m *mender) write() (int, error) {
	m.index = map[string][]byte{}
	for _, w := range m.incomplete {
		if w.page == nil && w.entry == nil {
			continue // the begin of the visit is unknown
		}
		if w.noPage && w.entry != nil && !w.entry.Has("robots") && !w.entry.Has("rendering") {
			m.pages = w.pageLine(m.pages)
			m.n++
		}
		if w.noLog && w.page != nil {
			m.log = w.logLine(m.log)
			m.n++
		}
		if w.noIndex {
			stem, _, _ := strings.Cut(w.file, ".warc")
			m.index[stem] = w.indexLine(m.index[stem])
			m.n++
		}
	}
	for stem, lines := range m.index {
		name := "warc/" + stem + ".cdxj"
		text, err := os.ReadFile(m.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return m.n, err
		}
		all := slices.Collect(bytes.Lines(append(text, lines...)))
		slices.SortFunc(all, bytes.Compare)
		if err := m.cleaner.write(name, func(w *bufio.Writer) error {
			_, err := w.Write(bytes.Join(all, nil))
			return err
		}); err != nil {
			return m.n, err
		}
	}
	return m.n, errors.Join(m.add("pages.jsonl", m.pages), m.add("crawl.log", m.log))
}

func (m *mender) add(name string, lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	return m.cleaner.write(name, func(w *bufio.Writer) error {
		src, err := os.Open(m.path(name))
		if err == nil {
			_, err = io.Copy(w, src)
			err = errors.Join(err, src.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, err = w.Write(lines)
		return err
	})
}

// pageLine appends the line of pages.jsonl, from the records and the line of crawl.log.
func (w *incompleteVisit) pageLine(b []byte) []byte {
	e := w.entry
	p := jsonl.PageLine{URL: w.url, Final: cmp.Or(w.final, w.url), Status: e.Status, Time: e.Begin, Type: e.MIME,
		Charset: w.metadataFields["charset"], Lang: w.metadataFields["languages"], Title: w.metadataFields["title"],
		H1:          w.metadataFields["h1"],
		Description: w.metadataFields["description"], Canonical: w.metadataFields["canonical"], HrefLang: w.variants,
		Bytes:  e.Size,
		Digest: e.Digest, Depth: strings.Count(e.Path, "L"), Links: w.links, WARC: w.file, Offset: w.offset,
		Truncated: w.truncated, Malformed: w.metadataFields["malformed"], LinksCut: w.metadataFields["linksCut"],
		Revisit: w.revisit,
		Robots:  w.metadataFields["robots"], Visit: jsonl.Visit{From: w.metadataFields["via"],
			NearDuplicate: w.metadataFields["nearDuplicateOf"], ContentDigest: w.metadataFields["contentDigest"],
			ServerIP: w.serverIP, NeedsScript: w.metadataFields["needsScript"]}}
	if strings.Contains(e.Path, "M") {
		p.Depth++
	}
	// Not recorded by older versions; the times are then 0.
	_, _ = fmt.Sscanf(w.metadataFields["exchangeTimeMs"], "connect=%d firstByte=%d total=%d", &p.ConnectMS,
		&p.FirstByteMS, &p.TotalMS)
	if n, _ := fmt.Sscanf(w.metadataFields["rendered"], "requests=%d seconds=%f", &p.RenderRequests,
		&p.RenderSeconds); n == 2 {
		p.Rendered = true
		p.Screenshots = jsonl.ParseScreenshots(w.metadataFields["screenshots"])
	}
	if text := w.metadataFields["document"]; text != "" {
		d := new(page.Document)
		if json.Unmarshal([]byte(text), d) == nil {
			p.Document = d
		}
	}
	if text := w.metadataFields["usage"]; text != "" {
		var u page.Usage
		if err := json.Unmarshal([]byte(text), &u); err == nil {
			p.Usage = &u
		}
	}
	p.Withheld = w.metadataFields["withheld"]
	return p.Append(b)
}

func (w *incompleteVisit) logLine(b []byte) []byte {
	p := w.page
	ms, _ := strconv.ParseInt(w.metadataFields["fetchTimeMs"], 10, 64)
	end := p.Time.Add(time.Duration(ms) * time.Millisecond).UTC()
	b = fmt.Appendf(b, "%s %5d %10d ", end.Format("2006-01-02T15:04:05.000Z"), p.Status, p.Bytes)
	for _, s := range []string{p.URL, w.metadataFields["hopsFromSeed"], w.metadataFields["via"], p.Type} {
		b = append(field.Token(b, s), ' ')
	}
	begin := strings.Replace(p.Time.UTC().Format("20060102150405.000"), ".", "", 1)
	b = fmt.Appendf(b, "#000 %s+%d %s ", begin, ms, p.Digest)
	b = append(field.Token(b, w.metadataFields["seed"]), ' ')
	switch {
	case p.Revisit != "" && p.Status == http.StatusNotModified:
		b = append(b, "duplicate:notModified"...)
	case p.Revisit != "":
		b = append(b, "duplicate:digest"...)
	default:
		b = append(b, '-')
	}
	return append(b, '\n')
}

func (w *incompleteVisit) indexLine(b []byte) []byte {
	at, err := time.Parse(time.RFC3339Nano, w.date)
	mime := strings.ToLower(strings.TrimSpace(w.declared))
	if w.page != nil {
		mime = w.page.Type
	}
	switch {
	case err != nil:
		return b
	case w.revisit != "":
		mime = "warc/revisit"
	case mime == "":
		mime = "unk"
	}
	return warc.AppendIndexLine(b, &warc.IndexLine{URL: w.url, MIME: mime, Digest: w.digest, File: w.file, Time: at,
		Status: w.status, Offset: w.offset, Length: w.length})
}
