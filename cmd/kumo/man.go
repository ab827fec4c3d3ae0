package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"kumo/internal/app/job"
)

func manCommand() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write kumo's manual pages, one for each command",
		Args: between(1, 1, "give a folder to write to, as in: kumo man ~/.local/share/man"),
		Long: "man writes the help texts as manual pages to DIR/man1, which it creates. man reads them there.",
		Example: "  kumo man ~/.local/share/man && man kumo-crawl\n" +
			"  sudo kumo man /usr/local/share/man",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := filepath.Join(args[0], "man1")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // keeps the output of a version reproducible
			eachCommand(root, preserveLineBreaks)
			head := &doc.GenManHeader{Section: "1", Source: "kumo " + job.Version, Manual: "kumo", Date: commitTime()}
			if err := doc.GenManTree(root, head, dir); err != nil {
				return fmt.Errorf("write manual pages to %s: %w", dir, err)
			}
			pages, err := filepath.Glob(filepath.Join(dir, "kumo*.1"))
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d pages in %s\n", len(pages), dir)
			}
			return err
		}}
}

// commitTime returns the time of the commit that kumo was built from; nil if it is not known, which means today.
func commitTime() *time.Time {
	info, _ := debug.ReadBuildInfo()
	at, err := time.Parse(time.RFC3339, buildSettings(info)["vcs.time"])
	if err != nil {
		return nil
	}
	return &at
}

// preserveLineBreaks makes manual pages keep the columns of indented text in help.
func preserveLineBreaks(cmd *cobra.Command) {
	cmd.Long = strings.ReplaceAll("\n"+cmd.Long, "\n  ", "\n      ")[1:] // a code block in Markdown
}
