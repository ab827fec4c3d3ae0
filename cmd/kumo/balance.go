package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/view/text"
)

const balanceLong = `Look into what a crawl with the strategy balance has learnt.

  kumo balance model      how long its nodes take for so many URLs

docs/explanation/balance.md says how it shares work: kumo node --strategy balance.`

func balanceCommand() *cobra.Command {
	return withVerbs("balance", "Look into what a crawl has learnt of its nodes' running times", balanceLong,
		balanceModelCommand())
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
				if _, err := sampleFormatOf(file); err != nil {
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
					return text.JSON(cmd.OutOrStdout(), m)
				}
				return text.Model(cmd.OutOrStdout(), m)
			})
		}}
	f := cmd.Flags()
	c.bindCommand(f)
	f.StringVar(&file, "export", "", "write all samples into `FILE`, .csv or .jsonl")
	f.BoolVar(&asJSON, "json", false, "answer in JSON")
	f.SortFlags = false
	return cmd
}

type sampleFormat struct {
	write func(io.Writer, []model.Sample) error
	read  func(io.Reader) iter.Seq2[model.Sample, error]
}

func sampleFormatOf(file string) (sampleFormat, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".csv":
		return sampleFormat{model.WriteCSV, model.ReadCSV}, nil
	case ".jsonl":
		return sampleFormat{model.WriteJSON, model.ReadJSON}, nil
	}
	return sampleFormat{}, usagef("%s: a file of samples is called .csv or .jsonl", file)
}

// importSamples reads a file of samples, and returns the last of them, most at most, and how many there are.
func importSamples(file string, most int) (last []model.Sample, all int, err error) {
	form, err := sampleFormatOf(file)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	for s, err := range form.read(f) {
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", file, err)
		}
		if all++; len(last) == 2*most { // now and then, so that reading stays cheap
			last = append(last[:0], last[most:]...)
		}
		last = append(last, s)
	}
	return last[max(0, len(last)-most):], all, nil
}

// exportSamples writes samples to a file. It replaces an existing file only after all samples are written.
func exportSamples(file string, samples []model.Sample) (err error) {
	form, err := sampleFormatOf(file)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err = form.write(&b, samples); err == nil {
		err = vfs.Replace(vfs.OS, file, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	return nil
}
