package stats

import (
	"slices"
	"testing"
	"time"
)

// However long a crawl runs, its curves are small and sorted, and cover the whole run.
func TestCurvesAreBounded(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r Recorder
	if c := r.Curves(); len(c.Hour)+len(c.All) > 0 {
		t.Errorf("before the first point: %+v", c)
	}
	const seconds = 3 * 24 * 3600
	for i := range seconds {
		r.Add(Point{Time: begin.Add(time.Duration(i) * time.Second), Pages: int64(i)})
	}
	c := r.Curves()
	for name, points := range map[string][]Point{"hour": c.Hour, "all": c.All} {
		if len(points) < curvePoints/2 || len(points) > curvePoints+1 {
			t.Errorf("%s: %d points", name, len(points))
		}
		if !slices.IsSortedFunc(points, func(a, b Point) int { return a.Time.Compare(b.Time) }) {
			t.Errorf("%s is not in order", name)
		}
		if last := points[len(points)-1]; last.Pages != seconds-1 {
			t.Errorf("%s ends with %+v", name, last)
		}
	}
	if first := c.All[0]; !first.Time.Equal(begin) {
		t.Errorf("the whole begins at %v", first.Time)
	}
	if span := c.Hour[len(c.Hour)-1].Time.Sub(c.Hour[0].Time); span < 59*time.Minute || span > 61*time.Minute {
		t.Errorf("the last hour is %v", span)
	}
}
