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

const snapshotLong = `Copy the crawl in DIR, as it is at one moment, into the new folder TARGET (default: beside it, DIR.snapshot-TIME).

This is how to back up a crawl, also while it runs: the crawl makes the copy itself, through the port that it answers questions at, and
goes on meanwhile. cp, rsync and the like copy files of a crawl that runs at different moments; such a copy may be refused when it is
to go on.

Files that never change any more (closed WARC files, parts of the URL database) are shared by hard links where DIR and TARGET are on one
disk, and copied otherwise; so a snapshot beside the crawl costs little, and is to be copied elsewhere if the disk itself may be lost.

The copy passes kumo verify, and goes on as a crawl: kumo crawl -o TARGET. Two crawls that go on from one moment fetch the rest twice.

Exit codes: 0 the copy is there, 1 it is not, 2 wrong usage.`

func snapshotCommand() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{Use: "snapshot DIR [TARGET]", Short: "Copy a crawl, also while it runs, so that the copy can " +
		"go on", Long: snapshotLong, Example: "  kumo snapshot crawls/news\n  kumo snapshot crawls/news /backup/news-monday",
		Args: between(1, 2, "name the crawl's folder, and where the copy goes: kumo snapshot DIR [TARGET]"),
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
			fmt.Fprintf(
				cmd.OutOrStdout(),
				"%s: %s files, %s bytes\n",
				target,
				stats.Grouped(int64(last.Files)),
				stats.Grouped(last.Bytes),
			)
			return nil
		}}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not say how far it is")
	return orOut(cmd)
}
