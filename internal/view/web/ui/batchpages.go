package ui

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/state/forecast"
)

const (
	daysAcross = 7  // days in the table of collections
	rowsDown   = 60 // collections in that table
	daysListed = 50 // days of a collection
)

// batchPages serves the pages of batch crawls. Its fields do not change.
type batchPages struct {
	batches *batchSet
	out     *responder
}

func (h *batchPages) views() map[string]view {
	return map[string]view{
		"/batches/{batch}":                          withPathTarget(h.batches.find, h.collectionsPage),
		"/batches/{batch}/collections/{collection}": withPathTarget(h.batches.collection, h.collectionPage),
		aDay:           withPathTarget(h.batches.day, h.dayPage),
		aDay + "/page": withPathTarget(h.batches.day, h.batchRecordPage),
	}
}

// head returns the head of a page that reports an error.
func (h *batchPages) head(r *http.Request) top {
	if b := h.batches.named(r.PathValue("batch")); b != nil {
		return h.topOf(b, "", "")
	}
	return h.out.top(nil, "", "")
}

// topOf returns the head of a page of batch crawls.
func (h *batchPages) topOf(b *batches, title, tab string) top {
	t := h.out.top(nil, title, tab)
	t.Batch, t.Folder = b.name, b.where
	return t
}

// A cell is a day of a collection in the table, or nil.
type cell struct {
	*inspect.Brief
	Link string
}

type collectionRow struct {
	*inspect.Collection
	Link  string
	Cells []*cell
}

func (h *batchPages) collectionsPage(b *batches, r *http.Request) (*filled, error) {
	l, err := b.collections(r.Context())
	if err != nil {
		return nil, err
	}
	all := l.all
	dates := datesFrom(all, r.FormValue("before"), daysAcross+1, false)
	p := struct {
		top
		Dates       []string
		Rows        []collectionRow
		Charts      []chart
		Drawn       int
		LeftOut     string
		Older, More string
		First       bool
	}{top: h.topOf(b, "Collections", "collections"), LeftOut: l.unreadable, First: r.FormValue("before")+
		r.FormValue("after") == ""}
	if len(dates) > daysAcross {
		dates = dates[:daysAcross]
		older := url.Values{"before": {dates[daysAcross-1]}}
		if after := r.FormValue("after"); after != "" {
			older.Set("after", after)
		}
		p.Older = "?" + older.Encode()
	}
	p.Dates = dates
	some, next := collectionsFrom(all, r.FormValue("after"), rowsDown)
	if next != "" {
		p.More = "?" + url.Values{"before": {r.FormValue("before")}, "after": {next}}.Encode()
	}
	var days []dayOf
	for _, c := range some {
		for _, date := range dates {
			if c.Has(date) {
				days = append(days, dayOf{c, date})
			}
		}
	}
	briefs, err := b.briefs(r.Context(), days)
	if err != nil {
		return nil, err
	}
	for _, c := range some {
		row := collectionRow{Collection: c, Link: b.link(c, "")}
		for _, date := range dates {
			if !c.Has(date) {
				row.Cells = append(row.Cells, nil)
				continue
			}
			row.Cells = append(row.Cells, &cell{briefs[0], b.link(c, date)})
			briefs = briefs[1:]
		}
		p.Rows = append(p.Rows, row)
	}
	p.Charts, p.Drawn, err = b.growth(r, all)
	return &filled{"collections", p}, err
}

// link returns the path of a collection, or of one of its days.
func (b *batches) link(c *inspect.Collection, date string) string {
	at := "/batches/" + url.PathEscape(b.name) + "/collections/" + url.PathEscape(c.Directory)
	if date != "" {
		at += "/days/" + date
	}
	return at
}

func (h *batchPages) collectionPage(d batchDay, r *http.Request) (*filled, error) {
	b, c := d.batches, d.c
	one := []*inspect.Collection{c}
	days := daysFrom(one, r.FormValue("after"), daysListed+1)
	p := struct {
		top
		C      *inspect.Collection
		Days   []*cell
		Charts []chart
		Drawn  int
		Older  string
		First  bool
	}{top: h.topOf(b, c.Code, "collections"), C: c, First: r.FormValue("after") == ""}
	if len(days) > daysListed {
		days = days[:daysListed]
		p.Older = "?" + url.Values{"after": {days[daysListed-1].key()}}.Encode()
	}
	briefs, err := b.briefs(r.Context(), days)
	if err != nil {
		return nil, err
	}
	for _, x := range briefs {
		p.Days = append(p.Days, &cell{x, b.link(c, x.Date)})
	}
	p.Charts, p.Drawn, err = b.growth(r, one)
	return &filled{"collection", p}, err
}

func (h *batchPages) dayPage(of batchDay, r *http.Request) (*filled, error) {
	d, err := of.answer(r)
	if err != nil {
		return nil, err
	}
	l, err := of.records(r)
	if err != nil {
		return nil, err
	}
	p := struct {
		top
		D       *dayAnswer
		Link    string // path of the collection
		At      string // path of the day
		Counts  []count
		Records []batch.Entry
		Find    string
		Other   bool
		Looked  int
		More    string
		First   bool
	}{top: h.topOf(of.batches, of.c.Code+" "+of.date, "collections"), D: d, Link: of.link(of.c, ""),
		At: of.link(of.c, of.date), Records: l.Records, Looked: l.Looked, Find: r.FormValue("find"),
		Other: r.FormValue("of") == "other", First: r.FormValue("cursor") == ""}
	for _, name := range slices.SortedFunc(maps.Keys(d.Counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Counts[b], d.Counts[a]), cmp.Compare(a, b))
	}) {
		if p.Counts = append(p.Counts, count{Name: name, N: d.Counts[name]}); len(p.Counts) == maxLimit {
			break
		}
	}
	p.More = moreLink(r, l.Next)
	return &filled{"day", p}, nil
}

func (h *batchPages) batchRecordPage(d batchDay, r *http.Request) (*filled, error) {
	x, err := d.record(r)
	if err != nil {
		return nil, err
	}
	show := r.FormValue("show")
	if !slices.Contains([]string{"xml", "headers"}, show) {
		show = "text"
	}
	if x.Text, x.Cut = cutShown(x.Text, x.Cut); show == "xml" {
		x.XML, x.Cut = cutShown(x.XML, x.Cut)
	}
	x.Request, x.Head = strings.ReplaceAll(x.Request, "\r\n", "\n"), strings.ReplaceAll(x.Head, "\r\n", "\n")
	return &filled{"dayrecord", struct {
		top
		R        *batchRecord
		C        *inspect.Collection
		Date     string
		Link, At string
		Show     string
	}{h.topOf(d.batches, cmp.Or(plain(cut(x.Headline, 80)), plain(cut(x.URL, 80))), "collections"), x, d.c, d.date,
		d.link(d.c, ""), d.link(d.c, d.date), show}}, nil
}

// pageText is the maximum length of a text on a page.
const pageText = 256 << 10

func cutShown(text string, was bool) (string, bool) {
	return cut(text, pageText), was || len(text) > pageText
}

const (
	growthDays  = 366  // days to draw, at most
	growthReads = 4000 // days of collections to read for a chart, at most
)

// growth draws the growth of collections over their last days, and returns the number of days.
func (b *batches) growth(r *http.Request, all []*inspect.Collection) ([]chart, int, error) {
	dates := datesFrom(all, "", min(growthDays, max(growthReads/max(len(all), 1), 2)), false)
	if len(dates) < 2 {
		return nil, 0, nil
	}
	var days []dayOf
	for _, date := range slices.Backward(dates) {
		for _, c := range all {
			if c.Has(date) {
				days = append(days, dayOf{c, date})
			}
		}
	}
	briefs, err := b.briefs(r.Context(), days)
	if err != nil {
		return nil, 0, err
	}
	var sums []*inspect.Brief // of each day that at least one collection has completed
	for _, x := range briefs {
		if !x.Done {
			continue
		}
		if len(sums) == 0 || sums[len(sums)-1].Date != x.Date {
			sums = append(sums, &inspect.Brief{Row: inspect.Row{Date: x.Date}})
		}
		sum := sums[len(sums)-1]
		sum.Pages, sum.Bytes, sum.Sites = sum.Pages+x.Pages, sum.Bytes+x.Bytes, sum.Sites+x.Sites
		sum.Unchanged, sum.Apart = sum.Unchanged+x.Unchanged, sum.Apart+x.Apart
	}
	if len(sums) < 2 {
		return nil, 0, nil
	}
	number := func(v float64) string { return forecast.Grouped(int64(v)) }
	size := func(v float64) string { return stats.Bytes(int64(v)) }
	pages, bytes := 0.0, 0.0
	charts := []chart{
		drawDays("Pages, total", "good", sums,
			func(x *inspect.Brief) float64 { pages += float64(x.Pages); return pages },
			number),
		drawDays("Bytes, total", "", sums, func(x *inspect.Brief) float64 { bytes += float64(x.Bytes); return bytes },
			size),
		drawDays("Pages per day", "good", sums, func(x *inspect.Brief) float64 { return float64(x.Pages) }, number)}
	if len(all) == 1 { // sites of several collections may overlap
		charts = append(charts, drawDays("Sites per day", "", sums, func(x *inspect.Brief) float64 {
			return float64(x.Sites)
		}, number))
	}
	return charts, len(sums), nil
}

// drawDays draws a chart over days.
func drawDays(name, class string, days []*inspect.Brief, value func(*inspect.Brief) float64,
	say func(float64) string) chart {
	points := make([]stats.Point, len(days))
	values := map[time.Time]float64{}
	for i, d := range days {
		at, err := time.Parse(time.DateOnly, d.Date)
		if err == nil { // every day has a valid date
			points[i].Time = at
		}
		values[at] = value(d)
	}
	c := drawPoints(name, class, points, func(p *stats.Point) float64 { return values[p.Time] }, say)
	c.From, c.To = days[0].Date, days[len(days)-1].Date
	c.Says = fmt.Sprintf("%s from %s to %s: at most %s, finally %s", name, c.From, c.To, c.Most, c.Last)
	return c
}
