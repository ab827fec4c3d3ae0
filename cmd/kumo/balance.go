package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/stats"
)

const balanceLong = `Look into what a crawl with the strategy balance has learnt.

  kumo balance model      how long its nodes take for so many URLs

docs/balance.md says how it shares work: kumo node --strategy balance.`

func balanceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "balance", Short: "Look into what a crawl has learnt of its nodes' running times",
		Long: balanceLong, Args: cobra.ArbitraryArgs, RunE: noVerb, DisableFlagsInUseLine: true}
	cmd.AddCommand(balanceModelCommand())
	return cmd
}

const balanceModelLong = `Say what a crawl with the strategy balance has learnt of how long its nodes take for so many URLs: how many samples it has, how far predictions
are off where it knows the truth and has not learnt from it, and how long each node is to take for 10, 100 and 1,000 URLs.

A sample is a piece of work that is done: a node's machine, so many URLs, so many seconds. One in five is held back from learning, and tells
the error. What predictions rest on is said for each node:

  learnt    the network: machine and number of URLs
  pace      the node's own pages a second: there are too few samples yet, or the network is worse than that
  mean      the mean of other nodes' pages a second: the node has no samples
  nothing   nobody has samples: a second a page

A figure of a machine that is not known is shown as -. It is read from the crawl's log, and learnt anew here, as by a master that begins now.

--export writes the samples into a file, as CSV or as JSON lines by its name; kumo start --samples gives them to another crawl.`

const balanceModelExample = `  kumo balance model --crawl docs
  kumo balance model --crawl docs --json | jq .error
  kumo balance model --crawl docs --export docs-2025.csv`

func balanceModelCommand() *cobra.Command {
	c := &clusterFlags{}
	var file string
	var asJSON bool
	cmd := &cobra.Command{Use: "model --crawl NAME [flags]", Short: "Say how long the nodes of a crawl take",
		Long: balanceModelLong, Example: balanceModelExample, Args: cobra.NoArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" {
				if _, err := sampleFormOf(file); err != nil {
					return err
				}
			}
			return c.control(cmd.Context(), cmd.ErrOrStderr(), func(_ context.Context, control admin.Client) error {
				m, samples, err := control.Model(cmd.Context(), c.crawl, c.wait)
				if err != nil {
					return cluster.Advise(err)
				}
				if file != "" {
					if err := exportSamples(file, samples); err != nil {
						return err
					}
					fmt.Fprintf(cmd.ErrOrStderr(), "kumo: %s: %s\n", file, stats.Count(int64(len(samples)), "samples"))
				}
				if asJSON {
					enc := json.NewEncoder(cmd.OutOrStdout())
					enc.SetEscapeHTML(false)
					return enc.Encode(m)
				}
				return printModel(cmd.OutOrStdout(), m)
			})
		}}
	f := cmd.Flags()
	c.bindCommand(f)
	f.StringVar(&file, "export", "", "write all samples into `FILE`, .csv or .jsonl")
	f.BoolVar(&asJSON, "json", false, "answer in JSON")
	f.SortFlags = false
	return cmd
}

// printModel is a model for people.
func printModel(w io.Writer, m *inspect.Model) error {
	fmt.Fprintf(w, "%s: %s\n", m.Crawl, stats.Count(int64(m.Samples), "samples"))
	fmt.Fprintln(w, modelLine(m))
	if len(m.Nodes) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "samples\tcores\tGHz\tGB\tnet Mb/s\tdisk Mb/s\trests on\t")
	for _, p := range m.Nodes[0].Predictions {
		fmt.Fprintf(t, "%d URLs\t", p.URLs)
	}
	fmt.Fprintln(t, "  node")
	for i := range m.Nodes {
		n := &m.Nodes[i]
		fmt.Fprintf(t, "%d\t", n.Samples)
		for _, f := range []float64{n.Machine.Cores, n.Machine.GHz, n.Machine.MemoryGB, n.Machine.NetworkMbps,
			n.Machine.DiskMbps} {
			fmt.Fprintf(t, "%s\t", figure(f))
		}
		fmt.Fprintf(t, "%s\t", n.Basis)
		for _, p := range n.Predictions {
			fmt.Fprintf(t, "%s\t", inSeconds(p.Seconds))
		}
		name := n.Name
		if !n.Member {
			name += " (no member now)"
		}
		fmt.Fprintf(t, "  %s\n", name)
	}
	return t.Flush()
}

func modelLine(m *inspect.Model) string {
	switch {
	case m.Trained == 0:
		return fmt.Sprintf("no network yet: it takes %d samples to learn from, beside those held back", m.Least)
	case m.HeldBack == 0:
		return fmt.Sprintf("a network, learnt from %d; none is held back yet, so its error is not known", m.Trained)
	}
	return fmt.Sprintf("a network, learnt from %d; its error on %d held back is %s, by pages a second alone %s", m.Trained,
		m.HeldBack, wholePercent(m.Error), wholePercent(m.ErrorByPace))
}

// wholePercent is a part of something, without digits behind the point.
func wholePercent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

// figure is a machine's, with three digits.
func figure(f float64) string {
	if f == 0 {
		return "-"
	}
	return strconv.FormatFloat(threeDigits(f), 'f', -1, 64)
}

func threeDigits(f float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 3, 64), 64)
	if err != nil {
		return f
	}
	return rounded
}

// inSeconds is a time, as people say it.
func inSeconds(s float64) string { return figure(s) + " s" }
