package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/base/stats"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/collection/sets"
	"kumo/internal/batch/inspect"
)

const batchInitLong = `Write the collections of SET, one YAML file each, to the folder DIR, where you can edit and run
them. Sets:

%s
Files that exist and differ are kept, unless --force is given.`

func batchInitCommand() *cobra.Command {
	var force bool
	var names strings.Builder
	for _, s := range sets.All() {
		fmt.Fprintf(&names, "  %s   %s\n", s.Name, s.Description)
	}
	cmd := &cobra.Command{Use: "init SET DIR", Short: "Write a set of collections to start from",
		Long: fmt.Sprintf(batchInitLong, names.String()), Example: "  kumo batch init news27 collections",
		Args: between(2, 2, "give a set and a folder, as in: kumo batch init news27 collections"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return batchInit(cmd.OutOrStdout(), args[0], args[1], force)
		}}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite files that you have edited")
	return cmd
}

func batchInit(w io.Writer, name, dir string, force bool) error {
	set, err := sets.Open(name)
	if err != nil {
		var names []string
		for _, s := range sets.All() {
			names = append(names, s.Name)
		}
		return usagef("%q is not a set of collections; sets: %s", name, strings.Join(names, ", "))
	}
	counts := map[sets.Outcome]int{}
	err = sets.Write(set, dir, force, func(file string, o sets.Outcome) {
		counts[o]++
		if o == sets.Edited {
			fmt.Fprintf(w, "%s was edited, so it is kept; --force overwrites it\n", file)
		}
	})
	if err != nil {
		return err
	}
	for _, o := range []sets.Outcome{sets.Written, sets.Overwritten, sets.Same} {
		if n := counts[o]; n > 0 {
			fmt.Fprintf(w, "%s: %s %s\n", dir, stats.Count(n, "collections"), o)
		}
	}
	fmt.Fprint(w, "\nEdit the files: seeds, rules, depth and times. Comments list sites whose address is not known. "+
		"Then\n\n")
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(tab, "  kumo batch check %s\twhat they say, or what is wrong with them\n", dir)
	fmt.Fprintf(tab, "  kumo batch run --contact https://me.example/bot %s\tcrawl today\n", dir)
	fmt.Fprintf(tab, "  kumo batch schedule --contact https://me.example/bot %s\tcrawl each day\n", dir)
	return tab.Flush()
}

const batchCheckLong = `Check the collections in CONFIG, which are YAML files or folders of them. Each error is printed
with file, line, key and the expected value. Without errors, list the collections with their next
scheduled run.

Exit codes: 0 no errors, 2 errors.`

func batchCheckCommand() *cobra.Command {
	return &cobra.Command{Use: "check CONFIG...", Short: "Check collections for errors", Long: batchCheckLong,
		Args: someCollections,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := loadCollections("", args)
			if err != nil {
				return err
			}
			return listCollections(cmd.OutOrStdout(), all, time.Now())
		}}
}

var someCollections = between(1, math.MaxInt, "which collections? name their YAML files, or a folder of them")

func listCollections(w io.Writer, all []*collection.Collection, now time.Time) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "code\tdirectory\tlanguage\tseeds\tdepth\tschedule\tnext run\tname")
	for _, c := range all {
		when, err := c.ParsedSchedule()
		if err != nil {
			return err
		}
		next := "-"
		if at := when.Next(now); !at.IsZero() {
			next = at.Format("2006-01-02 15:04 MST")
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.Code, c.Directory, c.Language.Code, len(c.Seeds), c.Depth,
			cmp.Or(c.Schedule, "-"), next, cmp.Or(inspect.VisibleLine(c.Name), "-"))
	}
	return tab.Flush()
}
