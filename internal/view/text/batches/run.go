package batches

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"kumo/internal/archive/place"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
)

// Run prints the results of a day's run. name is the storage location as typed by the user.
func Run(ctx context.Context, w io.Writer, at place.Place, name, date string, all []*collection.Collection) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "%s\tpages\tapart\tunchanged\tbytes\trounds\tidle\n", date)
	failed := map[string]int64{}
	for _, c := range all {
		s, err := batch.ReadState(ctx, at, c, date)
		if err != nil {
			return err
		}
		apart := int64(0)
		for i := range s.Done {
			for counter, n := range s.Done[i].Counters {
				if strings.HasPrefix(counter, "apart: ") {
					apart += n
				}
				if kind, is := strings.CutPrefix(counter, "failed: "); is {
					failed[kind] += n
				}
			}
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%d\t%.0f%%\n", c.Code, stats.Grouped(s.Count("kept")),
			stats.Grouped(apart),
			stats.Grouped(s.Count("unchanged")), stats.Bytes(s.Count("kept bytes")), s.Next.Round, 100*s.IdleShare())
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if err := reportFields(ctx, w, at, all, date); err != nil {
		return err
	}
	if len(failed) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(failed)) {
			n := stats.Grouped(failed[kind])
			if kind == string(page.NoRobots) {
				kind = "robots.txt not available"
			}
			kinds = append(kinds, kind+" "+n)
		}
		fmt.Fprintf(w, "URLs without an answer: %s. For the reason, run kumo batch show %s COLLECTION %s URL\n",
			strings.Join(kinds, ", "), name, date)
	}
	return nil
}

// reportFields prints the records that field rules extracted from the day's pages.
func reportFields(ctx context.Context, w io.Writer, at place.Place, all []*collection.Collection, date string) error {
	for _, c := range all {
		r, err := batch.ReadFieldsReport(ctx, at, c, date)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		day := stats.Report{Fields: r.Day}
		for i := range day.Fields { // earlier days are needed to detect a field that disappeared
			one := &day.Fields[i]
			for k := range one.Fields {
				one.Fields[k].Changed = false
			}
			for _, sum := range r.SoFar {
				if sum.Rule == one.Rule && sum.Host == one.Host {
					one.Fields = sum.Fields
				}
			}
		}
		day.PrintFields(func(name, format string, args ...any) {
			if name != "" {
				name += " of " + c.Code + ": "
			} else {
				name = "  "
			}
			fmt.Fprintf(w, "%s"+format+"\n", append([]any{name}, args...)...)
		})
	}
	return nil
}
