package ui

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
)

// batchForms are those in which a page of a day is given.
var batchForms = append(slices.Clone(forms), "xml")

// A batchPart is a page of a day, or a part of it, to read.
type batchPart struct {
	pagePart
	Became  string    `json:"became"`
	Day     string    `json:"day,omitempty"` // whose record it is: an earlier one's where the page is unchanged
	Fetched time.Time `json:"fetched,omitzero"`
}

// text is a page of a day in the form that a request asks for.
func (d batchDay) text(r *http.Request) (*batchPart, error) {
	wanted, err := partAsked(r)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(batchForms, wanted.as) {
		return nil, badRequest("as is %q: it is one of %s", cut(wanted.as, 40), strings.Join(batchForms, ", "))
	}
	if !d.enter(r.Context()) {
		return nil, r.Context().Err()
	}
	defer d.leave()
	found, err := d.find(r)
	if err != nil {
		return nil, err
	}
	p, err := found.in(r.Context(), d.c, wanted.as)
	if err == nil {
		err = p.take(wanted)
	}
	return p, err
}

// in is all of a page in a form; without text if it has no record, or asks not to be archived.
func (f *foundURL) in(ctx context.Context, c *inspect.Collection, as string) (*batchPart, error) {
	x := &batchPart{pagePart: pagePart{URL: f.URL.URL, As: as}, Became: f.Became(), Day: f.day}
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
	case as == "markdown":
		var err error
		if d, err = f.whole(ctx, c); err != nil {
			return nil, ofDamage(err)
		} else if d == nil {
			return nil, &problem{http.StatusNotFound, "The page's document cannot be had",
				"as=text gives the text of its record"}
		}
	}
	if f.page != nil {
		x.Headline, x.Lang, x.Fetched = f.page.Record.Headline, f.page.Record.Language, f.page.Record.Fetched
	}
	if as == "text" || as == "xml" || d == nil || as == "markdown" && f.page == nil {
		return x, nil
	}
	var resp page.Response
	if err := d.Answer(&resp); err != nil {
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

// whole is the document that has the page's body: an earlier day's where the page is unchanged; nil if there is none.
func (f *foundURL) whole(ctx context.Context, c *inspect.Collection) (*batch.Document, error) {
	if f.Page != nil {
		return f.Document, nil
	}
	d, err := c.Document(ctx, f.day, f.URL.URL)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as it says
	}
	return d, err
}
