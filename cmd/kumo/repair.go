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

const repairLong = `Repair the crawl in DIR (default: this folder) if files are damaged, lost, or from different points
in time, so that it can resume.

kumo crawl reports when a crawl cannot resume; kumo verify lists the damage. Repair does this:

  - A visit is kept if it is complete in all files: its records in the WARC, its lines in the index,
    pages.jsonl and crawl.log. A damaged or missing line is restored from other files if possible;
    otherwise the visit is removed from all files, and its URL is fetched again.
  - The state (known URLs, queues, digests, journal) is rebuilt from the remaining visits. Pending
    URLs are found again from the links in the WARCs, and from the readable parts of the old journal,
    queues and URL database.
  - config.yaml is restored from its copy in the state.

Kept visits are not fetched again. Lost visits are those listed in pages.jsonl, crawl.log or the
WARCs, including robots.txt, that could not be kept. Also lost: the due times of pages (a crawl with
--recrawl counts from the last visit), and, in a crawl without WARCs (--format jsonl), links that
were only in the damaged part of the state.

Nothing is removed: replaced files are moved to state/damaged-TIME, and can be deleted later. Repair
needs disk space for the rewritten files, at most the size of the crawl, and some 50 bytes of memory
per known visit. An interrupted repair changes nothing, or resumes with the same command.

The folder of a node (kumo node) is not repaired, because the other nodes have its data. Move the
folder away, and start the node again.

Exit codes: 0 the crawl can resume: kumo crawl -o DIR; 1 it could not be repaired; 2 wrong usage.`

func repairCommand() *cobra.Command {
	var dry, quiet, moved, asJSON bool
	cmd := &cobra.Command{Use: "repair [DIR]", Short: "Make a crawl with damaged files usable again", Long: repairLong,
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
	f.BoolVar(&dry, "dry-run", false, "report damage and losses, and change nothing (takes as long as a repair)")
	f.BoolVar(&moved, "moved", false, "missing WARC files were moved on purpose: keep the entries of "+
		"their records in other files")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	f.BoolVarP(&quiet, "quiet", "q", false, "do not print findings")
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
			fmt.Fprintf(out, "  mended   %s of lists and indexes, from other files\n", countText(int64(r.Lines), "lines"))
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
