package main

import (
	"github.com/spf13/cobra"
)

const batchLong = `Crawl collections of sites day by day: layer by layer, as MapReduce jobs over files, on this machine or
on a Hadoop cluster. A day of a collection lies in folders of its own: what was fetched, and what the pages in its
language say, as XML. A collection is a YAML file with a code, seeds and rules:

  code: de
  name: Deutsch
  seeds:
    - https://www.example.org/
  depth: 5

  kumo batch init news27 DIR          write 27 of them, of news in as many languages
  kumo batch check DIR                what they say, or what is wrong with them
  kumo batch run de.yaml              crawl its day, into ./batch/crawler_de
  kumo batch schedule DIR             crawl each of them when its schedule says
  kumo batch run --help               what all can be said, and what lies where
  kumo batch show batch               collections, days, pages; what came of a URL
  kumo batch stats                    pages, sites and bytes by language and day
  kumo batch warc batch de            their days as WARC files`

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "batch", Short: "Crawl collections by layers, as MapReduce jobs", Long: batchLong,
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(batchInitCommand(), batchCheckCommand(), batchRunCommand(), batchScheduleCommand(),
		batchTaskCommand(), batchAttemptCommand(), batchShowCommand(), batchStatsCommand(), batchWARCCommand())
	return cmd
}
