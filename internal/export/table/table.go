// Package table is two forms of an export with a row for each URL: pages.jsonl, an object a line, and pages.csv, as
// spreadsheets read it.
//
// A row has url, status, time (of the visit, RFC 3339 in UTC), type (the declared media type), bytes (of the body
// without codings), digest ("sha1:BASE32", of the body as it lies in its record), redirect (where it leads) and
// truncated (why the answer is not whole); of a page that can be read charset, lang, title, h1, description, canonical,
// and links, their number. What does not apply is "", and not there in JSON.
//
// In CSV a text that a spreadsheet would take for a formula has a ' before it.
package table

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"kumo/internal/export"
	"kumo/internal/export/captures"
	"kumo/internal/export/target"
	"kumo/internal/page"
	"kumo/internal/parse"
	"kumo/internal/weburl"
)

// A Form is how rows are written.
type Form string

// The forms.
const (
	JSONL Form = "jsonl"
	CSV   Form = "csv"
)

// A Row is what there is of a URL.
type Row struct {
	URL         string    `json:"url"`
	Status      int       `json:"status"`
	Time        time.Time `json:"time"`
	Type        string    `json:"type,omitempty"`
	Charset     string    `json:"charset,omitempty"`
	Lang        string    `json:"lang,omitempty"`
	Title       string    `json:"title,omitempty"`
	H1          string    `json:"h1,omitempty"`
	Description string    `json:"description,omitempty"`
	Canonical   string    `json:"canonical,omitempty"`
	Bytes       int       `json:"bytes"`
	Digest      string    `json:"digest"`
	Links       int       `json:"links,omitempty"`
	Redirect    string    `json:"redirect,omitempty"`
	Truncated   string    `json:"truncated,omitempty"`
}

var columns = []string{"url", "status", "time", "type", "charset", "lang", "title", "h1", "description", "canonical",
	"bytes", "digest", "links", "redirect", "truncated"}

func (r *Row) cells() []string {
	return []string{r.URL, strconv.Itoa(r.Status), r.Time.Format(time.RFC3339), text(r.Type), text(r.Charset), text(r.Lang),
		text(r.Title), text(r.H1), text(r.Description), text(r.Canonical), strconv.Itoa(r.Bytes), r.Digest,
		strconv.Itoa(r.Links), text(r.Redirect), text(r.Truncated)}
}

// text is a cell that no spreadsheet takes for a formula.
func text(cell string) string {
	if cell != "" && strings.IndexByte("=+-@\t\r\n", cell[0]) >= 0 {
		return "'" + cell
	}
	return cell
}

var _ export.Exporter = (*Exporter)(nil)

// An Exporter writes a table.
type Exporter struct {
	name   string
	out    *target.File // nil once it is there, or given up
	row    func(*Row) error
	flush  func() error
	parser *parse.Parser
	page   page.Page
	report export.Report
}

// New returns an exporter into a folder.
func New(ctx context.Context, to *target.Folder, form Form) (*Exporter, error) {
	e := &Exporter{name: "pages." + string(form), parser: parse.New(parse.Config{Language: true})}
	if err := to.Claim(ctx, func(add func(string) error) error { return add(e.name) }); err != nil {
		return nil, err
	}
	var err error
	if e.out, err = to.Create(e.name); err != nil {
		return nil, err
	}
	if form == CSV {
		w := csv.NewWriter(e.out)
		e.row = func(r *Row) error { return w.Write(r.cells()) }
		e.flush = func() error { w.Flush(); return w.Error() }
		return e, w.Write(columns)
	}
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	e.row = func(r *Row) error { return enc.Encode(r) }
	e.flush = func() error { return nil }
	return e, nil
}

// Close gives up what is not finished.
func (e *Exporter) Close() error {
	if e.out == nil {
		return nil
	}
	return e.out.Abort()
}

// Write writes a URL's row. One whose record cannot be read has what is known without it.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	row := Row{URL: p.URL, Status: p.Status, Time: p.Time.UTC(), Type: p.Type, Digest: p.Digest}
	resp, err := p.Answer()
	if _, unreadable := errors.AsType[*captures.ErrRecord](err); unreadable {
		e.report.Unreadable++
		e.report.Note(err.Error())
		return e.row(&row)
	}
	if err != nil {
		return err
	}
	e.report.URLs++
	if resp.Truncated != page.Whole {
		e.report.Cutoff++
	}
	row.Bytes, row.Truncated = len(resp.Body), string(resp.Truncated)
	if parse.IsHTML(p.Type) {
		e.report.Pages++
	}
	if to := resp.Header.Get("Location"); to != "" && captures.Redirects(p.Status) {
		row.Redirect = resolve(p.URL, to)
	}
	if err := e.parser.Parse(resp, &e.page); err == nil { // a list that is broken off has a row, too
		pg := &e.page
		row.Charset, row.Lang, row.Title, row.H1 = pg.Charset, pg.Lang, pg.Title, pg.Heading
		row.Description, row.Canonical, row.Links = pg.Description, pg.Canonical, len(pg.Links)
	}
	return e.row(&row)
}

func resolve(url, ref string) string {
	base, err := weburl.Parse(url)
	if err != nil {
		return ref
	}
	to, err := base.Resolve(ref)
	if err != nil {
		return ref
	}
	return to.String()
}

// Finish makes the file appear.
func (e *Exporter) Finish(_ context.Context, r *export.Report) error {
	if err := e.flush(); err != nil {
		return err
	}
	lost := r.Lost
	*r = e.report
	r.Lost, r.Open = lost, e.name
	out := e.out
	e.out = nil
	return out.Commit()
}
