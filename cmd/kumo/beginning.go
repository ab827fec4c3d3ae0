package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"kumo/internal/app/admin"
	"kumo/internal/app/job"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy/balance/model"
)

// A beginning is what a crawl's first start has beside settings and seeds, for the strategy that its nodes have.
type startSamples struct {
	file    string
	samples []model.Sample
	stderr  io.Writer
}

func (b *startSamples) bind(f *pflag.FlagSet) {
	f.StringVar(&b.file, "samples", "", "with the strategy balance: begin with the running times in this `FILE`, .csv or "+
		".jsonl, as kumo balance model --export writes it")
}

func (b *startSamples) readSamples(stderr io.Writer) (err error) {
	if b.stderr = stderr; b.file == "" {
		return nil
	}
	all := 0
	if b.samples, all, err = importSamples(b.file, admin.MaxSamples); err != nil {
		return &usage{err}
	}
	switch {
	case all == 0:
		return usagef("--samples: %s has none", b.file)
	case all > len(b.samples):
		fmt.Fprintf(stderr, "kumo: %s has %d samples; a crawl keeps %d: the last ones are given\n", b.file, all,
			len(b.samples))
	}
	return nil
}

// begin gives the crawl its samples, and has its hosts cut into slices where its nodes then share them better.
func (b *startSamples) start(ctx context.Context, control admin.Client, r *desired.Record, o *options,
	all *pflag.FlagSet) error {
	begun := r.Settings != nil
	if begun && len(b.samples) > 0 {
		return usagef("--samples: a crawl is given samples with its first start, and this one has begun: it has its own")
	}
	n := o.Job.PoliteSlices()
	cut := !begun && n > 1 && !all.Lookup(job.SlicesKey).Changed
	if !cut && len(b.samples) == 0 {
		return nil
	}
	strategy, err := clusterStrategy(ctx, control)
	switch {
	case err != nil:
		return err
	case len(b.samples) > 0 && strategy != "" && strategy != admin.Balance:
		return usagef("--samples: the crawl's nodes have the strategy %s, which learns nothing: that is for balance",
			strategy)
	}
	if cut && strategy == admin.Balance {
		if err := all.Set(job.SlicesKey, strconv.Itoa(n)); err != nil {
			return err
		}
		fmt.Fprintf(b.stderr, "kumo: each host is cut into %d slices, so that all nodes share it; --slices 1 leaves hosts "+
			"whole\n", n)
	}
	if len(b.samples) == 0 {
		return nil
	}
	if err := control.SetSamples(ctx, b.samples); err != nil {
		return err
	}
	fmt.Fprintf(b.stderr, "kumo: the crawl begins with %s of %s\n", stats.Count(int64(len(b.samples)), "samples"), b.file)
	return nil
}

const (
	strategyWait = 3 * time.Second // for the first node to say what its strategy is
	strategyLook = 200 * time.Millisecond
)

// clusterStrategy is the strategy of the crawl's nodes, the first of which may just come; "" if none says it.
func clusterStrategy(ctx context.Context, control admin.Client) (name string, err error) {
	waiting, cancel := context.WithTimeout(ctx, strategyWait)
	defer cancel()
	for range wait.Ticks(waiting, strategyLook) {
		if name, err = control.Strategy(ctx); name != "" || err != nil {
			return name, err
		}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return "", nil
}
