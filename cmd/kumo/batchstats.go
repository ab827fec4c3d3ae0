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

const batchStatsLong = `Say what the batch crawls in PLACE (default: batch) came to: pages, sites and bytes by
collection and by day, the charsets of all pages, and the pages in other languages, which are kept apart.

  pages       in the collection's language, new or changed: those in DIR/xml
  sites       registered domains that they are of; over several days each once
  bytes       of their bodies as they were sent
  apart       pages in other languages: those in DIR/other
  unchanged   URLs that gave the same as before: what they say is in an earlier day

Days that are not done are named, and not counted.

--csv has a line for each day of each collection, with a column for each charset and each other language. --plot draws
how pages and bytes grow, collection by collection, as SVG.`

const batchStatsExample = `  kumo batch stats /data/news
  kumo batch stats --only de,ja --from 2026-11-01 --days /data/news
  kumo batch stats --csv /data/news > news.csv
  kumo batch stats --json /data/news | jq .all.pages
  kumo batch stats --plot growth.svg /data/news`

type batchStatsOptions struct {
	only            []string
	span            inspect.Span
	days, csv, json bool
	plot            string
}

func batchStatsCommand() *cobra.Command {
	o := &batchStatsOptions{}
	cmd := &cobra.Command{Use: "stats [PLACE]", Short: "Say what batch crawls came to, by language and day",
		Long: batchStatsLong, Example: batchStatsExample, Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	f := cmd.Flags()
	f.StringSliceVar(&o.only, "only", nil, "count only the collections with these `CODES`, separated by commas")
	f.StringVar(&o.span.First, "from", "", "count days from this `DAY` on, 2026-11-21")
	f.StringVar(&o.span.Last, "to", "", "count days up to this `DAY`")
	f.BoolVar(&o.days, "days", false, "list each day of each collection, too")
	f.BoolVar(&o.csv, "csv", false, "answer as CSV, a line for each day of each collection")
	f.BoolVar(&o.json, "json", false, "answer with one JSON object")
	f.StringVar(&o.plot, "plot", "", "draw the growth into this `FILE`.svg, too")
	f.SortFlags = false
	return cmd
}

// usageArgs makes errors of arguments errors of usage.
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
		return usagef("--csv or --json: one of them is wanted")
	case o.plot != "" && !strings.EqualFold(filepath.Ext(o.plot), ".svg"):
		return usagef("--plot %s: the growth is drawn as SVG: name a file that ends in .svg", o.plot)
	}
	return nil
}

func (o *batchStatsOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
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

// selectCollections are the collections with some codes; all without.
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

// findCollection is the collection with a code, or a directory.
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
