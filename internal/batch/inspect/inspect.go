// Package inspect answers what can be asked of a place with batch crawls: which collections, days and records it has,
// and what they came to. It needs no configuration and changes nothing; a crawl may run meanwhile.
package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"kumo/internal/batch"
	"kumo/internal/collection"
	"kumo/internal/place"
)

// A Collection is what a place has of one.
type Collection struct {
	Code      string    `json:"collection"`
	Directory string    `json:"directory"`
	Dates     []string  `json:"days"`    // in order
	Changed   time.Time `json:"changed"` // when its last day was heard of last
	place     place.Place
}

const stateFolder, stateExt = "state", ".json"

// Collections are those of a place, in the order of their directories.
func Collections(ctx context.Context, p place.Place) (all []*Collection, err error) {
	infos, err := p.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, i := range infos {
		if !i.IsDir || place.ValidName(i.Name) != nil {
			continue
		}
		c, err := open(ctx, p, i.Name)
		if err != nil {
			return nil, err
		}
		if c != nil {
			all = append(all, c)
		}
	}
	return all, nil
}

// open reads what there is of a collection in a directory; nil if it has no days.
func open(ctx context.Context, p place.Place, dir string) (*Collection, error) {
	infos, err := p.List(ctx, path.Join(dir, stateFolder))
	if err != nil {
		return nil, err
	}
	c := &Collection{Directory: dir, place: p}
	for _, i := range infos {
		if date, ok := strings.CutSuffix(i.Name, stateExt); ok && !i.IsDir && batch.CheckDate(date) == nil {
			c.Dates, c.Changed = append(c.Dates, date), i.Modified
		}
	}
	if len(c.Dates) == 0 {
		return nil, nil
	}
	name := path.Join(dir, stateFolder, c.Last()+stateExt)
	data, err := place.ReadFile(ctx, p, name)
	if err != nil {
		return nil, err
	}
	var s batch.State
	if err := json.Unmarshal(data, &s); err != nil || s.Collection == "" {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(batch.ErrDamaged, err))
	}
	c.Code = s.Collection
	return c, nil
}

// Last is the last day's date.
func (c *Collection) Last() string { return c.Dates[len(c.Dates)-1] }

// named is the collection as far as files are found by it.
func (c *Collection) named() *collection.Collection {
	return &collection.Collection{Code: c.Code, Directory: c.Directory}
}

// A Day is a day of a collection.
type Day struct {
	Date   string
	State  *batch.State
	Counts *batch.Counts // nil as long as the day is not done
	// Files and Bytes are those of its folders doc, xml and other.
	Files map[string]int
	Bytes map[string]int64
}

// Day is what there is of a day.
func (c *Collection) Day(ctx context.Context, date string) (*Day, error) {
	s, err := batch.ReadState(ctx, c.place, c.named(), date)
	if err == nil && s == nil {
		err = fmt.Errorf("collection %s has no day %s: %w", c.Code, date, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	d := &Day{Date: date, State: s, Files: map[string]int{}, Bytes: map[string]int64{}}
	for _, folder := range []string{"doc", pages, apart} {
		infos, err := c.place.List(ctx, c.folder(folder, date))
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			if strings.HasPrefix(i.Name, "part-") {
				d.Files[folder]++
				d.Bytes[folder] += i.Size
			}
		}
	}
	data, err := place.ReadFile(ctx, c.place, path.Join(c.folder(pages, date), batch.CountsName))
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.Counts = &batch.Counts{}
	if err := json.Unmarshal(data, d.Counts); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", batch.CountsName, date, err)
	}
	return d, nil
}

// The folders of XML.
const (
	pages = "xml"
	apart = "other"
)

func (c *Collection) folder(folder, date string) string {
	return batch.DayFolder(c.named(), folder, date)
}
