package lookup

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"kumo/internal/base/stats"
)

// curvePoints is the number of lines that are read for a curve.
const curvePoints = 360

// Curve returns the number of visits over time, estimated from the times and offsets of a few lines of pages.jsonl. It
// assumes that all lines have the same length, so its cost does not depend on the size of the crawl. pages is the
// current number of visits.
func (a *Archive) Curve(pages int64) ([]stats.Point, error) {
	name := filepath.Join(a.dir, pagesName)
	size, err := a.disk.Size(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	src, err := a.disk.OpenAt(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }() // it is only read
	var all []stats.Point
	last := int64(-1)
	for i := range int64(curvePoints) {
		line, next, err := lineAfter(src, size*i/curvePoints, size)
		if err != nil {
			return nil, err
		}
		if line == nil || next == last {
			continue
		}
		last = next
		var v struct{ Time time.Time }
		if json.Unmarshal(line, &v) == nil && !v.Time.IsZero() {
			all = append(all, stats.Point{Time: v.Time, Pages: int64(float64(pages) * float64(next) / float64(size))})
		}
	}
	slices.SortFunc(all, func(a, b stats.Point) int { return a.Time.Compare(b.Time) })
	for i := range all { // lines are in order of completion, which is nearly that of their times
		if i > 0 {
			all[i].Pages = max(all[i].Pages, all[i-1].Pages)
		}
	}
	return all, nil
}
