package ui

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"strings"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
)

// What a day has of pages: a list of its records, and one whole.
type (
	entryPage struct {
		Records []batch.Entry `json:"records"` // in the order of URLs
		Looked  int           `json:"looked"`  // how many were gone through
		Next    *int64        `json:"next,omitempty"`
	}
	batchRecord struct {
		URL        string    `json:"url"`
		Became     string    `json:"became"`
		Status     int       `json:"status"` // 0: there was no answer
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
		Other      bool      `json:"other"`             // the record is among those in other languages
		Day        string    `json:"day,omitempty"`     // whose record it is: an earlier one's where the page is unchanged
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
		XML        string    `json:"xml,omitempty"`       // as it lies there
		Cut        bool      `json:"cut"`                 // Text or XML are only a beginning
		Request    string    `json:"request,omitempty"`   // as it was sent
		Head       string    `json:"head,omitempty"`      // of the answer
		Fetched    time.Time `json:"fetched_as,omitzero"` // of the record
	}
)

// records lists the records of a day that a request asks for.
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
	if !d.enter(r.Context()) {
		return nil, r.Context().Err()
	}
	defer d.leave()
	l, err := d.c.List(r.Context(), d.date, q, cursor)
	switch {
	case errors.Is(err, fs.ErrNotExist): // no page of that kind, or not yet
		return &entryPage{Records: []batch.Entry{}}, nil
	case errors.Is(err, inspect.ErrCursor):
		return nil, badRequest("cursor is %d: \"next\" of an answer is wanted", cursor)
	case err != nil:
		return nil, ofDamage(err)
	}
	p := &entryPage{Records: l.Records, Looked: l.Looked}
	if l.Next > 0 {
		p.Next = &l.Next
	}
	return p, nil
}

// recordQuery is of which records a request asks.
func recordQuery(r *http.Request) (q inspect.Query, err error) {
	of := r.FormValue("of")
	if q.Apart = of == "other"; of != "" && !q.Apart {
		return q, badRequest("of is %q: only \"other\" is known", cut(of, 40))
	}
	return q, nil
}

// maxShown is how much of a record's text, of its XML and of heads is given.
const maxShown = 1 << 20

// A found URL is what a day has of it, with the record of the day that has it where the page is unchanged.
type foundURL struct {
	*inspect.URL
	page *inspect.Page // nil: there is none
	day  string        // whose record it is
}

// find finds what a day has of the URL that a request names. Who calls it has entered.
func (d batchDay) find(r *http.Request) (*foundURL, error) {
	typed := r.FormValue("url")
	u, err := weburl.Parse(strings.TrimSpace(typed))
	if err != nil || u.Host() == "" {
		return nil, noURL(typed)
	}
	found, err := d.c.Find(r.Context(), d.date, u.Canonical().String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &problem{http.StatusNotFound, "The day did not ask for this URL",
			"another day may have; kumo batch show names those"}
	}
	if err != nil {
		return nil, ofDamage(err)
	}
	f := &foundURL{found, found.Page, d.date}
	if f.page == nil {
		if f.page, f.day, err = d.c.Earlier(r.Context(), d.date, found); err != nil {
			return nil, ofDamage(err)
		}
	}
	return f, nil
}

func (d batchDay) record(r *http.Request) (*batchRecord, error) {
	if !d.enter(r.Context()) {
		return nil, r.Context().Err()
	}
	defer d.leave()
	found, err := d.find(r)
	if err != nil {
		return nil, err
	}
	x := &batchRecord{URL: found.URL.URL, Became: found.Became(), Day: found.day}
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
	x.Other, x.Part, x.Offset, x.Length, x.Fetched = pg.Apart, pg.Part, pg.Offset, pg.Length, r.Fetched
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

// hundredths is a share as a record has it, without the digits that a float32 has not.
func hundredths(share float32) float64 { return math.Round(float64(share)*100) / 100 }
