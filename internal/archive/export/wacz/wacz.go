// Package wacz exports a crawl as a WACZ file (version 1.1.1) for replay systems. The file is a ZIP archive with the
// WARC files of the crawl, their index and a list of the pages.
//
//	pages/pages.jsonl        HTML pages with title and time
//	archive/*.warc.gz        records, byte for byte as in the crawl; zstd is recompressed with gzip
//	indexes/index.cdx.gz     index, in blocks of 3,000 lines; index.idx has the positions of the blocks
//	datapackage.json         list of the files with SHA-256; datapackage-digest.json has the SHA-256 of this file
//
// The file contains every visit. If a condition excludes pages, it contains only the newest good answer of each
// remaining page, and the records whose bodies these answers refer to. Requests and metadata are then omitted. Records
// that cannot be read are omitted. All times in the file are those of the crawl, so that the same crawl produces the
// same bytes.
package wacz

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"path"
	"strings"
	"time"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/export/target"
)

// Name is the name of the file.
const Name = "crawl.wacz"

// Software is the name of the creating software in the file.
const Software = "kumo"

// A Config configures the export.
type Config struct {
	Start []string // the seeds: the first that is a page of the crawl is the main page
	Temp  string   // folder for temporary files of sorting; default the system's
}

var (
	_ export.Preparer        = (*Exporter)(nil)
	_ export.ArchiveExporter = (*Exporter)(nil)
)

// An Exporter writes the file.
type Exporter struct {
	cfg       Config
	out       *target.File
	zip       *zip.Writer
	entry     *entry
	archive   *captures.Archive
	starts    map[string]int // rank of a URL among the seeds
	main      *row.Row
	last      time.Time
	resources []resource
	report    export.Report
}

// A resource is a member of the ZIP file.
type resource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// New returns an exporter into a folder.
func New(ctx context.Context, to *target.Folder, cfg Config) (*Exporter, error) {
	e := &Exporter{cfg: cfg, starts: map[string]int{}}
	for n, url := range cfg.Start {
		if _, there := e.starts[url]; !there {
			e.starts[url] = n
		}
	}
	if err := to.DeclareFiles(ctx, func(add func(string) error) error { return add(Name) }); err != nil {
		return nil, err
	}
	var err error
	if e.out, err = to.Create(Name); err != nil {
		return nil, err
	}
	e.zip = zip.NewWriter(e.out)
	return e, nil
}

// Close discards an unfinished file.
func (e *Exporter) Close() error { return e.out.Abort() }

// SetArchive sets the crawl's records; the time of the newest is the time of the file.
func (e *Exporter) SetArchive(a *captures.Archive) { e.archive = a }

// An entry is a member of the ZIP file that is being written.
type entry struct {
	io.Writer
	of   *Exporter
	name string
	sum  hash.Hash
	n    int64
}

// create starts a member. Compressed members are stored as they are.
func (e *Exporter) create(name string, method uint16) (*entry, error) {
	w, err := e.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: modified})
	if err != nil {
		return nil, err
	}
	return &entry{w, e, name, sha256.New(), 0}, nil
}

// modified is a time that ZIP can represent. Members contain their own times.
var modified = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func (x *entry) Write(p []byte) (int, error) {
	n, err := x.Writer.Write(p)
	_, _ = x.sum.Write(p[:n]) // never fails
	x.n += int64(n)
	return n, err
}

func (x *entry) hash() string { return "sha256:" + hex.EncodeToString(x.sum.Sum(nil)) }

// end lists the member.
func (x *entry) end() {
	x.of.resources = append(x.of.resources, resource{strings.ToLower(path.Base(x.name)), x.name, x.hash(), x.n})
}

// pageLine is a line of pages.jsonl.
type pageLine struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	TS    string `json:"ts"`
	Title string `json:"title,omitempty"`
}

const pagesHead = `{"format":"json-pages-1.0","id":"pages","title":"All Pages"}` + "\n"

// prepared has the data of a page.
type prepared struct {
	*row.Row
	html bool
}

// Prepare returns a function that reads the titles of pages.
func (e *Exporter) Prepare() export.PrepareFunc {
	reader := row.NewReader(false)
	return func(p *export.Page) (any, error) {
		r, err := reader.Read(p)
		return prepared{r, reader.HTML() && p.Status/100 == 2}, err
	}
}

// Write lists a page. Unreadable records are reported when records are copied.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	if err := e.beginPages(); err != nil {
		return err
	}
	r := p.Prepared.(prepared)
	if r.Time.After(e.last) {
		e.last = r.Time
	}
	if r.Unreadable != nil {
		return nil
	}
	e.report.Add(p, r.html, r.Truncated != "", nil)
	if !r.html {
		return nil
	}
	if n, is := e.starts[r.URL]; is && (e.main == nil || n < e.starts[e.main.URL]) {
		e.main = r.Row
	}
	ts := r.Time.UTC().Format(time.RFC3339)
	sum := sha256.Sum256([]byte(ts + " " + r.URL))
	return json.NewEncoder(e.entry).Encode(pageLine{hex.EncodeToString(sum[:10]), r.URL, ts, r.Title})
}

// beginPages starts the list of pages, which comes first because pages are read first.
func (e *Exporter) beginPages() (err error) {
	if e.entry != nil {
		return nil
	}
	if e.entry, err = e.create("pages/pages.jsonl", zip.Deflate); err != nil {
		return err
	}
	_, err = io.WriteString(e.entry, pagesHead)
	return err
}

// Finish writes records and index, and makes the file appear under its name.
func (e *Exporter) Finish(ctx context.Context, r *export.Report) error {
	if err := e.beginPages(); err != nil {
		return err
	}
	e.entry.end()
	if err := e.records(ctx); err != nil {
		return err
	}
	if err := e.describe(); err != nil {
		return err
	}
	if err := e.zip.Close(); err != nil {
		return err
	}
	r.Merge(&e.report)
	r.Open = Name
	return e.out.Commit()
}

// A description is datapackage.json.
type description struct {
	Profile   string     `json:"profile"`
	Version   string     `json:"wacz_version"`
	Created   string     `json:"created"`
	Software  string     `json:"software"`
	MainURL   string     `json:"mainPageUrl,omitempty"`
	MainDate  string     `json:"mainPageDate,omitempty"`
	Resources []resource `json:"resources"`
}

// describe writes datapackage.json.
func (e *Exporter) describe() error {
	d := description{Profile: "data-package", Version: "1.1.1", Created: e.last.UTC().Format(time.RFC3339),
		Software: Software, Resources: e.resources}
	if e.main != nil {
		d.MainURL, d.MainDate = e.main.URL, e.main.Time.UTC().Format(time.RFC3339)
	}
	const name = "datapackage.json"
	hash, err := e.writeJSON(name, d)
	if err != nil {
		return err
	}
	_, err = e.writeJSON("datapackage-digest.json", struct {
		Path string `json:"path"`
		Hash string `json:"hash"`
	}{name, hash})
	return err
}

// writeJSON writes a JSON member that is not listed, and returns its hash.
func (e *Exporter) writeJSON(name string, v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", err
	}
	x, err := e.create(name, zip.Deflate)
	if err != nil {
		return "", err
	}
	_, err = x.Write(append(text, '\n'))
	return x.hash(), err
}

// IsOurs reports whether a file is a WACZ file that this package wrote.
func IsOurs(name string) bool {
	z, err := zip.OpenReader(name)
	if err != nil {
		return false
	}
	defer z.Close() //nolint:errcheck // it was only read
	in, err := z.Open("datapackage.json")
	if err != nil {
		return false
	}
	defer in.Close() //nolint:errcheck // likewise
	text, err := io.ReadAll(io.LimitReader(in, 64<<20))
	var d description
	return err == nil && json.NewDecoder(bytes.NewReader(text)).Decode(&d) == nil && d.Software == Software
}

// gzipName returns the name of a WARC file after gzip compression.
func gzipName(warc string) string {
	name, _, _ := strings.Cut(warc, ".warc.")
	return name + ".warc.gz"
}
