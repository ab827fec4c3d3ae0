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

// What days of collections came to.
type (
	dayList struct {
		Days []*inspect.Brief `json:"days"` // the newest first
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
		Counts     map[string]int64 `json:"counts"` // of a day that is not done those of its jobs so far
		Jobs       []jobEntry       `json:"jobs"`   // in the order in which they were done
		Folders    []folderEntry    `json:"folders"`
	}
	jobEntry struct {
		Round   int       `json:"round"`
		Job     string    `json:"job"`
		Began   time.Time `json:"began"`
		Seconds float64   `json:"seconds"`
		Inputs  int       `json:"inputs"` // files
		Failed  int       `json:"failed"` // attempts of tasks
	}
	folderEntry struct {
		Name  string      `json:"name"`
		Path  string      `json:"path"`
		Files int         `json:"files"`
		Bytes int64       `json:"bytes"`
		First []fileEntry `json:"first"` // of the files
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

// A batchDay is a day with the batch crawls that it is of.
type batchDay struct {
	*batches
	dayOf
}

// requested are the collections of which a request asks: all, or the one that it names.
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

// daysFrom are up to n days behind another one, the newest first.
func daysFrom(all []*inspect.Collection, after string, n int) (days []dayOf) {
	date, dir, with := strings.Cut(after, "/")
	dates := n
	if with {
		dates++ // on that date itself there may be none
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

// datesFrom are up to n dates before another one, or from it on, the newest first.
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

const maxFilesNamed = 20 // of a folder

// settleTime is for how long after its end what there is of a day is read anew: what it needs no more is removed then.
const settleTime = time.Minute

// response is all that is told of a day, read anew only if the day has gone on, or the last one, which removes what
// earlier ones have left.
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

// readDay reads all that is told of a day.
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

// damageProblem tells of files that are not as they were written.
func damageProblem(err error) error {
	if errors.Is(err, batch.ErrDamaged) {
		return &problem{http.StatusInternalServerError, "Files of the day are damaged", err.Error()}
	}
	return err
}
