package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/inspect"
	"kumo/internal/app/session"
	"kumo/internal/base/stats"
)

const snapshotLong = `Copy the crawl in DIR, as it is at one moment, into the new folder TARGET (default:
DIR.snapshot-TIME).

Use it to back up a crawl, also while it runs: the crawl makes the copy itself, and continues. cp,
rsync and similar programs copy the files of a running crawl at different moments; such a copy may
be unable to resume.

Immutable files (closed WARC files, parts of the URL database) are shared by hard links if DIR and
TARGET are on one disk, and copied otherwise. A snapshot beside the crawl is therefore cheap; copy it
to another disk as protection against a disk failure.

The copy passes kumo verify, and can resume: kumo crawl -o TARGET. If both crawls resume, they fetch
the remaining URLs twice.

Exit codes: 0 the copy is complete, 1 it is not, 2 wrong usage.`

func snapshotCommand() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{Use: "snapshot DIR [TARGET]", Short: "Copy a crawl, also while it runs; the copy can " +
		"go on", Long: snapshotLong, Example: "  kumo snapshot crawls/news\n  kumo snapshot crawls/news /backup/news-monday",
		Args: between(1, 2, "name the crawl's folder, and the folder for the copy: kumo snapshot DIR [TARGET]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			target := session.SnapshotName(args[0], time.Now())
			if len(args) == 2 {
				target = args[1]
			}
			line := newProgressLine(os.Stderr, !quiet)
			var last inspect.Copied
			err := session.Snapshot(cmd.Context(), args[0], target, func(n inspect.Copied) {
				last = n
				line.show("%d files, %d MB", n.Files, n.Bytes>>20)
			})
			line.clear()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s files, %s bytes\n", target, stats.Grouped(int64(last.Files)),
				stats.Grouped(last.Bytes))
			return nil
		}}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show progress")
	return orOut(cmd)
}
