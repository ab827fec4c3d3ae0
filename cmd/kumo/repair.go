package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/app/repair"
	"kumo/internal/app/wire"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/base/stats"
)

const repairLong = `Make a crawl that can go on of the one in DIR (default: this folder), of which files are damaged, lost, or not of one moment.

kumo crawl says so when a crawl cannot go on; kumo verify says what is wrong where. What repair does:

  - A visit counts if it is whole in all files: its records in the WARC, its lines in the index, in pages.jsonl and in crawl.log. A line
    that is damaged or missing is made anew where other files say what it said; otherwise the visit is taken out of all of them, and
    its URL is fetched again.
  - The state (known URLs, queues, digests, journal) is made anew from the visits that are left. What was waiting is found again by the
    links in the WARCs, and by what can be read of the old journal, queues and URL database.
  - config.yaml is put back as kumo wrote it, from its copy in state.

What was kept is not fetched again. Lost is what pages.jsonl or crawl.log listed, or the WARCs had, and is not kept, robots.txt among it.
What is not known afterwards: when pages are due again (a crawl with --recrawl counts from the last visit), and, in a crawl without WARCs
(--format jsonl), links that only the damaged part of the state had.

Nothing is removed: what is replaced lies in state/damaged-TIME afterwards, and can be deleted when all is well. Needed is room for the
files that are written anew, at most as much as the crawl has; known visits take some 50 bytes of memory each. A repair that is broken off
changes nothing, or goes on with the same command.

A node's folder (kumo node) is not repaired: the others of its cluster have what it had. Move the folder away, and start the node anew.

Exit codes: 0 the crawl can go on: kumo crawl -o DIR; 1 it could not be repaired; 2 wrong usage.`

func repairCommand() *cobra.Command {
	var dry, quiet, moved, asJSON bool
	cmd := &cobra.Command{Use: "repair [DIR]", Short: "Make a crawl whose files are damaged go on", Long: repairLong,
		Example: "  kumo repair --dry-run crawls/news\n  kumo repair crawls/news && kumo crawl -o crawls/news",
		Args:    oneFolderAtMost}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir, out := append(args, ".")[0], cmd.OutOrStdout()
		if err := uploads.CheckLocal(dir, "kumo repair without --moved"); err != nil && !moved {
			return err
		}
		r, err := wire.Repair(cmd.Context(), dir, repair.Options{DryRun: dry, Moved: moved, Now: time.Now,
			Report: func(text string) {
				if !quiet && !asJSON {
					fmt.Fprintln(out, text)
				}
			},
			Job: func() (*job.Job, error) { return savedJob(cmd.Context(), dir) }})
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(out).Encode(r)
		}
		printRepaired(cmd, dir, r, dry)
		return nil
	}
	f := cmd.Flags()
	f.BoolVar(&dry, "dry-run", false, "say what is wrong and what would be lost, and change nothing (it takes as long)")
	f.BoolVar(&moved, "moved", false, "WARC files that are not here were moved on purpose: keep what other files say "+
		"of their records")
	f.BoolVar(&asJSON, "json", false, "answer with one JSON object")
	f.BoolVarP(&quiet, "quiet", "q", false, "do not say what is found")
	return orOut(cmd)
}

func printRepaired(cmd *cobra.Command, dir string, r *repair.Result, dry bool) {
	out := cmd.OutOrStdout()
	if r.Intact {
		fmt.Fprintf(out, "%s: nothing is wrong\n", dir)
		return
	}
	is, lie := "can go on", "lie"
	if dry {
		is, lie = "could go on after a repair", "would lie"
	}
	fmt.Fprintf(out, "%s %s: kumo crawl -o %s\n", dir, is, dir)
	kept := fmt.Sprintf("%s; %s known, %s", countText(r.Pages, "pages"), countText(int64(r.Known),
		"URLs")+stats.Either(r.Known, " is", " are"),
		stats.Grouped(int64(r.Waiting))+stats.Either(r.Waiting, " waits", " wait"))
	if r.OnlySettings {
		fmt.Fprintf(out, "  the rest is as it should be: %s\n", kept)
	} else {
		fmt.Fprintf(out, "  kept     %s\n", kept)
		if r.Lines > 0 {
			fmt.Fprintf(out, "  mended   %s of lists and indexes, by what other files say\n", countText(int64(r.Lines), "lines"))
		}
		lost := "nothing"
		if r.Visits > 0 {
			lost = fmt.Sprintf("%s, whose %s fetched again", countText(r.Visits, "visits"),
				stats.Either(r.Visits, "URL is", "URLs are"))
		}
		fmt.Fprintf(out, "  lost     %s\n", lost)
	}
	if r.Damaged != "" {
		fmt.Fprintf(out, "  replaced files %s in %s\n", lie, r.Damaged)
	}
}

func countText(n int64, things string) string { return stats.Grouped(n) + " " + stats.Unit(n, things) }
