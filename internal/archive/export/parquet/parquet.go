// Package parquet exports a crawl as three Parquet tables compressed with zstd.
//
//	pages.parquet  a row per URL, with the columns of package row
//	links.parquet  a row per link of these URLs: from, to, kind, rel, nofollow, text
//	texts.parquet  a row per HTML page with a main text: url, lang, title, headline, author, published, kind,
//	text, comments
//
// Values that do not apply are null. Rows are in URL order, and links are in the order of their page. A row group has
// 50,000 rows, or fewer if the rows are long. One row group per table is in memory, whatever the size of the crawl.
package parquet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/page"
	"kumo/internal/content/parse"
)

// A Page is a row of pages.parquet.
type Page struct {
	URL         string    `parquet:"url"`
	Host        string    `parquet:"host,dict"`
	Status      int32     `parquet:"status"`
	Time        time.Time `parquet:"time,timestamp(millisecond)"`
	Type        string    `parquet:"type,optional,dict"`
	Charset     string    `parquet:"charset,optional,dict"`
	Lang        string    `parquet:"lang,optional,dict"`
	Title       string    `parquet:"title,optional"`
	H1          string    `parquet:"h1,optional"`
	Description string    `parquet:"description,optional"`
	Canonical   string    `parquet:"canonical,optional"`
	Bytes       int64     `parquet:"bytes"`
	Digest      string    `parquet:"digest"`
	Links       int32     `parquet:"links"`
	Redirect    string    `parquet:"redirect,optional"`
	Truncated   string    `parquet:"truncated,optional,dict"`
	Depth       *int32    `parquet:"depth,optional"`
	NoIndex     bool      `parquet:"noindex"`

	From          string    `parquet:"from,optional"`
	NearDuplicate string    `parquet:"near_duplicate_of,optional"`
	ContentDigest string    `parquet:"content_digest,optional"`
	ConnectMS     *int64    `parquet:"connect_ms,optional"`
	FirstByteMS   *int64    `parquet:"first_byte_ms,optional"`
	TotalMS       *int64    `parquet:"total_ms,optional"`
	ServerIP      string    `parquet:"server_ip,optional,dict"`
	NeedsScript   string    `parquet:"needs_script,optional,dict"`
	Rendered      bool      `parquet:"rendered"`
	Robots        string    `parquet:"robots,optional,dict"`
	HrefLang      []Variant `parquet:"hreflang,list"`
	Usage         *Usage    `parquet:"usage,optional"`
	Withheld      string    `parquet:"withheld,optional,dict"`
}

// Usage has the usage preferences of a page when it was fetched.
type Usage struct {
	TrainAI string `parquet:"train_ai,optional,dict"`
	Search  string `parquet:"search,optional,dict"`
	AIInput string `parquet:"ai_input,optional,dict"`
	TDM     string `parquet:"tdm,optional,dict"`
	Policy  string `parquet:"policy,optional,dict"`
	License string `parquet:"license,optional,dict"`
	Source  string `parquet:"source,optional,dict"`
	Raw     string `parquet:"raw,optional,dict"`
}

// A Variant is a page in another language.
type Variant struct {
	Lang string `parquet:"lang"`
	URL  string `parquet:"url"`
}

// A Link is a row of links.parquet.
type Link struct {
	From     string `parquet:"from,dict"`
	To       string `parquet:"to"`
	Kind     string `parquet:"kind,dict"`
	Rel      string `parquet:"rel,optional,dict"`
	NoFollow bool   `parquet:"nofollow"`
	Text     string `parquet:"text,optional"`
}

// A Text is a row of texts.parquet.
type Text struct {
	URL       string `parquet:"url"`
	Lang      string `parquet:"lang,optional,dict"`
	Title     string `parquet:"title,optional"`
	Headline  string `parquet:"headline,optional"`
	Author    string `parquet:"author,optional"`
	Published string `parquet:"published,optional"`
	Kind      string `parquet:"kind,optional,dict"`
	Text      string `parquet:"text"`
	Comments  string `parquet:"comments,optional"`
}

// Limits of a row group: rows, and bytes of text in them.
const (
	maxRows  = 50_000
	maxBytes = 32 << 20
)

// A table is a file that is being written.
type table[T any] struct {
	out   *target.File
	w     *parquet.GenericWriter[T]
	rows  int
	bytes int
}

func open[T any](to *target.Folder, name string) (*table[T], error) {
	out, err := to.Create(name)
	if err != nil {
		return nil, err
	}
	return &table[T]{out: out, w: parquet.NewGenericWriter[T](out, parquet.Compression(&zstd.Codec{}),
		parquet.CreatedBy("kumo", "", ""), parquet.DataPageStatistics(true))}, nil
}

// write appends rows that have the given bytes of text.
func (t *table[T]) write(rows []T, bytes int) error {
	if t.rows > 0 && (t.rows+len(rows) > maxRows || t.bytes+bytes > maxBytes) {
		if err := t.w.Flush(); err != nil {
			return err
		}
		t.rows, t.bytes = 0, 0
	}
	t.rows, t.bytes = t.rows+len(rows), t.bytes+bytes
	_, err := t.w.Write(rows)
	return err
}

// finish makes the file appear under its name.
func (t *table[T]) finish() error {
	if err := t.w.Close(); err != nil {
		return err
	}
	return t.out.Commit()
}

func (t *table[T]) abort() error {
	if t == nil {
		return nil
	}
	return t.out.Abort()
}

var _ export.Preparer = (*Exporter)(nil)

// An Exporter writes the tables.
type Exporter struct {
	pages  *table[Page]
	links  *table[Link]
	texts  *table[Text]
	report export.Report
}

// New returns an exporter into a folder.
func New(ctx context.Context, to *target.Folder) (_ *Exporter, err error) {
	const pages, links, texts = "pages.parquet", "links.parquet", "texts.parquet"
	err = to.DeclareFiles(ctx, func(add func(string) error) error {
		return errors.Join(add(pages), add(links), add(texts))
	})
	if err != nil {
		return nil, err
	}
	e := &Exporter{}
	var failed [3]error
	e.pages, failed[0] = open[Page](to, pages)
	e.links, failed[1] = open[Link](to, links)
	e.texts, failed[2] = open[Text](to, texts)
	if err := errors.Join(failed[:]...); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close discards unfinished files.
func (e *Exporter) Close() error {
	return errors.Join(e.pages.abort(), e.links.abort(), e.texts.abort())
}

// rows are the rows of one page.
type rows struct {
	*row.Row
	html      bool
	links     []Link
	linkBytes int
	texts     []Text // at most one
}

// Prepare returns a function that builds rows.
func (e *Exporter) Prepare() export.PrepareFunc {
	r := row.NewReader(true)
	return func(p *export.Page) (any, error) {
		of, err := r.Read(p)
		if err != nil {
			return nil, err
		}
		made := &rows{Row: of, html: r.HTML()}
		url := valid(of.URL)
		for i := range r.Page.Links {
			made.addLink(url, &r.Page.Links[i])
		}
		if of.Status/100 != 2 {
			return made, nil
		}
		t, err := r.Text(p)
		if err != nil {
			return nil, err
		}
		if t != nil {
			made.texts = []Text{{url, valid(t.Lang), valid(t.Title), valid(t.Headline), valid(t.Author), valid(t.Published),
				valid(t.Kind), valid(t.Text), valid(t.Comments)}}
		}
		return made, nil
	}
}

func (r *rows) addLink(from string, l *page.Link) {
	x := Link{From: from, To: valid(l.URL), Kind: l.Kind.String(), Rel: valid(l.Rel), NoFollow: l.NoFollow,
		Text: valid(l.Text)}
	r.links = append(r.links, x)
	r.linkBytes += len(x.To) + len(x.Rel) + len(x.Text)
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Write writes the rows of a page.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	if row.IsRobotsTxt(p.URL) {
		return nil
	}
	r := p.Prepared.(*rows)
	e.report.Add(p, parse.IsHTML(p.Type), r.Truncated != "", r.Unreadable)
	pg := Page{URL: valid(r.URL), Host: valid(r.Host), Status: int32(r.Status), Time: r.Time, Type: r.Type,
		Charset: r.Charset, Lang: r.Lang, Title: r.Title, H1: r.H1, Description: r.Description, Canonical: r.Canonical,
		Bytes: int64(r.Bytes), Digest: r.Digest, Links: int32(r.Links), Redirect: r.Redirect, Truncated: r.Truncated,
		NoIndex: r.NoIndex, Robots: r.Robots}
	if v := r.Visit; v != nil {
		pg.From, pg.NearDuplicate, pg.ContentDigest = v.From, v.NearDuplicate, v.ContentDigest
		pg.NeedsScript, pg.Rendered, pg.Withheld = v.NeedsScript, v.Rendered, v.Withheld
		pg.ConnectMS, pg.FirstByteMS, pg.TotalMS = &v.ConnectMS, &v.FirstByteMS, &v.TotalMS
		if v.ServerIP.IsValid() {
			pg.ServerIP = v.ServerIP.String()
		}
		if u := v.Usage; u != nil {
			pg.Usage = &Usage{TrainAI: u.TrainAI, Search: u.Search, AIInput: u.AIInput, TDM: u.TDM, Policy: u.Policy,
				License: u.License, Source: u.Source, Raw: u.Raw}
		}
	}
	for _, v := range r.HrefLang {
		pg.HrefLang = append(pg.HrefLang, Variant(v))
	}
	if r.Depth >= 0 {
		depth := int32(r.Depth)
		pg.Depth = &depth
	}
	size := len(r.URL) + len(r.Title) + len(r.H1) + len(r.Description) + len(r.Canonical) + len(r.Redirect) +
		len(pg.From) + len(pg.NearDuplicate) + len(pg.ContentDigest) + len(r.Robots)
	if u := pg.Usage; u != nil {
		size += len(u.Policy) + len(u.License) + len(u.Source) + len(u.Raw)
	}
	for _, v := range r.HrefLang {
		size += len(v.Lang) + len(v.URL)
	}
	if err := e.pages.write([]Page{pg}, size); err != nil {
		return err
	}
	for links := range slices.Chunk(r.links, maxRows/10) {
		if err := e.links.write(links, r.linkBytes*len(links)/len(r.links)); err != nil {
			return err
		}
	}
	for i := range r.texts {
		if err := e.texts.write(r.texts[i:i+1], len(r.texts[i].Text)+len(r.texts[i].Comments)); err != nil {
			return err
		}
	}
	return nil
}

// Finish makes the files appear under their names.
func (e *Exporter) Finish(_ context.Context, r *export.Report) error {
	r.Merge(&e.report)
	return errors.Join(e.pages.finish(), e.links.finish(), e.texts.finish())
}
