package ui

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/batch/inspect"
	"kumo/internal/state/forecast"
)

const (
	growthDays  = 366  // that are drawn at most
	growthReads = 4000 // days of collections that are read to be drawn, at most
)

// growth draws how collections have grown over their last days, and says how many these are.
func (b *batches) growth(r *http.Request, all []*inspect.Collection) ([]chart, int, error) {
	dates := datesFrom(all, "", min(growthDays, max(growthReads/max(len(all), 1), 2)), false)
	if len(dates) < 2 {
		return nil, 0, nil
	}
	var days []dayOf
	for _, date := range slices.Backward(dates) {
		for _, c := range all {
			if c.Has(date) {
				days = append(days, dayOf{c, date})
			}
		}
	}
	briefs, err := b.briefs(r.Context(), days)
	if err != nil {
		return nil, 0, err
	}
	var sums []*inspect.Brief // of each day that one at least has done
	for _, x := range briefs {
		if !x.Done {
			continue
		}
		if len(sums) == 0 || sums[len(sums)-1].Date != x.Date {
			sums = append(sums, &inspect.Brief{Row: inspect.Row{Date: x.Date}})
		}
		sum := sums[len(sums)-1]
		sum.Pages, sum.Bytes, sum.Sites = sum.Pages+x.Pages, sum.Bytes+x.Bytes, sum.Sites+x.Sites
		sum.Unchanged, sum.Apart = sum.Unchanged+x.Unchanged, sum.Apart+x.Apart
	}
	if len(sums) < 2 {
		return nil, 0, nil
	}
	number := func(v float64) string { return forecast.Grouped(int64(v)) }
	size := func(v float64) string { return stats.Bytes(int64(v)) }
	pages, bytes := 0.0, 0.0
	charts := []chart{
		drawDays("Pages in all", "good", sums, func(x *inspect.Brief) float64 { pages += float64(x.Pages); return pages },
			number),
		drawDays("Bytes in all", "", sums, func(x *inspect.Brief) float64 { bytes += float64(x.Bytes); return bytes }, size),
		drawDays("Pages of a day", "good", sums, func(x *inspect.Brief) float64 { return float64(x.Pages) }, number)}
	if len(all) == 1 { // those of several may be the same
		charts = append(charts, drawDays("Sites of a day", "", sums, func(x *inspect.Brief) float64 {
			return float64(x.Sites)
		}, number))
	}
	return charts, len(sums), nil
}

// drawDays makes a chart of days.
func drawDays(name, class string, days []*inspect.Brief, value func(*inspect.Brief) float64,
	say func(float64) string) chart {
	points := make([]stats.Point, len(days))
	values := map[time.Time]float64{}
	for i, d := range days {
		at, err := time.Parse(time.DateOnly, d.Date)
		if err == nil { // as of every day of a place
			points[i].Time = at
		}
		values[at] = value(d)
	}
	c := drawPoints(name, class, points, func(p *stats.Point) float64 { return values[p.Time] }, say)
	c.From, c.To = days[0].Date, days[len(days)-1].Date
	c.Says = fmt.Sprintf("%s from %s to %s: at most %s, %s in the end", name, c.From, c.To, c.Most, c.Last)
	return c
}
