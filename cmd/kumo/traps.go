package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/wire"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/engine/crawl"
)

const trapsLong = `List what the crawl in FOLDER has left out as traps: calendars without end, session ids in paths, paths that go
round, names that any host answers to.

A crawl learns patterns of URLs: their host, directories and names in the query, with {n}, {date}, {id}, {word} in the place of
what differs. A pattern whose pages are copies goes after all others of its host; it is left out only if it has no end: its
copies lead to ever more copies. skipped.jsonl has what is left out with the rule "trap"; of a registered domain that is
bounded (--max-pages-per-domain and others) the bound is the rule, and *.DOMAIN the pattern. docs/how-to/handle-traps.md says more.

For each pattern there are the number of URLs that were left out, what was known then, and an example.

With --release PATTERN the URLs of the pattern wait again, and the next kumo crawl --out FOLDER fetches them and those that it
finds later, whatever they bring; with *.DOMAIN all three bounds of that domain are lifted. kumo crawl --no-traps has no guard against traps at all.`

type trapsOptions struct {
	release []string
	json    bool
}

func trapsCommand() *cobra.Command {
	o := &trapsOptions{}
	cmd := &cobra.Command{Use: "traps FOLDER", Short: "List what a crawl has left out as traps, or let it in",
		Long: trapsLong,
		Example: "  kumo traps crawls/example.com\n" +
			"  kumo traps crawls/example.com --release 'example.com/calendar/{n}/{n}'",
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) }}
	f := cmd.Flags()
	f.StringArrayVar(&o.release, "release", nil, "let URLs of this `PATTERN` in, as it is listed (repeatable)")
	f.BoolVar(&o.json, "json", false, "answer in JSON, a line for each pattern")
	return orOut(cmd)
}

func (o *trapsOptions) run(cmd *cobra.Command, dir string) error {
	saved, err := savedIn(dir)
	if err != nil {
		return err
	}
	released := settings.Map(saved)[job.ReleaseTrapKey]
	all, err := inspect.TrapPatterns(vfs.OS, filepath.Join(dir, "skipped.jsonl"), crawl.TrapRules, released)
	if err != nil {
		return err
	}
	if len(o.release) == 0 {
		return o.list(cmd, all)
	}
	for _, pattern := range o.release {
		if !slices.ContainsFunc(all, func(p inspect.TrapPattern) bool { return p.Pattern == pattern }) {
			return usagef("%s: nothing of the pattern %q was left out; kumo traps %[1]s lists patterns", dir, pattern)
		}
	}
	return releaseTraps(cmd.Context(), cmd.ErrOrStderr(), dir, released, o.release)
}

func (o *trapsOptions) list(cmd *cobra.Command, all []inspect.TrapPattern) error {
	out := cmd.OutOrStdout()
	if o.json {
		return jsonLines(out, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "kumo: nothing was left out as a trap")
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "urls\tpattern\tevidence\texample")
	for i := range all {
		p := &all[i]
		if p.Released {
			p.Evidence += "; released"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", p.URLs, p.Pattern, p.Evidence, p.Example)
	}
	return w.Flush()
}

// releaseTraps makes patterns settings of the crawl, which lets in what was left out, and fetches nothing.
func releaseTraps(ctx context.Context, errs io.Writer, dir string, released, more []string) (err error) {
	var args []string
	for _, pattern := range append(slices.Clone(released), more...) {
		if arg := "--" + job.ReleaseTrapKey + "=" + pattern; !slices.Contains(args, arg) {
			args = append(args, arg)
		}
	}
	o, err := savedOptions(ctx, dir, args...)
	if err != nil {
		return err
	}
	o.Job.Warn = func(err error) { fmt.Fprintln(errs, "kumo:", err) }
	c, err := wire.Open(ctx, &o.Job)
	if err != nil {
		return err
	}
	if c.Waiting > 0 {
		fmt.Fprintf(errs, "kumo: %d URLs wait: kumo crawl --out %s fetches them\n", c.Waiting, dir)
	}
	return errors.Join(err, c.Close())
}
