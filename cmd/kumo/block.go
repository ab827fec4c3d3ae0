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

const blockLong = `Have a crawl that runs fetch nothing more of what a rule names: a host, which stands for its subdomains, too, or a /regular expression/ that
URLs are matched with. It holds for links that are found from now on and for URLs that wait, which are left out when their turn comes, with the
reason "block" that kumo explain and skipped.jsonl name. The rule is kept with the crawl, as --block of kumo crawl and kumo start is: a crawl that goes on with
--block has both; with an empty one (--block=) it forgets those that it has.

--dry-run changes nothing, and counts how many of the URLs that wait would be left out: of the 2,000 hosts
where most waits 10,000 each are looked at, for two seconds. With --crawl each node does that with what waits there, and those are named that
have not answered after five seconds. With --remove the rules hold no longer; what was left out meanwhile is not brought back by that.`

func blockCommand() *cobra.Command {
	c, a := &clusterFlags{}, &localCrawl{}
	dry, remove := false, false
	cmd := &cobra.Command{Use: "block (--crawl NAME | -o FOLDER) [--dry-run | --remove] RULE...",
		Short: "Have a crawl leave out hosts or URLs from now on",
		Long:  blockLong, Example: "  kumo block -o crawls/news --dry-run '/[?&]sort=/'\n  kumo block -o crawls/news " +
			"'/[?&]sort=/' ads.example.com\n  kumo block --crawl news --dry-run calendar.example.com\n  kumo block --crawl " +
			"news calendar.example.com\n  kumo block -o crawls/news --remove ads.example.com",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, rules []string) error {
			if len(rules) == 0 {
				return usagef("what is to be left out? name a host, or a /regular expression/")
			}
			if dry && remove {
				return usagef("--dry-run counts what rules would leave out: leave --remove out")
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
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing, and count what would be left out")
	cmd.Flags().BoolVar(&remove, "remove", false, "have the rules hold no longer")
	cmd.Flags().SortFlags = false
	return cmd
}

// editRules are rules with some more, or some less.
func editRules(was, rules []string, remove bool) []string {
	all := slices.DeleteFunc(slices.Clone(was), func(r string) bool { return slices.Contains(rules, r) })
	if remove {
		return all
	}
	return append(all, rules...)
}

// withSaved are rules that are given to a crawl that goes on, with those that it has: kumo block has put some there. An
// empty one among those given has it go on without.
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
