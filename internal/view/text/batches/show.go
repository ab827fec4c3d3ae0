package batches

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/view/text"
)

// A Show selects the data to print.
type Show struct {
	JSON          bool
	Terminal      bool   // escape control characters
	Other         bool   // for a day: pages in other languages
	Find          string // for a day: only pages with this text
	Limit, Offset int    // for a day: pages to list (0: all), and to skip

	XML, Text, Headers, Body bool // for a URL: only this part
}

// Collections lists collections. Damaged ones are listed, and also returned as an error.
func (o *Show) Collections(ctx context.Context, w io.Writer, all []*inspect.Collection) (failed error) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !o.JSON {
		fmt.Fprintln(tab, "collection\tdirectory\tdays\tfirst\tlast\tlast change\tlast day is")
	}
	for _, c := range all {
		if o.JSON {
			if err := text.JSON(w, c); err != nil {
				return err
			}
			continue
		}
		d, err := c.Day(ctx, c.LastDate())
		state := inspect.Damaged
		if err == nil {
			state = inspect.StateOf(d.State)
		} else if !errors.Is(err, batch.ErrDamaged) {
			return err
		}
		failed = errors.Join(failed, err)
		fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", c.Code, c.Directory, len(c.Dates), c.Dates[0], c.LastDate(),
			text.Time(c.Changed), state)
	}
	return errors.Join(tab.Flush(), failed)
}

// A inLine is a URL to fetch as JSON.
type inLine struct {
	URL   string `json:"url"`
	Depth int    `json:"depth"`
	Seed  bool   `json:"seed,omitempty"`
	From  string `json:"from,omitempty"`
	Known bool   `json:"known,omitempty"` // fetched on an earlier day
}

// URLs prints the URLs that a round of a day had to fetch, one a line.
func (o *Show) URLs(ctx context.Context, w io.Writer, c *inspect.Collection, date string, round int) error {
	out := bufio.NewWriter(w)
	err := c.EachURL(ctx, date, round, func(in *batch.InURL) error {
		if o.JSON {
			return text.JSON(out, inLine{in.URL, in.Depth, in.Seed, in.From, in.Known})
		}
		_, err := fmt.Fprintln(out, in.URL)
		return err
	})
	return errors.Join(err, out.Flush())
}

// A dayLine is a day as JSON.
type dayLine struct {
	Date   string           `json:"day"`
	State  string           `json:"state"`
	Began  time.Time        `json:"began"`
	Ended  time.Time        `json:"ended,omitzero"`
	Counts *batch.Counts    `json:"counts,omitempty"`
	Files  map[string]int   `json:"files"`
	Bytes  map[string]int64 `json:"bytes"`
}

// Days lists the days of a collection. Damaged ones are listed, and also returned as an error.
func (o *Show) Days(ctx context.Context, w io.Writer, c *inspect.Collection) (failed error) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !o.JSON {
		fmt.Fprintln(tab, "day\tpages\tsites\tapart\tunchanged\tdoc\txml\tother\tended\tstate")
	}
	t, err := inspect.Stats(ctx, []*inspect.Collection{c}, inspect.Span{})
	if err != nil {
		return err
	}
	rows := map[string]*inspect.Row{}
	for _, r := range t.Days {
		rows[r.Date] = r
	}
	for _, date := range c.Dates {
		d, err := c.Day(ctx, date)
		if errors.Is(err, batch.ErrDamaged) {
			failed = errors.Join(failed, err)
			if !o.JSON {
				fmt.Fprintf(tab, "%s%s%s\n", date, strings.Repeat("\t-", 8), "\t"+inspect.Damaged)
			}
			continue
		}
		if err != nil {
			return err
		}
		if o.JSON {
			line := dayLine{date, inspect.StateOf(d.State), d.State.Began, d.State.Ended, d.Counts, d.Files, d.Bytes}
			if err := text.JSON(w, line); err != nil {
				return err
			}
			continue
		}
		r, ended := rows[date], "-"
		if r == nil {
			r = &inspect.Row{}
		}
		if !d.State.Ended.IsZero() {
			ended = text.Time(d.State.Ended)
		}
		fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", date, stats.Grouped(r.Pages), r.Sites,
			stats.Grouped(r.Apart), stats.Grouped(r.Unchanged), stats.Bytes(d.Bytes["doc"]), stats.Bytes(d.Bytes["xml"]),
			stats.Bytes(d.Bytes["other"]), ended, inspect.StateOf(d.State))
	}
	return errors.Join(tab.Flush(), failed)
}

// Pages lists the pages of a day.
func (o *Show) Pages(ctx context.Context, w, errs io.Writer, c *inspect.Collection, d *inspect.Day) error {
	if d.State.Nothing != "" {
		return fmt.Errorf("%s of %s: %w: %s", d.Date, c.Code, batch.ErrNothingFetched, d.State.Nothing)
	}
	if d.Counts == nil {
		return fmt.Errorf("%s of %s is not done (%s): its pages can be listed when it is", d.Date, c.Code,
			inspect.StateOf(d.State))
	}
	q := inspect.Query{Other: o.Other, Find: o.Find, Offset: o.Offset, Limit: o.Limit + 1}
	if o.Limit == 0 {
		q.Limit = -1
	}
	n := 0
	for e, err := range c.Records(ctx, d.Date, q) {
		if errors.Is(err, fs.ErrNotExist) {
			break // the day has no such pages
		}
		if err != nil {
			return err
		}
		if n == o.Limit && o.Limit > 0 {
			fmt.Fprintf(errs, "more pages: --offset %d\n", o.Offset+n)
			return nil
		}
		n++
		if o.JSON {
			err = text.JSON(w, e)
		} else {
			_, err = fmt.Fprintf(w, "%s  %-3s  %s\n          %s\n", e.Fetched.Format(time.TimeOnly),
				cmp.Or(e.Language, "-"), inspect.VisibleLine(e.URL), inspect.VisibleLine(cmp.Or(e.Headline, "-")))
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		what := "pages in its language"
		if o.Other {
			what = "pages in other languages"
		}
		if o.Find != "" || o.Offset > 0 {
			what = "such pages"
		}
		fmt.Fprintf(errs, "%s of %s has no %s\n", d.Date, c.Code, what)
	}
	return nil
}
