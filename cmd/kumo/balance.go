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

const balanceLong = `Inspect the running-time model of a crawl with strategy balance.

  kumo balance model      how long its nodes take for URLs

docs/explanation/balance.md describes how the strategy shares work: kumo node --strategy balance.`

func balanceCommand() *cobra.Command {
	return withVerbs("balance", "Inspect the running-time model of a crawl with strategy balance", balanceLong,
		balanceModelCommand())
}

const balanceModelLong = `Show the running-time model of a crawl with strategy balance: the number of samples, the
error of predictions on samples not used for training, and the predicted time of each node for 10,
100 and 1,000 URLs.

A sample is a finished batch of work: a node's machine, a number of URLs, and the seconds taken.
One sample in five is held back from training, to measure the error. Predictions for a node are
based on:

  learnt    the neural network: machine and number of URLs
  pace      the node's own pages per second: too few samples yet, or the network is less accurate
  mean      the mean pages per second of other nodes: the node has no samples
  nothing   there are no samples: one second per page

Unknown properties of a machine are shown as -. The command reads the samples from the crawl's log,
and trains the model again, like a new master.

--export writes the samples to a file, as CSV or JSON Lines depending on its name; kumo start
--samples gives them to another crawl.`

const balanceModelExample = `  kumo balance model --crawl docs
  kumo balance model --crawl docs --json | jq .error
  kumo balance model --crawl docs --export docs-2025.csv`

func balanceModelCommand() *cobra.Command {
	c := &clusterFlags{}
	var file string
	var asJSON bool
	cmd := &cobra.Command{Use: "model --crawl NAME [flags]", Short: "Show how long a crawl's nodes take for URLs",
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
	f.StringVar(&file, "export", "", "write all samples to `FILE`, .csv or .jsonl")
	f.BoolVar(&asJSON, "json", false, "print JSON")
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

// importSamples reads a file of samples. It returns the last samples, at most most, and the total number.
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
		if all++; len(last) == 2*most { // trims only now and then, which is cheap
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
