package ui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
)

// Results of days of collections.
type (
	dayList struct {
		Days []*inspect.Brief `json:"days"` // newest first
		Next string           `json:"next,omitempty"`
	}
	dayAnswer struct {
		Collection string           `json:"collection"`
		Directory  string           `json:"directory"`
		Date       string           `json:"day"`
		State      string           `json:"state"`
		Done       bool             `json:"done"`
		Nothing    string           `json:"nothing,omitempty"` // why nothing could be fetched
		Began      time.Time        `json:"began"`
		Ended      time.Time        `json:"ended,omitzero"`
		Sites      int              `json:"sites"`
		IdleShare  float64          `json:"idle_share"`
		Counts     map[string]int64 `json:"counts"` // for a day that is not done, those of its jobs so far
		Jobs       []jobEntry       `json:"jobs"`   // in order of execution
		Folders    []folderEntry    `json:"folders"`
	}
	jobEntry struct {
		Round   int       `json:"round"`
		Job     string    `json:"job"`
		Began   time.Time `json:"began"`
		Seconds float64   `json:"seconds"`
		Inputs  int       `json:"inputs"` // number of files
		Failed  int       `json:"failed"` // failed attempts of tasks
	}
	folderEntry struct {
		Name  string      `json:"name"`
		Path  string      `json:"path"`
		Files int         `json:"files"`
		Bytes int64       `json:"bytes"`
		First []fileEntry `json:"first"` // some of the files
	}
	fileEntry struct {
		Name  string `json:"name"`
		Bytes int64  `json:"bytes"`
	}
)

// A dayOf is a day of a collection.
type dayOf struct {
	c    *inspect.Collection
	date string
}

// A batchDay is a day with its batch crawls.
type batchDay struct {
	*batches
	dayOf
}

// requested returns the collection that a request names, or all.
func (b *batches) requested(r *http.Request) ([]*inspect.Collection, error) {
	if name := r.FormValue("collection"); name != "" {
		c, err := b.collection(r.Context(), name)
		return []*inspect.Collection{c}, err
	}
	l, err := b.collections(r.Context())
	return l.all, err
}

func getDays(b *batches, r *http.Request, n int) (x dayList, err error) {
	all, err := b.requested(r)
	if err != nil {
		return x, err
	}
	days := daysFrom(all, r.FormValue("after"), n+1)
	if len(days) > n {
		days = days[:n]
		x.Next = days[n-1].key()
	}
	x.Days, err = b.briefs(r.Context(), days)
	x.Days = orEmpty(x.Days)
	return x, err
}

func (d dayOf) key() string { return d.date + "/" + d.c.Directory }

// daysFrom returns up to n days after another one in the list, newest first.
func daysFrom(all []*inspect.Collection, after string, n int) (days []dayOf) {
	date, dir, with := strings.Cut(after, "/")
	dates := n
	if with {
		dates++ // the date itself may have more collections
	}
	for _, d := range datesFrom(all, date, dates, with) {
		for _, c := range all {
			if c.Has(d) && (d != date || c.Directory > dir) {
				if days = append(days, dayOf{c, d}); len(days) == n {
					return days
				}
			}
		}
	}
	return days
}

// datesFrom returns up to n dates before another one, newest first; with: including that one.
func datesFrom(all []*inspect.Collection, before string, n int, with bool) (dates []string) {
	for _, c := range all {
		end := len(c.Dates)
		if before != "" {
			at, has := slices.BinarySearch(c.Dates, before)
			if end = at; has && with {
				end++
			}
		}
		dates = append(dates, c.Dates[max(end-n-1, 0):end]...)
	}
	slices.Sort(dates)
	dates = slices.Compact(dates)
	slices.Reverse(dates)
	return dates[:min(len(dates), n)]
}

const maxFilesNamed = 20 // per folder

// settleTime is the time after a day's end during which it is not cached, because obsolete files are still being
// removed.
const settleTime = time.Minute

// answer returns everything about a day. It is cached until the day changes, or the last day, which removes files of
// earlier ones.
func (d batchDay) answer(r *http.Request) (*dayAnswer, error) {
	key := fullDayKey{dayKey{d.c.Directory, d.date, d.c.ChangedOn(d.date)}, d.c.Changed}
	if x := d.fullDays.get(key); x != nil {
		return x, nil
	}
	if !d.acquire(r.Context()) {
		return nil, r.Context().Err()
	}
	defer d.release()
	x, err := readDay(r.Context(), d.c, d.date)
	if err == nil && x.Done && !x.Ended.IsZero() && time.Since(x.Ended) > settleTime {
		d.fullDays.put(key, x)
	}
	return x, err
}

// readDay reads everything about a day.
func readDay(ctx context.Context, c *inspect.Collection, date string) (*dayAnswer, error) {
	var folders []inspect.Folder
	var wait errgroup.Group
	wait.Go(func() (err error) {
		folders, err = c.Files(ctx, date, maxFilesNamed)
		return err
	})
	d, err := c.Day(ctx, date)
	if err := cmp.Or(err, wait.Wait()); err != nil {
		return nil, damageProblem(err)
	}
	st := d.State
	x := &dayAnswer{Collection: c.Code, Directory: c.Directory, Date: date, State: inspect.StateOf(st),
		Done: d.Counts != nil, Nothing: st.Nothing,
		Began: st.Began, Ended: st.Ended, IdleShare: st.IdleShare(), Counts: map[string]int64{}, Jobs: []jobEntry{},
		Folders: []folderEntry{}}
	for i := range st.Done {
		j := &st.Done[i]
		x.Jobs = append(x.Jobs, jobEntry{j.Round, j.Job, j.Began, j.Seconds, j.Inputs, j.Failed})
		if d.Counts == nil {
			for name, n := range j.Counters {
				x.Counts[name] += n
			}
		}
	}
	if d.Counts != nil {
		x.Counts, x.Sites = d.Counts.Counts, d.Counts.Sites
	}
	for _, f := range folders {
		e := folderEntry{Name: f.Name, Path: f.Path, Files: f.All, Bytes: f.Bytes, First: []fileEntry{}}
		for _, file := range f.Files {
			e.First = append(e.First, fileEntry(file))
		}
		x.Folders = append(x.Folders, e)
	}
	return x, nil
}

// damageProblem returns the problem for damaged files.
func damageProblem(err error) error {
	if errors.Is(err, batch.ErrDamaged) {
		return &problem{http.StatusInternalServerError, "Files of the day are damaged", err.Error()}
	}
	return err
}
