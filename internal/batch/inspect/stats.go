package inspect

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"kumo/internal/batch"
)

// A Row contains the statistics of a day of a collection, of several days, or of all collections.
type Row struct {
	Date       string `json:"day,omitempty"`        // "" for several days
	Collection string `json:"collection,omitempty"` // code; "" for all collections
	Directory  string `json:"directory,omitempty"`
	Days       int    `json:"days"`

	Pages int64 `json:"pages"` // in the collection's language, new or changed: those in xml/
	Sites int   `json:"sites"` // registered domains of these pages
	Bytes int64 `json:"bytes"` // body bytes of these pages as sent

	Apart     int64            `json:"apart"` // pages in other languages: those in other/
	ApartBy   map[string]int64 `json:"apart_by_language"`
	Charsets  map[string]int64 `json:"charsets"`  // of all fetched pages
	Fetched   int64            `json:"fetched"`   // fetched pages of any type and language
	Unchanged int64            `json:"unchanged"` // URLs with the same content as before
	Redirects int64            `json:"redirects"`
	Errors    int64            `json:"errors"`   // other answers
	Failed    int64            `json:"failed"`   // without an answer
	LeftOut   int64            `json:"left_out"` // excluded by a rule
}

// A Table contains the statistics of a storage location. Days that are not done are only listed, in Open.
type Table struct {
	Days        []*Row `json:"days"`        // per collection, by date, then collection
	Collections []*Row `json:"collections"` // totals per collection
	All         *Row   `json:"all"`
	Open        []Open `json:"open"` // days that are not done
	// Damaged lists days that are not counted because their files cannot be read.
	Damaged []string `json:"damaged,omitempty"`
}

// An Open is a day of a collection that is not done.
type Open struct {
	Date       string `json:"day"`
	Collection string `json:"collection"`
	Round      int    `json:"round"`
	Job        string `json:"job"`               // next or current job
	Nothing    string `json:"nothing,omitempty"` // why nothing was fetched; then Job is empty
}

// A Span selects the days from First to Last; "" means no bound.
type Span struct{ First, Last string }

func (s Span) contains(date string) bool { return date >= s.First && (s.Last == "" || date <= s.Last) }

// Stats reads the statistics of collections.
func Stats(ctx context.Context, all []*Collection, span Span) (*Table, error) {
	t := &Table{Days: []*Row{}, Collections: []*Row{}, All: newRow(""), Open: []Open{}}
	every, dates := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		sum, sites := newRow(c.Code), map[string]bool{}
		sum.Directory = c.Directory
		for _, date := range c.Dates {
			if !span.contains(date) {
				continue
			}
			d, err := c.Day(ctx, date)
			if err == nil && d.Counts == nil {
				t.Open = append(t.Open, Open{date, c.Code, d.State.Next.Round, d.State.Next.Job, d.State.Nothing})
				continue
			}
			if err == nil {
				err = c.sites(ctx, date, sites)
			}
			if errors.Is(err, batch.ErrDamaged) {
				t.Damaged = append(t.Damaged, err.Error())
				continue
			}
			if err != nil {
				return nil, err
			}
			r := d.row(c)
			t.Days = append(t.Days, r)
			sum.add(r)
			dates[date] = true
		}
		sum.Sites = len(sites)
		maps.Copy(every, sites)
		t.All.add(sum)
		t.Collections = append(t.Collections, sum)
	}
	t.All.Sites, t.All.Days = len(every), len(dates)
	slices.SortStableFunc(t.Days, func(a, b *Row) int { return cmp.Compare(a.Date, b.Date) })
	return t, nil
}

func newRow(code string) *Row {
	return &Row{Collection: code, ApartBy: map[string]int64{}, Charsets: map[string]int64{}}
}

// row returns the day as a row.
func (d *Day) row(c *Collection) *Row {
	r := newRow(c.Code)
	r.Date, r.Directory, r.Days, r.Sites = d.Date, c.Directory, 1, d.Counts.Sites
	plain := map[string]*int64{"kept": &r.Pages, "kept bytes": &r.Bytes, "pages": &r.Fetched, "unchanged": &r.Unchanged,
		"redirects": &r.Redirects, "errors": &r.Errors}
	for name, n := range d.Counts.Counts {
		kind, what, _ := strings.Cut(name, " ")
		switch {
		case plain[name] != nil:
			*plain[name] = n
		case kind == "failed:":
			r.Failed += n
		case strings.HasPrefix(name, "left out: "):
			r.LeftOut += n
		case kind == "charset":
			r.Charsets[what] += n
		case kind == "apart:":
			r.ApartBy[what] += n
			r.Apart += n
		}
	}
	return r
}

// add adds another row, except Sites, which may overlap.
func (r *Row) add(o *Row) {
	r.Days += o.Days
	r.Pages, r.Bytes, r.Apart = r.Pages+o.Pages, r.Bytes+o.Bytes, r.Apart+o.Apart
	r.Fetched, r.Unchanged, r.Redirects = r.Fetched+o.Fetched, r.Unchanged+o.Unchanged, r.Redirects+o.Redirects
	r.Errors, r.Failed, r.LeftOut = r.Errors+o.Errors, r.Failed+o.Failed, r.LeftOut+o.LeftOut
	for k, n := range o.Charsets {
		r.Charsets[k] += n
	}
	for k, n := range o.ApartBy {
		r.ApartBy[k] += n
	}
}

// ByDate sums the rows of each date. Sites are set only if there is one collection.
func (t *Table) ByDate() (rows []*Row) {
	for _, d := range t.Days {
		if len(rows) == 0 || rows[len(rows)-1].Date != d.Date {
			rows = append(rows, newRow(""))
			rows[len(rows)-1].Date = d.Date
		}
		r := rows[len(rows)-1]
		r.add(d)
		r.Sites += d.Sites
	}
	return rows
}

// Keys returns the sorted keys of a map in all rows.
func Keys(rows []*Row, of func(*Row) map[string]int64) []string {
	all := map[string]bool{}
	for _, r := range rows {
		for k := range of(r) {
			all[k] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// sites adds a day's sites to a set.
func (c *Collection) sites(ctx context.Context, date string, all map[string]bool) error {
	err := batch.EachLine(ctx, c.place, path.Join(c.folder(pagesFolder, date), batch.SitesName), func(line []byte) error {
		s, err := batch.ParseSite(line)
		if err == nil {
			all[s.Site] = true
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
