package batches

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/seeds"
	"kumo/internal/view/text"
)

// URL prints the outcome of a URL on a day.
func (o *Show) URL(ctx context.Context, w io.Writer, c *inspect.Collection, date, typed string) error {
	url := typed
	if u, err := seeds.ParseURL(typed); err == nil {
		url = u.Canonical().String()
	}
	found, err := c.Find(ctx, date, url)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was not requested on %s%s", url, date, whyNotRequested(ctx, c, date, url))
	case err != nil:
		return err
	case found.Trouble != nil && (o.Headers || o.Body):
		return found.Trouble
	}
	v := &urlView{URL: found, w: w, c: c, date: date, visible: o.Terminal}
	return errors.Join(o.part(ctx, v), found.Trouble)
}

// part prints the selected part of a URL.
func (o *Show) part(ctx context.Context, v *urlView) error {
	switch {
	case o.JSON:
		return v.json()
	case o.XML, o.Text:
		pg, err := v.record(ctx)
		if err != nil {
			return err
		}
		if o.XML {
			return v.write(pg.Line)
		}
		return v.write(append([]byte(pg.Record.Content), '\n'))
	case o.Headers:
		return v.headers()
	case o.Body:
		return v.body()
	}
	return v.all()
}

// otherDays returns the days on which a URL was requested.
func otherDays(ctx context.Context, c *inspect.Collection, url string) (days []string) {
	for _, date := range c.Dates {
		if _, err := c.Document(ctx, date, url); err == nil {
			days = append(days, date)
		}
	}
	return days
}

// whyNotRequested returns the other days on which a URL was requested, and possible reasons why it was not on this day:
// the rule that refuses it or, if none does, how many links each rule refused that day. URLs of refused links are not
// recorded.
func whyNotRequested(ctx context.Context, c *inspect.Collection, date, url string) string {
	days, words := otherDays(ctx, c, url), ", nor on any other day"
	if len(days) > 0 {
		words = ", but on " + strings.Join(days, ", ")
	}
	d, err := c.Day(ctx, date)
	if err != nil {
		return words // the day's own error is shown
	}
	counts := refusedLinks(d)
	v, err := c.Refused(ctx, d, url)
	switch {
	case errors.Is(err, fs.ErrNotExist) && counts != "":
		return words + "; rules refused links that day, whose URLs are not recorded: " + counts
	case errors.Is(err, fs.ErrNotExist):
		return words
	case err != nil:
		return fmt.Sprintf("%s; the day's rules cannot be read: %v", words, err)
	case v.Refused():
		return fmt.Sprintf("%s; the rule %s refuses it: %s", words, v.Rule, v.Why)
	}
	words += "; no rule refuses the URL: no page of that day links to it"
	if len(days) > 0 {
		words += ", or it was not due again"
	}
	if counts != "" {
		words += ", or only refused links: " + counts
	}
	return words
}

// refusedLinks returns the numbers of a day's refused links, by rule.
func refusedLinks(d *inspect.Day) string {
	refused := d.State.RefusedLinks()
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(refused)) {
		parts = append(parts, fmt.Sprintf("%s %d", rule, refused[rule]))
	}
	return strings.Join(parts, ", ")
}

// A urlView prints the parts of a URL on a day.
type urlView struct {
	*inspect.URL
	w       io.Writer
	visible bool // w is a terminal
	c       *inspect.Collection
	date    string
}

// write writes text from the network.
func (v *urlView) write(part []byte) error {
	if v.visible {
		part = []byte(inspect.Visible(strings.ReplaceAll(string(part), "\r\n", "\n")))
	}
	if _, err := v.w.Write(part); err != nil || bytes.HasSuffix(part, []byte("\n")) || !v.visible {
		return err
	}
	_, err := io.WriteString(v.w, "\n")
	return err
}

// record returns the XML record; for an unchanged page, that of an earlier day.
func (v *urlView) record(ctx context.Context) (*inspect.Page, error) {
	if v.Page != nil {
		return v.Page, nil
	}
	pg, _, err := v.c.Earlier(ctx, v.date, v.URL)
	if err == nil && pg == nil {
		err = fmt.Errorf("%s has no XML record on %s: %s", v.URL.URL, v.date, v.Outcome())
	}
	return pg, err
}

// answer returns the document's answer.
func (v *urlView) answer() (*page.Response, error) {
	if v.Document == nil {
		return nil, fmt.Errorf("%s of %s is not merged yet", v.date, v.c.Code)
	}
	resp := new(page.Response)
	if err := v.Document.Response(resp); err != nil {
		return nil, fmt.Errorf("there is no answer: %s", v.Outcome())
	}
	return resp, nil
}

func (v *urlView) headers() error {
	resp, err := v.answer()
	if err != nil {
		return err
	}
	return errors.Join(v.write(resp.RequestRaw), v.write(resp.Raw[:resp.HeadLen]))
}

// maxBody limits the decoded size of a displayed body.
const maxBody = 256 << 20

func (v *urlView) body() error {
	resp, err := v.answer()
	if err != nil {
		return err
	}
	if err := fetch.Decode(resp, maxBody); err != nil && len(resp.Body) == 0 {
		return err
	}
	return v.write(resp.Body)
}

// A urlLine is a URL as JSON.
type urlLine struct {
	URL      string       `json:"url"`
	Became   string       `json:"became"`
	Status   int          `json:"status,omitempty"`
	From     string       `json:"from,omitempty"`
	Depth    int          `json:"depth"`
	Time     time.Time    `json:"time,omitzero"`
	Type     string       `json:"type,omitempty"`
	Entry    *batch.Entry `json:"record,omitempty"`
	Other    bool         `json:"other,omitempty"` // the record is in the files for other languages
	Headline string       `json:"headline,omitempty"`
	Text     string       `json:"text,omitempty"`
}

func (v *urlView) json() error {
	l := urlLine{URL: v.URL.URL, Became: v.Outcome()}
	if d := v.Document; d != nil {
		l.Status, l.From, l.Depth, l.Time, l.Type = d.Status, d.From, d.Depth, d.Time, d.Type
	}
	if v.Page != nil {
		l.Entry, l.Other = &v.Page.Entry, v.Page.Other
		l.Headline, l.Text = v.Page.Record.Headline, v.Page.Record.Content
	}
	return text.JSON(v.w, l)
}

// all prints everything in a few lines, followed by the main text.
func (v *urlView) all() error {
	tab := tabwriter.NewWriter(v.w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(tab, "%s\t%s\n", name, inspect.VisibleLine(value))
		}
	}
	row("url", v.URL.URL)
	row("became", v.Outcome())
	if d := v.Document; d != nil {
		row("fetched", text.Time(d.Time)+", in "+d.Took.Round(time.Millisecond).String())
		row("from", cmp.Or(d.From, map[bool]string{true: "a seed", false: "the known URLs of earlier days"}[d.Seed]))
		row("depth", fmt.Sprint(d.Depth))
		row("type", d.Type)
		if d.Status != 0 {
			row("size", stats.Bytes(int64(len(d.Raw)-d.HeadLen)))
			row("truncated", string(d.Truncated))
			row("malformed", d.Malformed)
		}
	}
	if pg := v.Page; pg != nil {
		r := &pg.Record
		where := pg.Part
		if pg.Other {
			where += " of other languages"
		}
		row("record", fmt.Sprintf("%s, %d bytes from %d", where, pg.Length, pg.Offset))
		row("encoding", fmt.Sprintf("%s, by %s", r.Encoding, r.EncodingFrom))
		if r.Language != "" {
			row("language", fmt.Sprintf("%s: %.0f%% of the text, confidence %.0f%%", r.Language, 100*r.Share,
				100*r.Confidence))
		}
		row("digest", "sha1:"+base32.StdEncoding.EncodeToString(r.Digest[:]))
		if r.Simhash != 0 {
			row("simhash", fmt.Sprintf("%016x", r.Simhash))
		}
		row("headline", r.Headline)
	}
	if err := tab.Flush(); err != nil || v.Page == nil {
		return err
	}
	_, err := fmt.Fprintf(v.w, "\n%s\n", inspect.Visible(v.Page.Record.Content))
	return err
}
