package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	wirebatch "kumo/internal/app/wire/batch"
	"kumo/internal/archive/place"
	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/archive"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/inspect"
	"kumo/internal/state/store"
)

const batchWARCLong = `Write the data of a COLLECTION in PLACE as WARC files, for all days or for one DAY (2026-11-21,
or "last"): FOLDER/DAY/warc/*.warc.gz with FOLDER/DAY/index.cdxj. A day appears when it is complete.
Existing days are kept, so the same command adds new ones.

Each response has a response, a request and a metadata record (with the page's links). An unchanged
page is a revisit record, which refers to the response of an earlier day by URL and time: keep the
days together. URLs without a response, and pages that ask not to be archived, are not included.`

const batchWARCExample = `  kumo batch warc /data/news de
  kumo batch warc --verify --out /data/warc/de /data/news de last`

type batchWARCOptions struct {
	out, compress string
	size          int64
	verify        bool
}

func batchWARCCommand() *cobra.Command {
	o := &batchWARCOptions{compress: "gzip"}
	cmd := &cobra.Command{Use: "warc PLACE COLLECTION [DAY]", Short: "Write WARC files of batch crawls",
		Long:    batchWARCLong,
		Example: batchWARCExample, Args: usageArgs(cobra.RangeArgs(2, 3)), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "write to this `FOLDER` (default: warc/ and the collection's directory)")
	f.Var(setting.Choice(&o.compress, []string{"gzip", "zstd", "none"}), "compress", "compression of records")
	f.Var(setting.Size(&o.size), "warc-size", "start another file before one exceeds this size (0: 1GB)")
	f.BoolVar(&o.verify, "verify", false, "read everything again, and check digests and index")
	f.SortFlags = false
	return cmd
}

func (o *batchWARCOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if o.verify && o.compress == "none" {
		return usagef("--verify works only with compressed WARC files")
	}
	at, all, err := openCollections(cmd, args[0])
	if err != nil {
		return err
	}
	c, err := findCollection(all, args[1])
	if err != nil {
		return err
	}
	dates := c.Dates
	if len(args) > 2 {
		date := args[2]
		if date == "last" {
			date = c.LastDate()
		}
		if !slices.Contains(dates, date) {
			return usagef("collection %s has no day %s; its days are %s", c.Code, args[2], daysOf(c))
		}
		dates = []string{date}
	}
	if o.out == "" {
		o.out = filepath.Join("warc", c.Directory)
	}
	tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "day\tresponses\trobots.txt\trevisits\tno answer\tnot archived\tfolder")
	for _, date := range dates {
		line, err := o.day(ctx, at, c, date)
		if err != nil {
			return errors.Join(tab.Flush(), err)
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\n", date, line, filepath.Join(o.out, date))
	}
	return tab.Flush()
}

func (o *batchWARCOptions) day(ctx context.Context, at place.Place, held *inspect.Collection, date string) (string,
	error) {
	d, err := held.Day(ctx, date)
	if err != nil {
		return "", err
	}
	if !isMerged(d.State) {
		return fmt.Sprintf("-\t-\t-\t-\tnot done: %s", inspect.StateOf(d.State)), nil
	}
	c := &collection.Collection{Code: held.Code, Directory: held.Directory}
	dir := filepath.Join(o.out, date)
	open := func(dir string) (store.Store, error) { return wirebatch.OpenWARC(dir, o.compress, o.size, c, date) }
	n, err := archive.Write(ctx, archive.Day{Place: at, Collection: c, Date: date, Dir: dir, Open: open,
		Agent: wirebatch.Fetching("").Agent})
	line := fmt.Sprintf("%s\t%s\t%s\t%s\t%s", stats.Grouped(int64(n.Responses)), stats.Grouped(int64(n.Robots)),
		stats.Grouped(int64(n.Revisits)), stats.Grouped(int64(n.NoAnswer)), stats.Grouped(int64(n.NotArchive)))
	if errors.Is(err, archive.ErrExists) {
		line, err = "-\t-\t-\t-\texists already", nil
	}
	if err == nil && o.verify {
		_, err = archive.Verify(ctx, dir)
	}
	return line, err
}

// isMerged reports whether the merge of a day is complete, so that it has one Document for each URL.
func isMerged(s *batch.State) bool { return s.Next.Job == batch.JobXML || s.IsDone() }
