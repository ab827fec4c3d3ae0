package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/wire/places"
	"kumo/internal/archive/place"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/seeds"
	"kumo/internal/view/text"
)

const batchShowLong = `Show what a place of batch crawls holds: its collections; the days of a COLLECTION, by its code
or directory; the pages of a DAY (2026-11-21, or "last"); what came of a URL on that day.

Of a day the pages in the collection's language are listed, in the order of URLs; with --other those in other
languages. --find lists only those that have a text in their URL, headline or main text, whatever the case.

Of a URL its XML record is shown, or, where it has none on that day, what came of it: unchanged, a redirect, an error,
left out by a rule. A URL that was not asked for has a reason, too, if the rules of that day refuse it: scope, include,
exclude, depth. --xml, --text, --headers and --body give one part of it as it is: the record, the main text, the
request and the heads of the answer, the answer's body without its codings.

On a terminal, characters that it would act on, that change the direction of writing, or that nobody sees, are shown
as \u{1b}.`

const batchShowExample = `  kumo batch show /data/news
  kumo batch show /data/news ja
  kumo batch show /data/news ja last --limit 20 --offset 40
  kumo batch show /data/news ja 2026-11-21 --find 東京
  kumo batch show /data/news ja last https://www.example.jp/
  kumo batch show /data/news ja last https://www.example.jp/ --xml | xmllint --format -`

type batchShowOptions struct {
	json          bool
	other         bool
	find          string
	limit, offset int

	xml, text, headers, body bool
}

func batchShowCommand() *cobra.Command {
	o := &batchShowOptions{}
	cmd := &cobra.Command{Use: "show PLACE [COLLECTION [DAY [URL]]]",
		Short: "Show collections, days and records of batch crawls", Long: batchShowLong, Example: batchShowExample,
		Args: usageArgs(cobra.RangeArgs(1, 4)), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	f := cmd.Flags()
	f.BoolVar(&o.other, "other", false, "of a day: the pages in other languages")
	f.StringVar(&o.find, "find", "", "of a day: only pages with this `TEXT`")
	f.Var(counted(&o.limit, 50), "limit", "of a day: list so many pages; 0 for all")
	f.Var(counted(&o.offset, 0), "offset", "of a day: leave out so many")
	f.BoolVar(&o.xml, "xml", false, "of a URL: its XML record")
	f.BoolVar(&o.text, "text", false, "of a URL: the main text")
	f.BoolVar(&o.headers, "headers", false, "of a URL: the request, and the head of the answer")
	f.BoolVar(&o.body, "body", false, "of a URL: the answer's body")
	f.BoolVar(&o.json, "json", false, "answer in JSON, a line for each that is listed")
	f.SortFlags = false
	return cmd
}

func (o *batchShowOptions) check(args []string) error {
	parts := 0
	for _, on := range []bool{o.xml, o.text, o.headers, o.body} {
		if on {
			parts++
		}
	}
	switch {
	case parts > 1 || parts > 0 && o.json:
		return usagef("--xml, --text, --headers, --body, --json: one of them is wanted")
	case parts > 0 && len(args) < 4:
		return usagef("--xml, --text, --headers and --body are of a URL: PLACE COLLECTION DAY URL are wanted")
	case len(args) != 3 && (o.other || o.find != "" || o.offset > 0):
		return usagef("--other, --find and --offset are of a day: PLACE COLLECTION DAY are wanted")
	}
	return nil
}

func (o *batchShowOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	at, err := places.Open(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	all, err := heldIn(cmd, at, args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return o.collections(ctx, w, all)
	}
	c, err := held(all, args[1])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return o.days(ctx, w, c)
	}
	date := args[2]
	if date == "last" {
		date = c.Last()
	}
	if err := batch.CheckDate(date); err != nil {
		return usagef("%w, or \"last\"", err)
	}
	day, err := c.Day(ctx, date)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("collection %s has no day %s; its days are %s", c.Code, date, daysOf(c))
	}
	if err != nil {
		return err
	}
	if len(args) == 3 {
		return o.pages(ctx, w, cmd.ErrOrStderr(), c, day)
	}
	return o.url(ctx, w, c, date, args[3])
}

// heldIn are the collections of a place, name being what the user calls it. What cannot be read is told.
func heldIn(cmd *cobra.Command, at place.Place, name string) ([]*inspect.Collection, error) {
	all, err := inspect.Collections(cmd.Context(), at)
	switch {
	case err != nil && len(all) == 0:
		return nil, err
	case err != nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "kumo: left out: %v\n", err)
	case len(all) == 0:
		return nil, usagef("%s: there is no batch crawl", name)
	}
	return all, nil
}

// daysOf names a collection's days.
func daysOf(c *inspect.Collection) string {
	if len(c.Dates) > 5 {
		return fmt.Sprintf("%s to %s", c.Dates[0], c.Last())
	}
	return strings.Join(c.Dates, ", ")
}

// printLine prints a value as a line of JSON.
func printLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (o *batchShowOptions) collections(ctx context.Context, w io.Writer, all []*inspect.Collection) (failed error) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !o.json {
		fmt.Fprintln(tab, "collection\tdirectory\tdays\tfirst\tlast\tlast change\tlast day is")
	}
	for _, c := range all {
		if o.json {
			if err := printLine(w, c); err != nil {
				return err
			}
			continue
		}
		d, err := c.Day(ctx, c.Last())
		state := inspect.Damaged
		if err == nil {
			state = inspect.StateOf(d.State)
		} else if !errors.Is(err, batch.ErrDamaged) {
			return err
		}
		failed = errors.Join(failed, err)
		fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", c.Code, c.Directory, len(c.Dates), c.Dates[0], c.Last(),
			text.Time(c.Changed), state)
	}
	return errors.Join(tab.Flush(), failed)
}

// A dayLine is a day as JSON.
type dayLine struct {
	Date   string           `json:"day"`
	State  string           `json:"state"`
	Began  time.Time        `json:"began"`
	Ended  time.Time        `json:"ended,omitzero"`
	Counts *batch.Counts    `json:"counts,omitempty"`
	Files  map[string]int   `json:"files"`
	Bytes  map[string]int64 `json:"bytes"`
}

func (o *batchShowOptions) days(ctx context.Context, w io.Writer, c *inspect.Collection) (failed error) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !o.json {
		fmt.Fprintln(tab, "day\tpages\tsites\tapart\tunchanged\tdoc\txml\tother\tended\tstate")
	}
	t, err := inspect.Stats(ctx, []*inspect.Collection{c}, inspect.Span{})
	if err != nil {
		return err
	}
	rows := map[string]*inspect.Row{}
	for _, r := range t.Days {
		rows[r.Date] = r
	}
	for _, date := range c.Dates {
		d, err := c.Day(ctx, date)
		if errors.Is(err, batch.ErrDamaged) {
			failed = errors.Join(failed, err)
			if !o.json {
				fmt.Fprintf(tab, "%s%s%s\n", date, strings.Repeat("\t-", 8), "\t"+inspect.Damaged)
			}
			continue
		}
		if err != nil {
			return err
		}
		if o.json {
			line := dayLine{date, inspect.StateOf(d.State), d.State.Began, d.State.Ended, d.Counts, d.Files, d.Bytes}
			if err := printLine(w, line); err != nil {
				return err
			}
			continue
		}
		r, ended := rows[date], "-"
		if r == nil {
			r = &inspect.Row{}
		}
		if !d.State.Ended.IsZero() {
			ended = text.Time(d.State.Ended)
		}
		fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", date, grouped(r.Pages), r.Sites, grouped(r.Apart),
			grouped(r.Unchanged), stats.Bytes(d.Bytes["doc"]), stats.Bytes(d.Bytes["xml"]),
			stats.Bytes(d.Bytes["other"]), ended, inspect.StateOf(d.State))
	}
	return errors.Join(tab.Flush(), failed)
}

// pages lists the pages of a day.
func (o *batchShowOptions) pages(ctx context.Context, w, errs io.Writer, c *inspect.Collection, d *inspect.Day) error {
	if d.State.Nothing != "" {
		return fmt.Errorf("%s of %s: %w: %s", d.Date, c.Code, batch.ErrNothing, d.State.Nothing)
	}
	if d.Counts == nil {
		return fmt.Errorf("%s of %s is not done (%s): its pages are listed when it is", d.Date, c.Code,
			inspect.StateOf(d.State))
	}
	q := inspect.Query{Apart: o.other, Find: o.find, Offset: o.offset, Limit: o.limit + 1}
	if o.limit == 0 {
		q.Limit = -1
	}
	n := 0
	for e, err := range c.Records(ctx, d.Date, q) {
		if errors.Is(err, fs.ErrNotExist) {
			break // a day without pages of that kind
		}
		if err != nil {
			return err
		}
		if n == o.limit && o.limit > 0 {
			fmt.Fprintf(errs, "there are more: --offset %d\n", o.offset+n)
			return nil
		}
		n++
		if o.json {
			err = printLine(w, e)
		} else {
			_, err = fmt.Fprintf(w, "%s  %-3s  %s\n          %s\n", e.Fetched.Format(time.TimeOnly),
				cmp.Or(e.Language, "-"), inspect.VisibleLine(e.URL), inspect.VisibleLine(cmp.Or(e.Headline, "-")))
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		what := "pages in its language"
		if o.other {
			what = "pages in other languages"
		}
		if o.find != "" || o.offset > 0 {
			what = "such pages"
		}
		fmt.Fprintf(errs, "%s of %s has no %s\n", d.Date, c.Code, what)
	}
	return nil
}

// url shows what came of a URL.
func (o *batchShowOptions) url(ctx context.Context, w io.Writer, c *inspect.Collection, date, typed string) error {
	url := typed
	if u, err := seeds.ParseURL(typed); err == nil {
		url = u.Canonical().String()
	}
	v := &urlView{w: w, c: c, date: date, url: url, visible: isTerminal(w)}
	var err error
	if v.page, err = c.Page(ctx, date, url); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if v.doc, err = c.Document(ctx, date, url); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil && (v.page == nil || o.headers || o.body) {
		return err
	}
	return errors.Join(o.part(ctx, v), err)
}

// part shows what is wanted of a URL.
func (o *batchShowOptions) part(ctx context.Context, v *urlView) error {
	if v.page == nil && v.doc == nil {
		return fmt.Errorf("%s was not asked for on %s%s", v.url, v.date, notAsked(ctx, v.c, v.date, v.url))
	}
	switch {
	case o.json:
		return v.json()
	case o.xml:
		return v.xml(ctx)
	case o.text:
		return v.text(ctx)
	case o.headers:
		return v.headers()
	case o.body:
		return v.body()
	}
	return v.all()
}

// otherDays are the days on which a URL was asked for.
func otherDays(ctx context.Context, c *inspect.Collection, url string) (days []string) {
	for _, date := range c.Dates {
		if _, err := c.Document(ctx, date, url); err == nil {
			days = append(days, date)
		}
	}
	return days
}

// notAsked says on which other days a URL was asked for, and why it may not have been asked for on this one: the rule
// that refuses it or, if none does, how many links each rule has refused that day, of which no URL is recorded.
func notAsked(ctx context.Context, c *inspect.Collection, date, url string) string {
	days, text := otherDays(ctx, c, url), ", nor on any other day"
	if len(days) > 0 {
		text = ", but on " + strings.Join(days, ", ")
	}
	d, err := c.Day(ctx, date)
	if err != nil {
		return text // the day is being read anyway: its own error is shown
	}
	counts := linksRefused(d)
	v, err := c.Refused(ctx, d, url)
	switch {
	case errors.Is(err, fs.ErrNotExist) && counts != "":
		return text + "; rules refused links that day, whose URLs are not recorded: " + counts
	case errors.Is(err, fs.ErrNotExist):
		return text
	case err != nil:
		return fmt.Sprintf("%s; its rules cannot be read: %v", text, err)
	case v.Refused():
		return fmt.Sprintf("%s; the rule %s refuses it: %s", text, v.Rule, v.Why)
	}
	text += "; no rule refuses the URL itself: no page of that day links to it"
	if len(days) > 0 {
		text += ", or it was not due again"
	}
	if counts != "" {
		text += ", or only links that were refused: " + counts
	}
	return text
}

// linksRefused counts the links that a day has refused, by rule.
func linksRefused(d *inspect.Day) string {
	refused := d.State.RefusedLinks()
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(refused)) {
		parts = append(parts, fmt.Sprintf("%s %d", rule, refused[rule]))
	}
	return strings.Join(parts, ", ")
}

// A urlView is what there is of a URL on a day.
type urlView struct {
	w       io.Writer
	visible bool // w is a terminal
	c       *inspect.Collection
	date    string
	url     string
	page    *inspect.Page   // nil: it has no XML record
	doc     *batch.Document // nil: the day is not merged
}

// put writes text that comes from the network.
func (v *urlView) put(text []byte) error {
	if v.visible {
		text = []byte(inspect.Visible(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if _, err := v.w.Write(text); err != nil || bytes.HasSuffix(text, []byte("\n")) || !v.visible {
		return err
	}
	_, err := io.WriteString(v.w, "\n")
	return err
}

// record is the XML record, that of an earlier day where the page is unchanged.
func (v *urlView) record(ctx context.Context) (*inspect.Page, error) {
	if v.page != nil {
		return v.page, nil
	}
	pg, _, err := v.c.Earlier(ctx, v.date, v.found())
	if err == nil && pg == nil {
		err = fmt.Errorf("%s has no XML record on %s: %s", v.url, v.date, v.became())
	}
	return pg, err
}

func (v *urlView) xml(ctx context.Context) error {
	pg, err := v.record(ctx)
	if err != nil {
		return err
	}
	return v.put(pg.Line)
}

func (v *urlView) text(ctx context.Context) error {
	pg, err := v.record(ctx)
	if err != nil {
		return err
	}
	return v.put(append([]byte(pg.Record.Content), '\n'))
}

// answer is the document's answer.
func (v *urlView) answer() (*page.Response, error) {
	if v.doc == nil {
		return nil, fmt.Errorf("%s of %s is not merged yet", v.date, v.c.Code)
	}
	resp := new(page.Response)
	if err := v.doc.Response(resp); err != nil {
		return nil, fmt.Errorf("there is no answer: %s", v.became())
	}
	return resp, nil
}

func (v *urlView) headers() error {
	resp, err := v.answer()
	if err != nil {
		return err
	}
	return errors.Join(v.put(resp.RequestRaw), v.put(resp.Raw[:resp.HeadLen]))
}

// mostShown is how much of a body is decoded to be shown.
const mostShown = 256 << 20

func (v *urlView) body() error {
	resp, err := v.answer()
	if err != nil {
		return err
	}
	if err := fetch.Decode(resp, mostShown); err != nil && len(resp.Body) == 0 {
		return err
	}
	return v.put(resp.Body)
}

// found is what was found.
func (v *urlView) found() *inspect.URL {
	return &inspect.URL{URL: v.url, Page: v.page, Document: v.doc}
}

// became says what came of the URL, in words.
func (v *urlView) became() string { return v.found().Became() }

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
	Other    bool         `json:"other,omitempty"` // the record is among those in other languages
	Headline string       `json:"headline,omitempty"`
	Text     string       `json:"text,omitempty"`
}

func (v *urlView) json() error {
	l := urlLine{URL: v.url, Became: v.became()}
	if d := v.doc; d != nil {
		l.Status, l.From, l.Depth, l.Time, l.Type = d.Status, d.From, d.Depth, d.Time, d.Type
	}
	if v.page != nil {
		l.Entry, l.Other = &v.page.Entry, v.page.Apart
		l.Headline, l.Text = v.page.Record.Headline, v.page.Record.Content
	}
	return printLine(v.w, l)
}

// all shows everything in a few lines, with the main text below them.
func (v *urlView) all() error {
	tab := tabwriter.NewWriter(v.w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(tab, "%s\t%s\n", name, inspect.VisibleLine(value))
		}
	}
	row("url", v.url)
	row("became", v.became())
	if d := v.doc; d != nil {
		row("fetched", text.Time(d.Time)+", in "+d.Took.Round(time.Millisecond).String())
		row("from", cmp.Or(d.From, map[bool]string{true: "a seed", false: "what was known of earlier days"}[d.Seed]))
		row("depth", fmt.Sprint(d.Depth))
		row("type", d.Type)
		if d.Status != 0 {
			row("size", stats.Bytes(int64(len(d.Raw)-d.HeadLen)))
			row("truncated", string(d.Truncated))
			row("malformed", d.Malformed)
		}
	}
	if pg := v.page; pg != nil {
		r := &pg.Record
		where := pg.Part
		if pg.Apart {
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
	if err := tab.Flush(); err != nil || v.page == nil {
		return err
	}
	_, err := fmt.Fprintf(v.w, "\n%s\n", inspect.Visible(v.page.Record.Content))
	return err
}
