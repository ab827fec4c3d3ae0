package ui

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
)

const (
	daysAcross = 7  // days of the table of collections
	rowsDown   = 60 // collections of it
	daysListed = 50 // of a collection
)

// batchPages serve the pages of batch crawls. Its fields do not change.
type batchPages struct {
	batches *batchSet
	out     *responder
}

func (h *batchPages) views() map[string]view {
	return map[string]view{
		"/batches/{batch}":                          h.collectionsPage,
		"/batches/{batch}/collections/{collection}": h.collectionPage,
		aDay:           h.dayPage,
		aDay + "/page": h.batchRecordPage,
	}
}

// head returns the head of a page that reports an error.
func (h *batchPages) head(r *http.Request) top {
	if b := h.batches.named(r.PathValue("batch")); b != nil {
		return h.topOf(b, "", "")
	}
	return h.out.top(nil, "", "")
}

// topOf is the head of pages of batch crawls.
func (h *batchPages) topOf(b *batches, title, tab string) top {
	t := h.out.top(nil, title, tab)
	t.Batch, t.Folder = b.name, b.where
	return t
}

// A cell is a day of a collection in the table; nil where there is none.
type cell struct {
	*inspect.Brief
	Link string
}

type collectionRow struct {
	*inspect.Collection
	Link  string
	Cells []*cell
}

func (h *batchPages) collectionsPage(w http.ResponseWriter, r *http.Request) error {
	b, err := h.batches.find(r)
	if err != nil {
		return err
	}
	l, err := b.collections(r.Context())
	if err != nil {
		return err
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
	}{top: h.topOf(b, "Collections", "collections"), LeftOut: l.left, First: r.FormValue("before")+
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
		return err
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
	if p.Charts, p.Drawn, err = b.growth(r, all); err != nil {
		return err
	}
	h.out.render(w, http.StatusOK, "collections", p)
	return nil
}

// link is where a collection is, or a day of it.
func (b *batches) link(c *inspect.Collection, date string) string {
	at := "/batches/" + url.PathEscape(b.name) + "/collections/" + url.PathEscape(c.Directory)
	if date != "" {
		at += "/days/" + date
	}
	return at
}

func (h *batchPages) collectionPage(w http.ResponseWriter, r *http.Request) error {
	b, c, err := h.batches.collection(r)
	if err != nil {
		return err
	}
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
		return err
	}
	for _, x := range briefs {
		p.Days = append(p.Days, &cell{x, b.link(c, x.Date)})
	}
	if p.Charts, p.Drawn, err = b.growth(r, one); err != nil {
		return err
	}
	h.out.render(w, http.StatusOK, "collection", p)
	return nil
}

func (h *batchPages) dayPage(w http.ResponseWriter, r *http.Request) error {
	b, c, date, err := h.batches.day(r)
	if err != nil {
		return err
	}
	d, err := b.day(r.Context(), c, date)
	if err != nil {
		return err
	}
	l, err := b.records(r, c, date)
	if err != nil {
		return err
	}
	p := struct {
		top
		D       *dayAnswer
		Link    string // of the collection
		At      string // of the day
		Counts  []count
		Records []batch.Entry
		Find    string
		Other   bool
		Looked  int
		More    string
		First   bool
	}{top: h.topOf(b, c.Code+" "+date, "collections"), D: d, Link: b.link(c, ""), At: b.link(c, date), Records: l.Records,
		Looked: l.Looked,
		Find:   r.FormValue("find"), Other: r.FormValue("of") == "other", First: r.FormValue("cursor") == ""}
	for _, name := range slices.SortedFunc(maps.Keys(d.Counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Counts[b], d.Counts[a]), cmp.Compare(a, b))
	}) {
		if p.Counts = append(p.Counts, count{Name: name, N: d.Counts[name]}); len(p.Counts) == maxLimit {
			break
		}
	}
	if l.Next != nil {
		q := r.URL.Query()
		q.Set("cursor", strconv.FormatInt(*l.Next, 10))
		p.More = "?" + q.Encode()
	}
	h.out.render(w, http.StatusOK, "day", p)
	return nil
}

func (h *batchPages) batchRecordPage(w http.ResponseWriter, r *http.Request) error {
	b, c, date, err := h.batches.day(r)
	if err != nil {
		return err
	}
	x, err := b.record(r.Context(), c, date, r.FormValue("url"))
	if err != nil {
		return err
	}
	show := r.FormValue("show")
	if !slices.Contains([]string{"xml", "headers"}, show) {
		show = "text"
	}
	if x.Text, x.Cut = cutShown(x.Text, x.Cut); show == "xml" {
		x.XML, x.Cut = cutShown(x.XML, x.Cut)
	}
	x.Request, x.Head = strings.ReplaceAll(x.Request, "\r\n", "\n"), strings.ReplaceAll(x.Head, "\r\n", "\n")
	h.out.render(w, http.StatusOK, "dayrecord", struct {
		top
		R        *batchRecord
		C        *inspect.Collection
		Date     string
		Link, At string
		Show     string
	}{h.topOf(b, cmp.Or(plain(cut(x.Headline, 80)), plain(cut(x.URL, 80))), "collections"), x, c, date, b.link(c, ""),
		b.link(c, date), show})
	return nil
}

// pageText is how much of a text a page shows.
const pageText = 256 << 10

func cutShown(text string, was bool) (string, bool) {
	return cut(text, pageText), was || len(text) > pageText
}
