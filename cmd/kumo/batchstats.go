package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/view/text/batches"
)

const batchStatsLong = `Show totals of the batch crawls in PLACE (default: batch): pages, sites and bytes by collection
and day, the charsets of all pages, and the pages in other languages, which are stored separately.

  pages       in the collection's language, new or changed: those in DIR/xml
  sites       registered domains of these pages; each counts once, also over several days
  bytes       size of their bodies as sent
  apart       pages in other languages: those in DIR/other
  unchanged   URLs with the same content as before: their text is in an earlier day

Unfinished days are listed, but not counted.

--csv has a line for each day of each collection, with a column for each charset and each other
language. --plot draws the growth of pages and bytes by collection, as SVG.`

const batchStatsExample = `  kumo batch stats /data/news
  kumo batch stats --only de,ja --from 2026-11-01 --days /data/news
  kumo batch stats --csv /data/news > news.csv
  kumo batch stats --json /data/news | jq .all.pages
  kumo batch stats --plot growth.svg /data/news`

type batchStatsOptions struct {
	only            []string
	span            inspect.Span
	days, csv, json bool
	plot, place     string
}

func batchStatsCommand() *cobra.Command {
	o := &batchStatsOptions{}
	cmd := &cobra.Command{Use: "stats [PLACE]", Short: "Show totals of batch crawls, by language and day",
		Long: batchStatsLong, Example: batchStatsExample, Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	f := cmd.Flags()
	f.StringSliceVar(&o.only, "only", nil, "count only the collections with these `CODES`, separated by commas")
	f.StringVar(&o.span.First, "from", "", "count days from `DAY` on, such as 2026-11-21")
	f.StringVar(&o.span.Last, "to", "", "count days up to `DAY`")
	f.BoolVar(&o.days, "days", false, "also list each day of each collection")
	f.BoolVar(&o.csv, "csv", false, "print CSV, one line for each day of each collection")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.StringVar(&o.plot, "plot", "", "also plot the growth to `FILE`.svg")
	f.StringVar(&o.place, "place", "", "the same as the argument `PLACE`, as for kumo batch run")
	f.Lookup("place").Annotations = map[string][]string{noVariable: {"true"}} // an argument would contradict it
	f.SortFlags = false
	return cmd
}

// usageArgs turns argument errors into usage errors.
func usageArgs(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return &usage{err}
		}
		return nil
	}
}

func (o *batchStatsOptions) check() error {
	for flag, date := range map[string]string{"--from": o.span.First, "--to": o.span.Last} {
		if err := batch.CheckDate(date); date != "" && err != nil {
			return usagef("%s: %w", flag, err)
		}
	}
	switch {
	case o.csv && o.json:
		return usagef("--csv or --json: give only one of them")
	case o.plot != "" && !strings.EqualFold(filepath.Ext(o.plot), ".svg"):
		return usagef("--plot %s: the plot is an SVG: name a file that ends in .svg", o.plot)
	}
	return nil
}

func (o *batchStatsOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	switch {
	case o.place != "" && len(args) > 0:
		return usagef("name the storage location once: as an argument or with --place")
	case o.place != "":
		args = []string{o.place}
	}
	_, all, err := openCollections(cmd, append(args, defaultBatchPlace)[0])
	if err != nil {
		return err
	}
	if all, err = selectCollections(all, o.only); err != nil {
		return err
	}
	t, err := inspect.Stats(cmd.Context(), all, o.span)
	if err != nil {
		return err
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, batches.Growth(t), 0o666); err != nil {
			return err
		}
	}
	err = o.write(cmd.OutOrStdout(), t)
	for _, what := range t.Damaged {
		err = errors.Join(err, fmt.Errorf("not counted: %s", what))
	}
	return err
}

func (o *batchStatsOptions) write(w io.Writer, t *inspect.Table) error {
	switch {
	case o.json:
		return writeJSON(w, t)
	case o.csv:
		return batches.StatsCSV(w, t)
	default:
		return batches.Stats(w, t, o.days)
	}
}

const defaultBatchPlace = "batch"

// selectCollections returns the collections with the given codes, or all if none are given.
func selectCollections(all []*inspect.Collection, codes []string) ([]*inspect.Collection, error) {
	if len(codes) == 0 {
		return all, nil
	}
	var kept []*inspect.Collection
	for _, code := range codes {
		c, err := findCollection(all, strings.TrimSpace(code))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kept, c) {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// findCollection returns the collection with a code or directory.
func findCollection(all []*inspect.Collection, name string) (*inspect.Collection, error) {
	var codes []string
	for _, c := range all {
		if c.Code == name || c.Directory == name {
			return c, nil
		}
		codes = append(codes, c.Code)
	}
	return nil, usagef("%s: there is no such collection; there are %s", name, strings.Join(codes, ", "))
}
