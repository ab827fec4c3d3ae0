package main

import (
	"github.com/spf13/cobra"
)

const batchLong = `Crawl collections of sites day by day, in layers, as MapReduce jobs over files, on this machine or
on a Hadoop cluster. Each day of a collection has its own folders with the fetched documents, and
with the text of the pages in its language as XML. A collection is a YAML file with a code, seeds
and rules:

  code: de
  name: Deutsch
  seeds:
    - https://www.example.org/
  depth: 5

  kumo batch init news27 DIR          write 27 collections of news, each in another language
  kumo batch check DIR                list collections, or their errors
  kumo batch run de.yaml              crawl a collection for today, into ./batch/crawler_de
  kumo batch schedule DIR             crawl each collection on schedule
  kumo batch run --help               all keys of a collection, and all output files
  kumo batch show batch               show collections, days, pages, and the state of a URL
  kumo batch stats                    show pages, sites and bytes by language and day
  kumo batch warc batch de            write WARC files`

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "batch", Short: "Crawl collections in layers, as MapReduce jobs", Long: batchLong,
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(batchInitCommand(), batchCheckCommand(), batchRunCommand(), batchScheduleCommand(),
		batchTaskCommand(), batchAttemptCommand(), batchShowCommand(), batchStatsCommand(), batchWARCCommand())
	return cmd
}
