// Package captures reads the newest good answer of each URL from a crawl's WARC files, using their indexes.
//
// An answer is good unless it is a server error (5xx) or a rate limit (429), which say nothing about the page. If a
// visit found unchanged content, its answer is read from the record that the visit refers to.
//
// The indexes are sorted externally, on disk. Memory holds about 60 bytes for each record that answers of other URLs
// refer to.
//
// A capture also has the visit's data from pages.jsonl and, on request, its line in text.jsonl.
package captures

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/extsort"
	"kumo/internal/base/vfs"
	"kumo/internal/content/document"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/warc"
)

// A Capture is the newest good answer of a URL.
type Capture struct {
	URL    string    `json:"url"`
	Time   time.Time `json:"time"` // of the visit, in whole seconds
	Status int       `json:"status"`
	Type   string    `json:"type,omitempty"`  // declared media type in lower case; "" if none is declared
	Digest string    `json:"digest"`          // of the body as stored in the record, with the prefix "sha1:"
	Head   Location  `json:"head"`            // the visit's record
	Body   *Location `json:"body,omitempty"`  // the record with the body, if it is another one
	Depth  int       `json:"depth"`           // hops from a seed, as in pages.jsonl; -1 if unknown
	Visit  *Visit    `json:"visit,omitempty"` // the visit's data from pages.jsonl; nil if there is none
	// an earlier visit has rendered the page, so the record with the body may have a rendered document
	BodyRendered bool `json:"body_rendered,omitempty"`
	// the line in text.jsonl; nil if there is none or Config.Texts is nil
	Text        *TextLine `json:"text,omitempty"`
	bodyMissing bool      // the record with the body is missing
}

// A Visit holds the members of a line of pages.jsonl that exports copy.
type Visit = jsonl.Visit

// A Location is the position of a record.
type Location struct {
	File           string // in the folder warc, without the suffix ".open"
	Offset, Length int64
}

// A Config configures Open.
type Config struct {
	Dir  string // the crawl's folder
	Disk vfs.FS // default vfs.OS
	Temp string // folder for temporary files of sorting; default the system's
	// Texts is the disk with the crawl's text.jsonl, whose lines captures have as Text; nil: they have none.
	Texts vfs.FS
	// Documents reads PDFs, office documents and e-books; nil: they are not read.
	Documents document.ReadFunc
}

// An Archive has the captures of a crawl. It is not safe for concurrent use. Close removes its temporary files.
type Archive struct {
	*Reader
	cfg           Config
	temp          string
	indexNames    []string // names of the indexes
	capturesFile  string   // file with the captures
	count         int64
	missingBodies int64
	selected      map[uint64]struct{} // hashes of the record locations of selected captures; nil: all are selected
}

// A Reader reads responses. It is not safe for concurrent use.
type Reader struct {
	files   *files
	maxBody int64 // bytes of a body or a record
	texts   textReader
	// nil: documents are not read
	documents document.ReadFunc
}

// NewReader returns a reader of the crawl in dir for callers that know the locations of records. Bodies are truncated
// to most bytes, and a longer record is a [RecordError]. Documents are read if documents is not nil.
func NewReader(disk vfs.FS, dir string, most int64, documents document.ReadFunc) *Reader {
	return &Reader{files: newFiles(disk, dir, most+maxHeads), maxBody: most, documents: documents}
}

const maxHeads = 1 << 20 // bytes of all heads of a response

// Close closes the reader's files.
func (r *Reader) Close() error { return errors.Join(r.files.close(), r.texts.close()) }

// ErrNoRecords means that a crawl has no WARC files.
var ErrNoRecords = errors.New("the crawl has no WARC files here")

// Open reads the indexes of the crawl's WARC files. The archive does not include records that are added later.
func Open(ctx context.Context, cfg Config) (a *Archive, err error) {
	if cfg.Disk == nil {
		cfg.Disk = vfs.OS
	}
	a = &Archive{cfg: cfg}
	a.Reader = a.NewReader()
	if a.temp, err = os.MkdirTemp(cfg.Temp, "kumo-captures-"); err != nil {
		return nil, err
	}
	if err := a.read(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// NewReader returns a reader for another goroutine.
func (a *Archive) NewReader() *Reader {
	return &Reader{files: newFiles(a.cfg.Disk, a.cfg.Dir, math.MaxInt64), maxBody: MaxBody,
		texts: textReader{disk: a.cfg.Texts, dir: a.cfg.Dir}, documents: a.cfg.Documents}
}

// Close closes the files, and removes the temporary ones.
func (a *Archive) Close() error { return errors.Join(a.Reader.Close(), os.RemoveAll(a.temp)) }

// Len returns the number of captures.
func (a *Archive) Len() int64 { return a.count }

// MissingBodies returns the number of URLs that are excluded because the record with their body is missing.
func (a *Archive) MissingBodies() int64 { return a.missingBodies }

// Each calls f with the captures in URL order.
func (a *Archive) Each(ctx context.Context, f func(*Capture) error) error {
	_, err := store.EachLineOf(a.cfg.Disk, a.capturesFile, func(line []byte, _ int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var c Capture
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		return f(&c)
	})
	return err
}

// read determines the capture of each URL.
func (a *Archive) read(ctx context.Context) (err error) {
	if a.indexNames, err = a.indexes(); err != nil {
		return err
	}
	sorter := extsort.New(extsort.Config{Disk: a.cfg.Disk, Dir: filepath.Join(a.temp, "sort"), Memory: 64 << 20})
	defer func() { err = errors.Join(err, sorter.Close()) }()
	var key []byte
	err = a.eachEntry(ctx, func(x *warc.IndexLine, line []byte) error {
		key = append(append(key[:0], x.URL...), 0)
		key = x.Time.AppendFormat(key, "20060102150405")
		key = fmt.Appendf(key, "%s %016d", x.File, x.Offset)
		return sorter.Add(0, key, line)
	})
	if err == nil {
		err = a.readPages(ctx, sorter)
	}
	if err == nil && a.cfg.Texts != nil {
		err = a.readTexts(ctx, sorter)
	}
	if err != nil {
		return err
	}
	wanted := map[string]*Location{} // digests for which the URL itself has no record
	if err := a.write("first", func(w *bufio.Writer) error { return a.writeNewest(ctx, sorter, wanted, w) }); err != nil {
		return err
	}
	if len(wanted) > 0 {
		types := map[string]string{}
		err := a.eachEntry(ctx, func(x *warc.IndexLine, _ []byte) error {
			if at, is := wanted[x.Digest]; is && at == nil && x.MIME != revisit {
				wanted[x.Digest] = &Location{x.File, x.Offset, x.Length}
				types[x.Digest] = x.MIME
			}
			return nil
		})
		if err != nil {
			return err
		}
		a.capturesFile = filepath.Join(a.temp, "found")
		return a.write("found", func(w *bufio.Writer) error { return a.resolve(ctx, wanted, types, w) })
	}
	a.capturesFile = filepath.Join(a.temp, "first")
	return nil
}

// First bytes of the sorter's entries for lines of pages.jsonl and text.jsonl. Entries for index lines begin with a
// key.
const (
	pageMark = 0
	textMark = 1
)

// readPages adds the lines of pages.jsonl to the sorter.
func (a *Archive) readPages(ctx context.Context, sorter *extsort.Sorter) error {
	var key, value []byte
	_, err := store.EachLineOf(a.cfg.Disk, filepath.Join(a.cfg.Dir, "pages.jsonl"), func(line []byte, _ int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var p pageLine
		if json.Unmarshal(line, &p) != nil {
			return nil // kumo verify reports it; the records are authoritative
		}
		key = visitKey(key, p.URL, p.Time)
		p.URL = ""
		if a.cfg.Texts == nil {
			p = pageLine{Depth: p.Depth, Visit: p.Visit}
		}
		var err error
		if value, err = json.Marshal(&p); err != nil {
			return err
		}
		return sorter.Add(0, key, append([]byte{pageMark}, value...))
	})
	return err
}

// visitKey returns the sorter key for a line of a visit.
func visitKey(key []byte, url string, at time.Time) []byte {
	return at.UTC().AppendFormat(append(append(key[:0], url...), 0), "20060102150405")
}

const revisit = "warc/revisit" // media type of a revisit in an index line

// indexes returns the names of the indexes. A WARC file without an index is an error.
func (a *Archive) indexes() (all []string, err error) {
	names, err := a.cfg.Disk.List(filepath.Join(a.cfg.Dir, "warc"))
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for _, name := range names {
		final, open := strings.CutSuffix(name, ".open")
		stem, ext, _ := strings.Cut(final, ".warc")
		if ext != ".gz" && ext != ".zst" {
			continue
		}
		index := stem + ".cdxj"
		if open {
			index += ".open"
		}
		if !there[index] {
			return nil, fmt.Errorf("warc/%s has no index: warc/%s does not exist", name, index)
		}
		all = append(all, index)
	}
	if len(all) == 0 {
		return nil, ErrNoRecords
	}
	return all, nil
}

// eachEntry calls f with the lines of all indexes.
func (a *Archive) eachEntry(ctx context.Context, f func(x *warc.IndexLine, line []byte) error) error {
	for _, name := range a.indexNames {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		file := filepath.Join(a.cfg.Dir, "warc", name)
		_, err := store.EachLineOf(a.cfg.Disk, file, func(line []byte, at int64) error {
			x, err := warc.ParseIndexLine(line)
			if err != nil {
				return fmt.Errorf("at byte %d: %w", at, err)
			}
			return f(&x, line)
		})
		if err != nil {
			return fmt.Errorf("read warc/%s: %w", name, err)
		}
	}
	return nil
}

// write creates a file in the temporary folder.
func (a *Archive) write(name string, fill func(*bufio.Writer) error) (err error) {
	f, err := a.cfg.Disk.Append(filepath.Join(a.temp, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 64<<10)
	if err := fill(w); err != nil {
		return err
	}
	return w.Flush()
}

// writeNewest writes the capture of each URL. It adds digests whose records belong to other URLs to wanted.
func (a *Archive) writeNewest(ctx context.Context, sorter *extsort.Sorter, wanted map[string]*Location,
	w *bufio.Writer) error {
	var of group
	out := json.NewEncoder(w)
	end := func() error {
		c := of.newest()
		if c == nil {
			return nil
		}
		if c.bodyMissing {
			wanted[c.Digest] = nil
		}
		a.count++
		return out.Encode(c)
	}
	err := sorter.Each(ctx, func(key, line []byte) error {
		url, _, _ := bytes.Cut(key, []byte{0})
		if string(url) != of.url {
			if err := end(); err != nil {
				return err
			}
			of = group{url: string(url), depth: -1}
		}
		if line[0] == pageMark || line[0] == textMark {
			return of.addLine(line)
		}
		x, err := warc.ParseIndexLine(line)
		of.add(x)
		return err
	})
	if err != nil {
		return err
	}
	return end()
}

// A group has the entries of one URL, in order of time.
type group struct {
	url       string
	depth     int    // in the latest line that has it; -1 if unknown
	visit     *Visit // latest so far; its line precedes that of its record
	last      *warc.IndexLine
	lastVisit *Visit           // visit of last
	rendered  bool             // a visit has rendered the page
	answers   []warc.IndexLine // the latest answer with each digest
	pages     []pageLine       // the newest lines, at most maxAnswers; none without Config.Texts
	texts     []TextLine       // as pages
}

func (g *group) add(x warc.IndexLine) {
	if x.MIME != revisit {
		g.answers = slices.DeleteFunc(g.answers, func(a warc.IndexLine) bool { return a.Digest == x.Digest })
		if g.answers = append(g.answers, x); len(g.answers) > maxAnswers {
			g.answers = g.answers[1:]
		}
	}
	if x.Status >= http.StatusInternalServerError || x.Status == http.StatusTooManyRequests {
		return
	}
	g.last, g.lastVisit = &x, g.visit
}

// maxAnswers limits the different answers of one URL in memory. Older answers are resolved like those of other URLs.
const maxAnswers = 100

// newest returns the URL's capture; nil if it has none.
func (g *group) newest() *Capture {
	x := g.last
	if x == nil {
		return nil
	}
	c := &Capture{URL: x.URL, Time: x.Time, Status: x.Status, Digest: x.Digest, Head: Location{x.File, x.Offset, x.Length},
		Depth: g.depth, Visit: g.lastVisit}
	if x.MIME != revisit {
		c.setType(x.MIME)
		c.Text = g.textOf(c.Head)
		return c
	}
	c.BodyRendered = g.rendered
	for i := range g.answers {
		if b := &g.answers[i]; b.Digest == x.Digest {
			c.setType(b.MIME)
			c.Body = &Location{b.File, b.Offset, b.Length}
			if c.Text = g.textOf(c.Head); c.Text == nil {
				c.Text = g.textOf(*c.Body)
			}
			return c
		}
	}
	c.bodyMissing = true
	c.Body = &Location{}
	return c
}

func (c *Capture) setType(mime string) {
	if mime != "unk" {
		c.Type = mime
	}
}

// resolve rewrites the captures with the body locations of wanted digests.
func (a *Archive) resolve(ctx context.Context, wanted map[string]*Location, types map[string]string,
	w *bufio.Writer) error {
	out := json.NewEncoder(w)
	a.count = 0
	_, err := store.EachLineOf(a.cfg.Disk, filepath.Join(a.temp, "first"), func(line []byte, _ int64) error {
		var c Capture
		if err := errors.Join(ctx.Err(), json.Unmarshal(line, &c)); err != nil {
			return err
		}
		if c.Body != nil && c.Body.File == "" {
			at := wanted[c.Digest]
			if at == nil {
				a.missingBodies++
				return nil
			}
			c.Body = at
			c.setType(types[c.Digest])
		}
		a.count++
		return out.Encode(&c)
	})
	return err
}
