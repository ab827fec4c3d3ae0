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

// Records of many days by words.
type (
	recordsFound struct {
		Hits   []recordHit `json:"hits"`           // the newest day first
		Days   int         `json:"days"`           // that were looked into
		Looked int         `json:"looked"`         // records that were gone through
		Next   string      `json:"next,omitempty"` // goes on behind these as "cursor"; missing: all was gone through
		Cut    string      `json:"cut,omitempty"`  // why the search ended though fewer were found than were asked for
	}
	recordHit struct {
		batch.Entry
		Collection string `json:"collection"`
		Directory  string `json:"directory"`
		Day        string `json:"day"`
		Snippet    string `json:"snippet,omitempty"` // what stands around the first word that the text has
	}
)

const searchDays = 300 // that are looked into for one answer

var dayPattern = regexp.MustCompile(`^([0-9]{4}(-[0-9]{2}){0,2})?$`)

// A searchPosition is where a search goes on: in a day, or behind it.
type searchPosition struct {
	date, dir string
	cursor    int64 // in the day; -1: behind it
}

func (p searchPosition) String() string {
	if p.cursor < 0 {
		return p.afterKey()
	}
	return fmt.Sprintf("%s/%s/%d", p.date, p.dir, p.cursor)
}

// afterKey is the day as daysFrom takes it.
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
		return p, badRequest("cursor is %q: \"next\" of an answer is wanted", cut(text, 40))
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
	if err := (&lookup.Query{Words: q.Words}).Check(); err != nil { // the same bounds
		return nil, badRequest("%v", err)
	}
	all, err := b.requested(r)
	if err != nil {
		return nil, err
	}
	days := r.FormValue("day")
	if !dayPattern.MatchString(days) {
		return nil, badRequest("day is %q: a day such as 2026-11-26 is wanted, or a month or a year", cut(days, 40))
	}
	return b.search(r.Context(), within(all, days), q, from, n)
}

// within are collections with their days that begin so.
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

// search goes through a bounded part of the records of days, the newest first, and gives up to n that fit.
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
		case errors.Is(err, fs.ErrNotExist): // no page of that kind, or not yet
			l = &inspect.RecordList{}
		case errors.Is(err, inspect.ErrCursor) && cursor > 0:
			return nil, badRequest("cursor is %q: \"next\" of an answer is wanted", from)
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
		x.Cut = fmt.Sprintf("%d records of %d days were gone through", x.Looked, x.Days)
	}
	return x, nil
}

// add adds what a list of a day has found.
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
