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
	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy/balance/model"
)

// startSamples are the running-time samples given at the first start of a crawl with strategy balance.
type startSamples struct {
	file    string
	samples []model.Sample
	stderr  io.Writer
}

func (b *startSamples) bind(f *pflag.FlagSet) {
	f.StringVar(&b.file, "samples", "", "with strategy balance: start with the running times in `FILE`, .csv or "+
		".jsonl, as written by kumo balance model --export")
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
		fmt.Fprintf(stderr, "kumo: %s has %d samples; a crawl keeps %d, so only the last ones are used\n", b.file, all,
			len(b.samples))
	}
	return nil
}

// start sends the samples to the crawl, and divides hosts into slices if its nodes then share them better.
func (b *startSamples) start(ctx context.Context, control admin.Client, r *desired.Record, o *options,
	all *pflag.FlagSet) error {
	begun := r.Settings != nil
	if begun && len(b.samples) > 0 {
		return usagef("--samples: only the first start of a crawl takes samples, and this crawl has already been started")
	}
	cut := !begun && !all.Lookup(job.SlicesKey).Changed
	if !cut && len(b.samples) == 0 {
		return nil
	}
	strategy, err := clusterStrategy(ctx, control)
	switch {
	case err != nil && len(b.samples) == 0 && ctx.Err() == nil: // the nodes are of another version, and will report it
		return nil
	case err != nil:
		return err
	case len(b.samples) > 0 && strategy.Name != "" && strategy.Name != admin.Balance:
		return usagef("--samples: the crawl's nodes have the strategy %s, which learns nothing: that is for balance",
			strategy.Name)
	}
	if cut {
		if err := b.slice(strategy, o, all); err != nil {
			return err
		}
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

// slice divides hosts into slices if the strategy shares the URLs of each host.
func (b *startSamples) slice(s admin.Strategy, o *options, all *pflag.FlagSet) error {
	n := 1
	switch {
	case s.Name == admin.Balance:
		n = o.Job.PoliteSlices()
	case s.HashesURLs:
		if n = o.Job.PoliteSlices(); n == 1 {
			return usagef("the nodes run with --hash-by url, so all of them fetch from each host at once: use --delay 0 if " +
				"the sites are your own, or start the nodes without --hash-by, and do not limit pages per host")
		}
		n = item.MaxSlices // few URLs share a slice
		if o.Job.Frontier.Delay > 0 {
			n = o.Job.PoliteSlices()
		}
	}
	if n == 1 {
		return nil
	}
	if err := all.Set(job.SlicesKey, strconv.Itoa(n)); err != nil {
		return err
	}
	fmt.Fprintf(b.stderr, "kumo: each host is cut into %d slices, so that all nodes share it; --slices 1 leaves hosts "+
		"whole\n", n)
	return nil
}

const (
	strategyWait = 3 * time.Second // for the first node to report its strategy
	strategyLook = 200 * time.Millisecond
)

// clusterStrategy returns the strategy of the crawl's nodes; the first one may just be starting. It returns none if no
// node reports a strategy.
func clusterStrategy(ctx context.Context, control admin.Client) (s admin.Strategy, err error) {
	waiting, cancel := context.WithTimeout(ctx, strategyWait)
	defer cancel()
	for range wait.Ticks(waiting, strategyLook) {
		if s, err = control.Strategy(ctx); s.Name != "" || err != nil {
			return s, err
		}
	}
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	return s, nil
}
