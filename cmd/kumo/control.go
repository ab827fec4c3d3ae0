package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/desired"
	"kumo/internal/engine/seeds"
	"kumo/internal/view/text"
)

// The commands that control a crawl of several nodes. They work on any machine that reaches a node with a server.

const joinUsage = "reach the crawl at these `ADDR`esses, HOST:PORT, of nodes that run servers, or with mesh of any " +
	"(default " +
	defaultAddress + ")"

const startLong = `Start the nodes of a crawl with the given URLs. After kumo stop, or when the crawl was done, resume
it, with or without more URLs. The nodes must be running: kumo node.

The flags are those flags of kumo crawl that set what is crawled, and how politely. They apply to
all nodes, from the first start on. Flags for one machine, such as --memory and --concurrency, and
secrets, such as --header, belong to kumo node.

A later start may change settings that do not define the crawl; kumo set lists them, and changes
some of them while the crawl runs.

On nodes that serve all crawls of their cluster (kumo node without --crawl), it adds the crawl, with its
own --strategy.

With strategy balance, several nodes share each host if politeness allows it, unless --slices is
given: with --delay 0 each host is divided into 256 slices, with --per-host N into N. --samples
gives the crawl the running times of another one: a file written by kumo balance model --export.

--limit counts the pages of all nodes together, which fetch no more. --size-limit is counted every
few seconds, so nodes receive a little more. --time-limit counts from this command. At a limit all
nodes end, and can be resumed.`

const startExample = `  kumo start --crawl news --contact https://me.example/bot https://example.com/
  kumo start --crawl news --join a.internal:7070 --secret-file cluster.secret --scope domain -i seeds.txt
  kumo start --crawl docs --delay 0 --samples docs-2025.csv https://docs.example.com/    # your own site`

func startCommand() *cobra.Command {
	o, c := &options{}, &clusterFlags{creates: true}
	b := &startSamples{}
	all := crawlFlags(o)
	cmd := &cobra.Command{Use: "start --crawl NAME [flags] URL...", Short: "Start or resume the nodes of a crawl",
		Long: startLong, Example: startExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer func() { err = errors.Join(err, closeInput(&o.Job)) }()
			if err := o.readStart(cmd.Context(), all, args); err != nil {
				return err
			}
			if err := b.readSamples(cmd.ErrOrStderr()); err != nil {
				return err
			}
			o.warn(cmd.ErrOrStderr())
			c.wait += seedTime(&o.Job)
			return c.control(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
				r, err := control.Record(ctx)
				if err != nil {
					return err
				}
				revisits := o.Due || len(o.Recrawl) > 0 || len(r.Settings[desired.RecrawlKey]) > 0
				if err := mayStart(c.crawl, r, seedCount(&o.Job), revisits); err != nil {
					return err
				}
				if err := b.start(ctx, control, &r, o, all); err != nil {
					return cluster.Advise(err)
				}
				if all.Lookup(job.BlockKey).Changed {
					o.Job.Block = withSaved(o.Job.Block, r.Settings[job.BlockKey])
				}
				settings := o.sharedSettings(all)
				if r.Settings != nil {
					if settings, err = o.changedSettings(all, c.crawl, r.Settings); err != nil {
						return err
					}
				}
				if err := control.Start(ctx, settings, o.Job.Seeds, o.Job.File); err != nil {
					return cluster.Advise(err)
				}
				c.warnUnsent(ctx, cmd.ErrOrStderr(), control, r.Settings[job.SinkKey], settings)
				return c.printDone(cmd.OutOrStdout(), "started"+withSeeds(seedCount(&o.Job)))
			})
		}}
	f := cmd.Flags()
	c.bindCommand(f)
	borrow(f, all, ofScope(setting.Crawl))
	b.bind(f)
	f.Var(setting.Choice(&c.strategy, cluster.HostedStrategies()), "strategy", "on nodes without --crawl: strategy for "+
		"sharing the crawl's hosts, as of kumo node (default shard)")
	f.Var(setting.Choice(&c.splitter, cluster.Splitters()), "splitter", "with strategy balance on nodes without --crawl: "+
		"as of kumo node (default exact)")
	withSettingsHelp(cmd)
	f.Lookup("limit").Usage = "stop after `N` pages of all nodes together, whatever their status (0: no limit)"
	f.SortFlags = false
	return cmd
}

func mayStart(crawl string, r desired.Record, seeds int, revisits bool) error {
	switch {
	case r.State == desired.Running:
		return advice.With(fmt.Errorf("the crawl %q runs already, since %s", crawl, text.Time(r.Changed)),
			"kumo add adds URLs to it, kumo set changes settings, kumo status shows its state, kumo stop ends it")
	case r.State == desired.Paused:
		return advice.With(fmt.Errorf("the crawl %q is paused, since %s", crawl, text.Time(r.Changed)),
			"kumo resume continues it, kumo add adds URLs to it")
	case seeds == 0 && r.Seeds == 0:
		return job.ErrNoSeeds
	case seeds == 0 && r.State == desired.Done && !revisits:
		return advice.With(fmt.Errorf("the crawl %q is done, since %s: no URL is pending", crawl, text.Time(r.Changed)),
			"name more URLs to begin with, or visit its pages again with --due or --recrawl")
	}
	return nil
}

func withSeeds(n int) string {
	if n == 0 {
		return ""
	}
	return ", with " + stats.Count(n, "URLs")
}

func (c *clusterFlags) printDone(w io.Writer, what string) error {
	where := ""
	if len(c.join) > 0 {
		where = " --join " + strings.Join(c.join, ",")
	}
	if c.nats != "" {
		where = " --nats " + c.nats
	}
	if c.secretFile != "" {
		where += " --secret-file " + c.secretFile
	}
	_, err := fmt.Fprintf(w, "%s: %s; see: kumo status --crawl %s%s\n", c.crawl, what, c.crawl, where)
	return err
}

func addCommand() *cobra.Command {
	o, c, a := &options{}, &clusterFlags{}, &localCrawl{}
	cmd := &cobra.Command{
		Use:                   "add (--crawl NAME | -o FOLDER) [flags] URL...",
		Short:                 "Add URLs to a running crawl",
		DisableFlagsInUseLine: true,
		Long: `Add seeds to a crawl of several nodes, or to one that runs on this machine. They, and the links on
them, are then in the crawl's --scope. The command prints how many were new; known URLs are not
fetched again.`,
		Example: "  kumo add --crawl news https://example.org/\n  kumo add -o crawls/news https://example.org/",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer func() { err = errors.Join(err, closeInput(&o.Job)) }()
			o.Job.Seeds = args
			if err := o.readInput(cmd.Context()); err != nil {
				return err
			}
			o.warn(cmd.ErrOrStderr())
			c.wait += seedTime(&o.Job)
			if !o.Job.HasSeeds() {
				return usagef("no URL to add: name one, or give a file of them with --input-file")
			}
			if a.dir != "" {
				if o.Job.File != nil && !o.Job.File.Few() {
					return usagef("--input-file has more URLs than can be added at once: kumo crawl -o %s -i reads a long file", a.dir)
				}
				if _, err := seeds.Parse(o.Job.Seeds); err != nil {
					return err
				}
				return a.control(cmd, func(ctx context.Context, s inspect.Controller) (string, error) {
					news, err := s.Add(ctx, o.Job.Seeds)
					all := len(o.Job.Seeds)
					return fmt.Sprintf("%s added, %d of them new", stats.Count(all, "URLs"), news), err
				})
			}
			return c.control(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
				known, err := control.CountKnown(ctx, o.Job.Seeds) // before they are added
				if err != nil {
					return cluster.Advise(err)
				}
				if err := control.Add(ctx, o.Job.Seeds, o.Job.File); err != nil {
					return cluster.Advise(err)
				}
				return c.printDone(cmd.OutOrStdout(), addedFromFile(known, o.Job.File))
			})
		},
	}
	c.bindCommand(cmd.Flags())
	a.bind(cmd.Flags())
	borrow(cmd.Flags(), crawlFlags(o), []string{"input-file", "skip-bad-seeds"})
	cmd.Flags().SortFlags = false
	return cmd
}

func addedText(k node.Known) string {
	all := k.New + k.Known + k.Unsure
	urls := stats.Count(all, "URLs")
	switch {
	case all == k.New:
		return stats.Count(k.New, "URLs", "new") + " added"
	case all == k.Unsure:
		return urls + " added; known ones are not fetched again"
	case all == k.Known:
		return fmt.Sprintf("nothing new: %s known already, and %s or %s visited", isOrAre(all, urls),
			stats.Either(all, "waits", "wait"), stats.Either(all, "was", "were"))
	case k.Unsure == 0:
		return fmt.Sprintf("%s added; %s known already", stats.Count(k.New, "URLs", "new"),
			isOrAre(k.Known, fmt.Sprint(k.Known)))
	}
	return fmt.Sprintf("of %s, %d new and %d known already; for %d, no node has reported it yet", urls, k.New,
		k.Known, k.Unsure)
}

// addedFromFile describes how many URLs were added when there is a long file among them. The nodes find out themselves
// which of its URLs are new.
func addedFromFile(k node.Known, file *seeds.File) string {
	if file == nil || file.Few() {
		return addedText(k)
	}
	text := fmt.Sprintf("%s of %s added; known ones are not fetched again",
		stats.Count(file.Count, "URLs"), file.Title())
	if k != (node.Known{}) {
		text = addedText(k) + "; " + text
	}
	return text
}

func isOrAre(n int, what string) string { return what + stats.Either(n, " is", " are") }

func stateCommand(name, short, long, done string, change func(admin.Client, context.Context) error,
	here func(context.Context, inspect.Controller) (string, error)) *cobra.Command {
	c, a := &clusterFlags{}, &localCrawl{}
	cmd := &cobra.Command{Use: name + " (--crawl NAME | -o FOLDER)", Short: short, Long: long, Args: cobra.NoArgs,
		Example: "  kumo " + name + " --crawl news\n  kumo " + name + " -o crawls/news", DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.dir != "" {
				return a.control(cmd, here)
			}
			return c.control(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
				if err := change(control, ctx); err != nil {
					return cluster.Advise(err)
				}
				return c.printDone(cmd.OutOrStdout(), done)
			})
		}}
	c.bindCommand(cmd.Flags())
	a.bind(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

func pauseCommand() *cobra.Command {
	return stateCommand("pause", "Pause a crawl",
		"Pause the nodes of a crawl, or a crawl that runs on this machine, until kumo resume. Requests "+
			"in flight are finished.",
		"paused", admin.Client.Pause, func(ctx context.Context, s inspect.Controller) (string, error) {
			return "paused", s.Pause(ctx, true)
		})
}

func resumeCommand() *cobra.Command {
	return stateCommand("resume", "Resume a paused crawl", "Resume a crawl that kumo pause has paused.",
		"goes on",
		admin.Client.Resume, func(ctx context.Context, s inspect.Controller) (string, error) {
			return "goes on", s.Pause(ctx, false)
		})
}

func stopCommand() *cobra.Command {
	return stateCommand(
		"stop",
		"Stop a crawl, to be resumed later",
		`Stop all nodes of a crawl. They finish requests in flight, save their state, keep their place in the
crawl, and exit. To resume, run the same kumo node commands, and then kumo start. Nodes of all crawls
(kumo node without --crawl) do not exit, and go on with the other crawls.

A crawl on this machine stops as with Ctrl-C: the same kumo crawl command resumes it.`,
		"the nodes end",
		admin.Client.Stop,
		func(ctx context.Context, s inspect.Controller) (string, error) { return "ends", s.Stop(ctx) },
	)
}

// localCrawl is a crawl on this machine, for commands that also control a crawl of several nodes.
type localCrawl struct{ dir string }

func (a *localCrawl) bind(f *pflag.FlagSet) {
	f.StringVarP(&a.dir, "out", "o", "", "a crawl on this machine, by its `FOLDER`")
	f.Lookup("crawl").Usage = "a crawl of several nodes, by its `NAME`: letters, digits, - and _"
}

// check rejects flags that do not apply to a crawl on this machine.
func (a *localCrawl) check(f *pflag.FlagSet) error {
	for _, n := range []string{"crawl", "join", "nats", "secret-file", "wait", "hosts"} {
		if f.Changed(n) {
			return usagef("--%s is for a crawl of several nodes: leave it or --out out", n)
		}
	}
	return nil
}

func (a *localCrawl) control(cmd *cobra.Command,
	f func(context.Context, inspect.Controller) (done string, err error)) error {
	if err := a.check(cmd.Flags()); err != nil {
		return err
	}
	var done string
	err := session.WithController(cmd.Context(), a.dir, func(s inspect.Controller) (err error) {
		done, err = f(cmd.Context(), s)
		return err
	})
	if errors.Is(err, session.ErrNotRunning) {
		return usagef("the crawl in %s does not run: kumo crawl -o %s, with or without more URLs, lets it go on", a.dir,
			a.dir)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; see: kumo status -o %s\n", a.dir, done, a.dir)
	return err
}
