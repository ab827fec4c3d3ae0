package ui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/app/lookup"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
)

// Records of several days by words.
type (
	recordsFound struct {
		Hits   []recordHit `json:"hits"`           // newest day first
		Days   int         `json:"days"`           // number of searched days
		Looked int         `json:"looked"`         // number of scanned records
		Next   string      `json:"next,omitempty"` // value for "cursor" to continue; missing: all records were searched
		Cut    string      `json:"cut,omitempty"`  // why the search ended before enough records were found
	}
	recordHit struct {
		batch.Entry
		Collection string `json:"collection"`
		Directory  string `json:"directory"`
		Day        string `json:"day"`
		Snippet    string `json:"snippet,omitempty"` // text around the first match in the text
	}
)

const searchDays = 300 // maximum number of days per answer

var dayPattern = regexp.MustCompile(`^([0-9]{4}(-[0-9]{2}){0,2})?$`)

// A searchPosition is where a search continues: in a day, or after it.
type searchPosition struct {
	date, dir string
	cursor    int64 // position in the day; -1: after it
}

func (p searchPosition) String() string {
	if p.cursor < 0 {
		return p.afterKey()
	}
	return fmt.Sprintf("%s/%s/%d", p.date, p.dir, p.cursor)
}

// afterKey returns the day in the form that daysFrom takes.
func (p searchPosition) afterKey() string {
	if p.date == "" {
		return ""
	}
	return p.date + "/" + p.dir
}

func searchFrom(text string) (p searchPosition, err error) {
	date, rest, is := strings.Cut(text, "/")
	dir, number, within := strings.Cut(rest, "/")
	p = searchPosition{date, dir, -1}
	if within {
		p.cursor, err = strconv.ParseInt(number, 10, 64)
	}
	if text != "" && !is || err != nil || within && p.cursor < 0 {
		return p, badRequest("cursor is %q: expected \"next\" of an answer", cut(text, 40))
	}
	return p, nil
}

func getBatchSearch(b *batches, r *http.Request, n int) (*recordsFound, error) {
	from, err := searchFrom(r.FormValue("cursor"))
	if err != nil {
		return nil, err
	}
	q, err := recordQuery(r)
	if err != nil {
		return nil, err
	}
	q.Words = strings.Fields(r.FormValue("words"))
	if err := (&lookup.Query{Words: q.Words}).Check(); err != nil { // the same limits apply
		return nil, badRequest("%v", err)
	}
	all, err := b.requested(r)
	if err != nil {
		return nil, err
	}
	days := r.FormValue("day")
	if !dayPattern.MatchString(days) {
		return nil, badRequest("day is %q: expected a day as 2026-11-26, or a month or year", cut(days, 40))
	}
	return b.search(r.Context(), within(all, days), q, from, n)
}

// within returns the collections, restricted to days with a prefix.
func within(all []*inspect.Collection, days string) (some []*inspect.Collection) {
	for _, c := range all {
		only := *c
		only.Dates = slices.DeleteFunc(slices.Clone(c.Dates), func(date string) bool {
			return !strings.HasPrefix(date, days)
		})
		if len(only.Dates) > 0 {
			some = append(some, &only)
		}
	}
	return some
}

// search scans a bounded part of the records of days, newest first, and returns up to n matches.
func (b *batches) search(ctx context.Context, all []*inspect.Collection, q inspect.Query, from searchPosition,
	n int) (*recordsFound, error) {
	if !b.acquire(ctx) {
		return nil, ctx.Err()
	}
	defer b.release()
	days := daysFrom(all, from.afterKey(), searchDays+1)
	cursor := int64(0)
	in := slices.IndexFunc(all, func(c *inspect.Collection) bool { return c.Directory == from.dir })
	if from.cursor >= 0 && in >= 0 && all[in].Has(from.date) {
		days, cursor = append([]dayOf{{all[in], from.date}}, days...), from.cursor
	}
	budget := inspect.NewBudget(&q)
	x, at := &recordsFound{Hits: []recordHit{}}, from
	for _, d := range days {
		if x.Days == searchDays || budget.Spent() || len(x.Hits) == n {
			x.Next = at.String()
			break
		}
		x.Days++
		q.Limit = n - len(x.Hits)
		l, err := d.c.ListWithin(ctx, d.date, q, cursor, budget)
		switch {
		case errors.Is(err, fs.ErrNotExist): // the day has no such pages, or not yet
			l = &inspect.RecordList{}
		case errors.Is(err, inspect.ErrCursor) && cursor > 0:
			return nil, badRequest("cursor is %q: expected \"next\" of an answer", from)
		case err != nil:
			return nil, damageProblem(err)
		}
		x.add(d, l, q.Words)
		if l.Next > 0 {
			x.Next = searchPosition{d.date, d.c.Directory, l.Next}.String()
			break
		}
		at, cursor = searchPosition{d.date, d.c.Directory, -1}, 0
	}
	if x.Next != "" && len(x.Hits) < n {
		x.Cut = fmt.Sprintf("%d records of %d days were searched", x.Looked, x.Days)
	}
	return x, nil
}

// add adds the matches of a day.
func (x *recordsFound) add(d dayOf, l *inspect.RecordList, words []string) {
	x.Looked += l.Looked
	for i := range l.Records {
		h := recordHit{Entry: l.Records[i], Collection: d.c.Code, Directory: d.c.Directory, Day: d.date}
		if len(words) > 0 {
			h.Snippet = lookup.Excerpt(l.Texts[i], words)
		}
		x.Hits = append(x.Hits, h)
	}
}
