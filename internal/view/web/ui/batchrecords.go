package ui

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
)

// Records of a day: a list, and a single one.
type (
	entryPage struct {
		Records []batch.Entry `json:"records"` // sorted by URL
		Looked  int           `json:"looked"`  // number of scanned entries
		Next    *int64        `json:"next,omitempty"`
	}
	batchRecord struct {
		URL        string    `json:"url"`
		Became     string    `json:"became"`
		Status     int       `json:"status"` // 0: no answer
		Type       string    `json:"type,omitempty"`
		Time       time.Time `json:"time,omitzero"`
		TookMS     int64     `json:"took_ms"`
		From       string    `json:"from,omitempty"`
		Seed       bool      `json:"seed"`
		Depth      int       `json:"depth"`
		Bytes      int64     `json:"bytes"` // of the body
		Addr       string    `json:"addr,omitempty"`
		Truncated  string    `json:"truncated,omitempty"`
		Malformed  string    `json:"malformed,omitempty"`
		Trouble    string    `json:"trouble,omitempty"` // why the answer cannot be read
		Other      bool      `json:"other"`             // the record is in the files for other languages
		Day        string    `json:"day,omitempty"`     // day of the record; for an unchanged page, an earlier one
		Part       string    `json:"part,omitempty"`
		Offset     int64     `json:"offset"`
		Length     int64     `json:"length"`
		Encoding   string    `json:"encoding,omitempty"`
		Said       string    `json:"encoding_from,omitempty"`
		Language   string    `json:"language,omitempty"`
		Share      float64   `json:"language_share"`
		Confidence float64   `json:"language_confidence"`
		Digest     string    `json:"digest,omitempty"`
		Simhash    string    `json:"simhash,omitempty"`
		Headline   string    `json:"headline,omitempty"`
		Text       string    `json:"text,omitempty"`
		XML        string    `json:"xml,omitempty"`       // raw
		Cut        bool      `json:"cut"`                 // Text or XML is truncated
		Request    string    `json:"request,omitempty"`   // as sent
		Head       string    `json:"head,omitempty"`      // of the answer
		Fetched    time.Time `json:"fetched_as,omitzero"` // of the record
	}
)

// records lists records of a day.
func (d batchDay) records(r *http.Request) (*entryPage, error) {
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	cursor, err := number(r, "cursor", 0)
	if err != nil {
		return nil, err
	}
	q, err := recordQuery(r)
	if err != nil {
		return nil, err
	}
	q.Find, q.Limit = r.FormValue("find"), n
	if !d.acquire(r.Context()) {
		return nil, r.Context().Err()
	}
	defer d.release()
	l, err := d.c.List(r.Context(), d.date, q, cursor)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the day has no such pages, or not yet
		return &entryPage{Records: []batch.Entry{}}, nil
	case errors.Is(err, inspect.ErrCursor):
		return nil, badRequest("cursor is %d: expected \"next\" of an answer", cursor)
	case err != nil:
		return nil, damageProblem(err)
	}
	p := &entryPage{Records: l.Records, Looked: l.Looked}
	if l.Next > 0 {
		p.Next = &l.Next
	}
	return p, nil
}

// recordQuery returns the query of a request.
func recordQuery(r *http.Request) (q inspect.Query, err error) {
	of := r.FormValue("of")
	if q.Other = of == "other"; of != "" && !q.Other {
		return q, badRequest("of is %q: expected \"other\"", cut(of, 40))
	}
	return q, nil
}

// maxShown limits a record's text, its XML and heads.
const maxShown = 1 << 20

// A foundURL is a day's records of a URL; for an unchanged page, with the record of an earlier day.
type foundURL struct {
	*inspect.URL
	page *inspect.Page // nil if there is none
	day  string        // day of that record
}

// find returns a day's records of the URL in a request. The caller must have acquired a reader slot.
func (d batchDay) find(r *http.Request) (*foundURL, error) {
	typed := r.FormValue("url")
	u, err := weburl.Parse(strings.TrimSpace(typed))
	if err != nil || u.Host() == "" {
		return nil, noURL(typed)
	}
	found, err := d.c.Find(r.Context(), d.date, u.Canonical().String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &problem{http.StatusNotFound, "The day did not request this URL",
			"another day may have; kumo batch show lists these"}
	}
	if err != nil {
		return nil, damageProblem(err)
	}
	f := &foundURL{found, found.Page, d.date}
	if f.page == nil {
		if f.page, f.day, err = d.c.Earlier(r.Context(), d.date, found); err != nil {
			return nil, damageProblem(err)
		}
	}
	return f, nil
}

func (d batchDay) record(r *http.Request) (*batchRecord, error) {
	if !d.acquire(r.Context()) {
		return nil, r.Context().Err()
	}
	defer d.release()
	found, err := d.find(r)
	if err != nil {
		return nil, err
	}
	x := &batchRecord{URL: found.URL.URL, Became: found.Outcome(), Day: found.day}
	if found.Trouble != nil {
		x.Trouble = found.Trouble.Error()
	}
	x.setDocument(found.Document)
	x.setPage(found.page)
	return x, nil
}

func (x *batchRecord) setDocument(d *batch.Document) {
	if d == nil {
		return
	}
	x.Status, x.Type, x.Time, x.TookMS, x.From, x.Seed, x.Depth = d.Status, d.Type, d.Time, d.Took.Milliseconds(), d.From,
		d.Seed, d.Depth
	x.Bytes, x.Truncated, x.Malformed = int64(len(d.Raw)-d.HeadLen), string(d.Truncated), d.Malformed
	if d.Addr.IsValid() {
		x.Addr = d.Addr.String()
	}
	x.Request, x.Head = string(d.Request[:min(len(d.Request), maxShown)]), string(d.Raw[:min(d.HeadLen, maxShown)])
}

func (x *batchRecord) setPage(pg *inspect.Page) {
	if pg == nil {
		x.Day = ""
		return
	}
	r := &pg.Record
	x.Other, x.Part, x.Offset, x.Length, x.Fetched = pg.Other, pg.Part, pg.Offset, pg.Length, r.Fetched
	x.Encoding, x.Said, x.Language, x.Share, x.Confidence = r.Encoding, r.EncodingFrom, r.Language, hundredths(r.Share),
		hundredths(r.Confidence)
	x.Digest, x.Headline = "sha1:"+base32.StdEncoding.EncodeToString(r.Digest[:]), r.Headline
	if r.Simhash != 0 {
		x.Simhash = fmt.Sprintf("%016x", r.Simhash)
	}
	x.Text, x.XML = r.Content, strings.TrimSuffix(string(pg.Line), "\n")
	for _, text := range []*string{&x.Text, &x.XML} {
		if len(*text) > maxShown {
			*text, x.Cut = strings.ToValidUTF8((*text)[:maxShown], ""), true
		}
	}
}

// hundredths rounds a float32 share from a record.
func hundredths(share float32) float64 { return math.Round(float64(share)*100) / 100 }

// batchFormats are the formats of a day's page.
var batchFormats = append(slices.Clone(formats), "xml")

// A batchPart is a part of the text of a day's page.
type batchPart struct {
	pagePart
	Became  string    `json:"became"`
	Day     string    `json:"day,omitempty"` // day of the record; for an unchanged page, an earlier one
	Fetched time.Time `json:"fetched,omitzero"`
}

// text returns a day's page in the requested format.
func (d batchDay) text(r *http.Request) (*batchPart, error) {
	wanted, err := partAsked(r)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(batchFormats, wanted.as) {
		return nil, badRequest("as is %q: expected one of %s", cut(wanted.as, 40), strings.Join(batchFormats, ", "))
	}
	if !d.acquire(r.Context()) {
		return nil, r.Context().Err()
	}
	defer d.release()
	found, err := d.find(r)
	if err != nil {
		return nil, err
	}
	p, err := found.render(r.Context(), d.c, wanted.as)
	if err == nil {
		err = p.slice(wanted)
	}
	return p, err
}

// render returns a complete page in a format; without text if it has no record, or must not be archived.
func (f *foundURL) render(ctx context.Context, c *inspect.Collection, as string) (*batchPart, error) {
	x := &batchPart{pagePart: pagePart{URL: f.URL.URL, As: as}, Became: f.Outcome(), Day: f.day}
	d := f.Document
	if d != nil {
		x.Status, x.Type, x.Fetched = d.Status, d.Type, d.Time
	}
	switch {
	case f.page == nil:
		x.Day = ""
	case as == "xml":
		x.Text = strings.TrimSuffix(string(f.page.Line), "\n")
	case as == "text":
		x.Text, x.Main = f.page.Record.Content, true
	case as == "markdown", as == "comments":
		var err error
		if d, err = f.storedDocument(ctx, c); err != nil {
			return nil, damageProblem(err)
		} else if d == nil {
			return nil, &problem{http.StatusNotFound, "The page's document is not available",
				"as=text returns the text of its record"}
		}
	}
	if f.page != nil {
		x.Headline, x.Lang, x.Fetched = f.page.Record.Headline, f.page.Record.Language, f.page.Record.Fetched
	}
	if as == "text" || as == "xml" || d == nil || as != "headers" && f.page == nil {
		return x, nil
	}
	var resp page.Response
	if err := d.DecodedResponse(&resp); err != nil {
		return x, nil //nolint:nilerr // a document without an answer has neither text nor header fields
	}
	p, err := partOf(&resp, as)
	if err != nil {
		return nil, err
	}
	p.Headline, p.Lang, p.Type = x.Headline, x.Lang, x.Type
	x.pagePart = *p
	return x, nil
}

// storedDocument returns the Document with the page's body; for an unchanged page, that of an earlier day. It is nil if
// there is none.
func (f *foundURL) storedDocument(ctx context.Context, c *inspect.Collection) (*batch.Document, error) {
	if f.Page != nil {
		return f.Document, nil
	}
	d, err := c.Document(ctx, f.day, f.URL.URL)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as it says
	}
	return d, err
}
