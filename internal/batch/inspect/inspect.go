// Package inspect queries the collections, days, records and statistics of batch crawls in a storage location. It needs
// no configuration and changes nothing. A crawl can run at the same time.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
)

// A Collection is a collection found in a storage location.
type Collection struct {
	Code      string    `json:"collection"`
	Directory string    `json:"directory"`
	Dates     []string  `json:"days"`    // sorted
	Changed   time.Time `json:"changed"` // modification time of the last day's state
	place     place.Place
	changed   map[string]time.Time // modification time of each day's state
}

const stateFolder, stateExt = "state", ".json"

// maxOpening is the number of collections that are opened concurrently.
const maxOpening = 8

// Collections returns the collections in a storage location, sorted by directory. If some cannot be read, it returns
// the others and an error.
func Collections(ctx context.Context, p place.Place) (all []*Collection, err error) {
	infos, err := p.List(ctx, "")
	if err != nil {
		return nil, err
	}
	found, failed := make([]*Collection, len(infos)), make([]error, len(infos))
	var wait errgroup.Group
	wait.SetLimit(maxOpening)
	for i, info := range infos {
		if info.IsDir && place.ValidName(info.Name) == nil {
			wait.Go(func() error {
				found[i], failed[i] = open(ctx, p, info.Name)
				return nil
			})
		}
	}
	_ = wait.Wait() // errors are kept per collection
	return slices.DeleteFunc(found, func(c *Collection) bool { return c == nil }), errors.Join(failed...)
}

// open reads a collection from its directory; nil if it has no days.
func open(ctx context.Context, p place.Place, dir string) (*Collection, error) {
	infos, err := p.List(ctx, path.Join(dir, stateFolder))
	if err != nil {
		return nil, err
	}
	c := &Collection{Directory: dir, place: p, changed: map[string]time.Time{}}
	for _, i := range infos {
		if date, ok := strings.CutSuffix(i.Name, stateExt); ok && !i.IsDir && batch.CheckDate(date) == nil {
			c.Dates, c.Changed = append(c.Dates, date), i.Modified
			c.changed[date] = i.Modified
		}
	}
	if len(c.Dates) == 0 {
		return nil, nil
	}
	var failed error
	for _, date := range slices.Backward(c.Dates) { // if one state is damaged, use another
		if c.Code, err = codeOf(ctx, p, path.Join(dir, stateFolder, date+stateExt)); err == nil {
			return c, nil
		}
		failed = cmp.Or(failed, err)
	}
	return nil, failed
}

// codeOf returns the code of the collection that a state belongs to.
func codeOf(ctx context.Context, p place.Place, name string) (string, error) {
	var s batch.State
	err := batch.ReadJSON(ctx, p, name, &s)
	if err == nil && s.Collection == "" {
		err = fmt.Errorf("%s: %w: no collection code", name, batch.ErrDamaged)
	}
	return s.Collection, err
}

// LastDate returns the date of the last day.
func (c *Collection) LastDate() string { return c.Dates[len(c.Dates)-1] }

// ChangedOn returns the modification time of a day's state.
func (c *Collection) ChangedOn(date string) time.Time { return c.changed[date] }

// Has reports whether a day exists.
func (c *Collection) Has(date string) bool {
	_, has := slices.BinarySearch(c.Dates, date)
	return has
}

// asCollection returns a collection with only the fields that locate its files.
func (c *Collection) asCollection() *collection.Collection {
	return &collection.Collection{Code: c.Code, Directory: c.Directory}
}

// A Day is a day of a collection.
type Day struct {
	Date   string
	State  *batch.State
	Counts *batch.Counts // nil if the day is not done
	// Files and Bytes are those of the folders doc, xml and other.
	Files map[string]int
	Bytes map[string]int64
}

// Day reads a day.
func (c *Collection) Day(ctx context.Context, date string) (*Day, error) {
	s, err := batch.ReadState(ctx, c.place, c.asCollection(), date)
	if err == nil && s == nil {
		err = fmt.Errorf("collection %s has no day %s: %w", c.Code, date, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	d := &Day{Date: date, State: s, Files: map[string]int{}, Bytes: map[string]int64{}}
	folders := []string{"doc", pagesFolder, otherFolder}
	infos := make([][]place.Info, len(folders))
	var wait errgroup.Group
	wait.Go(func() (err error) {
		d.Counts, err = c.counts(ctx, date)
		return err
	})
	for i, folder := range folders {
		wait.Go(func() (err error) {
			infos[i], err = c.place.List(ctx, c.folder(folder, date))
			return err
		})
	}
	if err := wait.Wait(); err != nil {
		return nil, err
	}
	for i, folder := range folders {
		for _, info := range infos[i] {
			if strings.HasPrefix(info.Name, "part-") {
				d.Files[folder]++
				d.Bytes[folder] += info.Size
			}
		}
	}
	return d, nil
}

// counts returns a day's counts; nil if the day is not done.
func (c *Collection) counts(ctx context.Context, date string) (*batch.Counts, error) {
	n := &batch.Counts{}
	err := batch.ReadJSON(ctx, c.place, path.Join(c.folder(pagesFolder, date), batch.CountsName), n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return n, err
}

// Folders with XML.
const (
	pagesFolder = "xml"
	otherFolder = "other"
)

func (c *Collection) folder(folder, date string) string {
	return batch.DayFolder(c.asCollection(), folder, date)
}
