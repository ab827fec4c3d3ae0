package batches

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"kumo/internal/archive/export/table"
	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/view/chart"
)

// Stats prints statistics of collections; with days, also of each day of each collection.
func Stats(w io.Writer, t *inspect.Table, days bool) error {
	const counts = "\tpages\tsites\tbytes\tapart\tunchanged\terrors\tfailed\t"
	cells := func(r *inspect.Row) string {
		return fmt.Sprintf("\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", stats.Grouped(r.Pages), stats.Grouped(int64(r.Sites)),
			stats.Bytes(r.Bytes), stats.Grouped(r.Apart), stats.Grouped(r.Unchanged), stats.Grouped(r.Errors),
			stats.Grouped(r.Failed))
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "directory\tcollection\tdays"+counts+"pages a day\tbytes a day\t")
	for _, r := range append(slices.Clone(t.Collections), t.All) {
		code, count := r.Collection, int64(max(r.Days, 1))
		if r == t.All {
			code = "all"
		}
		fmt.Fprintf(tab, "%s\t%s\t%d%s%s\t%s\t\n", r.Directory, code, r.Days, cells(r), stats.Grouped(r.Pages/count),
			stats.Bytes(r.Bytes/count))
	}
	fmt.Fprintln(tab)
	if days {
		fmt.Fprintln(tab, "day\tcollection"+counts)
		for _, r := range t.Days {
			fmt.Fprintf(tab, "%s\t%s%s\n", r.Date, r.Collection, cells(r))
		}
	} else if byDate := t.ByDate(); len(byDate) > 0 {
		fmt.Fprintln(tab, "day"+strings.Replace(counts, "\tsites", "", 1))
		for _, r := range byDate {
			_, rest, _ := strings.Cut(cells(r)[1:], "\t")
			_, rest, _ = strings.Cut(rest, "\t")
			fmt.Fprintf(tab, "%s\t%s\t%s\n", r.Date, stats.Grouped(r.Pages), rest)
		}
	}
	printShares(tab, "charset", t.Collections, charsetsOf)
	printShares(tab, "apart, in", t.Collections, otherOf)
	if err := tab.Flush(); err != nil {
		return err
	}
	if len(t.Open) > 0 {
		fmt.Fprintln(w)
	}
	for _, d := range t.Open {
		if d.Nothing != "" {
			fmt.Fprintf(w, "%s of %s: %v: %s\n", d.Date, d.Collection, batch.ErrNothingFetched, d.Nothing)
			continue
		}
		fmt.Fprintf(w, "%s of %s is not done: round %d, %s\n", d.Date, d.Collection, d.Round, d.Job)
	}
	return nil
}

func charsetsOf(r *inspect.Row) map[string]int64 { return r.Charsets }
func otherOf(r *inspect.Row) map[string]int64    { return r.ApartBy }

// printShares prints the shares of a kind in each collection, largest first.
func printShares(w io.Writer, head string, rows []*inspect.Row, of func(*inspect.Row) map[string]int64) {
	if len(inspect.Keys(rows, of)) == 0 {
		return
	}
	fmt.Fprintf(w, "\ncollection\t%s\tpages\tshare\t\n", head)
	for _, r := range rows {
		all, sum := of(r), int64(0)
		for _, n := range all {
			sum += n
		}
		names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
			if all[a] != all[b] {
				return int(all[b] - all[a])
			}
			return strings.Compare(a, b)
		})
		for _, name := range names {
			fmt.Fprintf(w, "%s\t%s\t%s\t%.1f%%\t\n", r.Collection, inspect.VisibleLine(name), stats.Grouped(all[name]),
				100*float64(all[name])/float64(sum))
		}
	}
}

// StatsCSV writes a line for each day of each collection.
func StatsCSV(w io.Writer, t *inspect.Table) error {
	charsets, others := inspect.Keys(t.Days, charsetsOf), inspect.Keys(t.Days, otherOf)
	head := []string{"day", "collection", "directory", "pages", "sites", "bytes", "apart", "fetched", "unchanged",
		"redirects", "errors", "failed", "left_out"}
	for _, name := range charsets {
		head = append(head, "charset "+name)
	}
	for _, name := range others {
		head = append(head, "apart "+name)
	}
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return err
	}
	for _, r := range t.Days {
		numbers := []int64{r.Pages, int64(r.Sites), r.Bytes, r.Apart, r.Fetched, r.Unchanged, r.Redirects,
			r.Errors, r.Failed, r.LeftOut}
		for _, name := range charsets {
			numbers = append(numbers, r.Charsets[name])
		}
		for _, name := range others {
			numbers = append(numbers, r.ApartBy[name])
		}
		line := []string{r.Date, table.Cell(r.Collection), table.Cell(r.Directory)}
		for _, n := range numbers {
			line = append(line, strconv.FormatInt(n, 10))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Growth draws the cumulative pages and bytes of each collection by day, as SVG.
func Growth(t *inspect.Table) []byte {
	c := chart.Chart{Title: "Growth of the collections, " + stats.Count(t.All.Days, "days")}
	for _, r := range t.ByDate() {
		day, err := time.Parse(time.DateOnly, r.Date)
		if err == nil { // every date was validated
			c.Days = append(c.Days, day)
		}
	}
	inPages := chart.Panel{Title: "pages", Unit: func(v float64) string { return stats.Grouped(int64(v)) }}
	inBytes := chart.Panel{Title: "bytes", Unit: func(v float64) string { return stats.Bytes(int64(v)) }}
	for _, sum := range t.Collections {
		pages, bytes := make([]float64, len(c.Days)), make([]float64, len(c.Days))
		for _, r := range t.Days {
			if r.Collection != sum.Collection {
				continue
			}
			for i, day := range c.Days {
				if day.Format(time.DateOnly) >= r.Date {
					pages[i] += float64(r.Pages)
					bytes[i] += float64(r.Bytes)
				}
			}
		}
		inPages.Lines = append(inPages.Lines, chart.Line{Name: sum.Collection, Values: pages})
		inBytes.Lines = append(inBytes.Lines, chart.Line{Name: sum.Collection, Values: bytes})
	}
	c.Panels = []chart.Panel{inPages, inBytes}
	var b strings.Builder
	_ = c.SVG(&b) // a Builder never fails
	return []byte(b.String())
}
