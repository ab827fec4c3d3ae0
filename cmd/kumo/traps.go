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
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/engine/crawl"
)

const trapsLong = `List the URL patterns that the crawl in FOLDER has excluded as traps: endless calendars, session IDs
in paths, repeating paths, wildcard host names.

A crawl learns patterns of URLs: their host, directories and query names, with {n}, {date}, {id},
{word} for the parts that differ. A pattern whose pages are copies is visited after all others of
its host. It is excluded only if it is endless: its copies lead to ever more copies. skipped.jsonl
lists the URLs with the rule "trap"; for a limit of a registered domain (--max-pages-per-domain and
others), the limit is the rule, and *.DOMAIN the pattern. See docs/how-to/handle-traps.md.

For each pattern, the number of excluded URLs, the reason and an example are listed.

With --release PATTERN the pattern's URLs are queued again. The next kumo crawl --out FOLDER fetches
them, and all others of the pattern that it finds; *.DOMAIN lifts all three limits of that domain.
kumo crawl --no-traps disables the guard against traps completely.`

type trapsOptions struct {
	release []string
	json    bool
}

func trapsCommand() *cobra.Command {
	o := &trapsOptions{}
	cmd := &cobra.Command{Use: "traps FOLDER", Short: "List URL patterns excluded as traps, or release them",
		Long: trapsLong,
		Example: "  kumo traps crawls/example.com\n" +
			"  kumo traps crawls/example.com --release 'example.com/calendar/{n}/{n}'",
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) }}
	f := cmd.Flags()
	f.StringArrayVar(&o.release, "release", nil, "release URLs of this `PATTERN`, as listed (repeatable)")
	f.BoolVar(&o.json, "json", false, "print JSON, one line for each pattern")
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
			return usagef("%s: no URL of the pattern %q was excluded; kumo traps %[1]s lists patterns", dir, pattern)
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
		fmt.Fprintln(cmd.ErrOrStderr(), "kumo: no URL was excluded as a trap")
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

// releaseTraps adds patterns to the crawl's settings, which readmits their excluded URLs. It fetches nothing.
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
		n := int64(c.Waiting)
		fmt.Fprintf(errs, "kumo: %s %s: kumo crawl --out %s fetches %s\n", stats.Count(n, "URLs"),
			stats.Either(n, "waits", "wait"), dir, stats.Either(n, "it", "them"))
	}
	return errors.Join(err, c.Close())
}
