package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/desired"
	"kumo/internal/content/policy"
)

const blockLong = `Exclude URLs of a running crawl by rule: a host, which includes its subdomains, or a
/regular expression/ for URLs. A rule applies to links found from now on. It also applies to
pending URLs, which are excluded when their turn comes, with the reason "block" in kumo explain
and skipped.jsonl. The rule is saved with the crawl, like --block of kumo crawl and kumo start. A
crawl that resumes with --block has both; an empty one (--block=) removes the saved rules.

--dry-run changes nothing, and counts the pending URLs that would be excluded: up to 10,000 on each
of the 2,000 hosts with most pending URLs, for at most two seconds. With --crawl, each node counts
its own; nodes that do not answer within five seconds are listed. --remove removes rules; URLs that
were excluded by them are not restored.`

func blockCommand() *cobra.Command {
	c, a := &clusterFlags{}, &localCrawl{}
	dry, remove := false, false
	cmd := &cobra.Command{Use: "block (--crawl NAME | -o FOLDER) [--dry-run | --remove] RULE...",
		Short: "Exclude hosts or URLs of a running crawl from now on",
		Long:  blockLong, Example: "  kumo block -o crawls/news --dry-run '/[?&]sort=/'\n  kumo block -o crawls/news " +
			"'/[?&]sort=/' ads.example.com\n  kumo block --crawl news --dry-run calendar.example.com\n  kumo block --crawl " +
			"news calendar.example.com\n  kumo block -o crawls/news --remove ads.example.com",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, rules []string) error {
			if len(rules) == 0 {
				return usagef("which rules? name a host, or a /regular expression/")
			}
			if dry && remove {
				return usagef("--dry-run counts URLs that rules would exclude: give it without --remove")
			}
			if _, err := policy.ParseBlocks(rules); err != nil {
				return usagef("%v", err)
			}
			change := func(was []string) []string { return editRules(was, rules, remove) }
			switch {
			case a.dir != "" && dry:
				return a.countBlocked(cmd, rules)
			case a.dir != "":
				return a.block(cmd, change)
			case dry:
				return c.countBlocked(cmd, rules)
			}
			return c.control(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
				err := control.Tune(ctx, func(r desired.Record) ([]settings.Setting, error) {
					return checkChanges(r, []settings.Setting{{Key: job.BlockKey, Values: change(r.Settings[job.BlockKey])}})
				})
				if err != nil {
					return cluster.Advise(err)
				}
				return c.printDone(cmd.OutOrStdout(), blockedWords(rules, remove)+"; all nodes go by it within seconds")
			})
		}}
	c.bindCommand(cmd.Flags())
	a.bind(cmd.Flags())
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing; count the URLs that would be excluded")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the rules")
	cmd.Flags().SortFlags = false
	return cmd
}

// editRules adds rules to was, or removes them.
func editRules(was, rules []string, remove bool) []string {
	all := slices.DeleteFunc(slices.Clone(was), func(r string) bool { return slices.Contains(rules, r) })
	if remove {
		return all
	}
	return append(all, rules...)
}

// withSaved merges the rules given to a resumed crawl with its saved rules, which include those of kumo block. An empty
// rule among those given discards the saved ones.
func withSaved(given, saved []string) []string {
	all := slices.DeleteFunc(slices.Clone(given), func(r string) bool { return r == "" })
	if len(all) < len(given) {
		return all
	}
	for _, r := range saved {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

func blockedWords(rules []string, remove bool) string {
	if remove {
		return strings.Join(rules, ", ") + " may be fetched"
	}
	return strings.Join(rules, ", ") + stats.Either(len(rules), " is", " are") + " left out from now on"
}

func (a *localCrawl) block(cmd *cobra.Command, change func(was []string) []string) error {
	if err := a.check(cmd.Flags()); err != nil {
		return err
	}
	return setRunning(cmd.Context(), cmd.OutOrStdout(), a.dir, func(now map[string][]string) ([]inspect.Setting, error) {
		return []inspect.Setting{{Key: job.BlockKey, Values: change(now[job.BlockKey])}}, nil
	})
}

func (a *localCrawl) countBlocked(cmd *cobra.Command, rules []string) error {
	if err := a.check(cmd.Flags()); err != nil {
		return err
	}
	v, err := openView(cmd.Context(), a.dir)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it was only read
	b, err := session.Blocked(cmd.Context(), v, rules)
	if err != nil {
		return err
	}
	showBlocked(cmd.OutOrStdout(), b.Words(), b.Examples)
	return nil
}

func (c *clusterFlags) countBlocked(cmd *cobra.Command, rules []string) error {
	return c.control(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
		b, err := control.BlockedAll(ctx, rules)
		if err != nil {
			return cluster.Advise(err)
		}
		showBlocked(cmd.OutOrStdout(), b.Words(), b.Examples)
		return nil
	})
}

func showBlocked(w io.Writer, words string, examples []string) {
	fmt.Fprintln(w, words)
	for _, url := range examples {
		fmt.Fprintf(w, "  %s\n", url)
	}
}
