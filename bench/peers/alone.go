package main

import (
	"context"
	"fmt"
	"os"
)

// This file measures kumo alone, on webs whose hosts have names, so that DNS look-ups are included.

// A setup is one side of a pair.
type setup struct {
	name        string
	web         []string
	concurrency int
	env         []string
}

// measureScale measures how the cost of a page changes with more concurrency, more hosts and more processors.
func measureScale(ctx context.Context, b *bench) error {
	b.defaults(2000, 40_000, 64, 3)
	web := b.webFlags(b.hosts, b.pages, "--addresses", "64")
	few, many := b.webFlags(100, 2000, "--addresses", "64"), b.webFlags(b.scaleHosts, 20*b.scaleHosts, "--addresses", "64")
	at := func(n int) string { return fmt.Sprintf("%d at once", n) }
	pairs := [][2]setup{
		{{at(b.concurrency), web, b.concurrency, nil}, {at(16 * b.concurrency), web, 16 * b.concurrency, nil}},
		{{"100 hosts", few, b.concurrency, nil}, {fmt.Sprintf("%d hosts", b.scaleHosts), many, b.concurrency, nil}},
		{{"GOMAXPROCS=1", web, b.concurrency, []string{"GOMAXPROCS=1"}}, {"GOMAXPROCS=2", web, b.concurrency,
			[]string{"GOMAXPROCS=2"}}},
	}
	var t table
	t.add("A", "B", "µs CPU a page, A", "B", "B is x", "pages/s, A", "B", "B is x", "peak MB, A", "B", "coverage, B")
	for _, pair := range pairs {
		first, second, err := b.pair(ctx, pair)
		if err != nil {
			return err
		}
		t.add(pair[0].name, pair[1].name, spread(each(first, result.perPage)), spread(each(second, result.perPage)),
			spread(ratios(second, first, result.perPage)), spread(each(first, result.perSecond)),
			spread(each(second, result.perSecond)),
			spread(ratios(second, first, result.perSecond)), spread(each(first, peakMB)), spread(each(second, peakMB)),
			fmt.Sprintf("%.1f%%", median(each(second, coverage))))
	}
	fmt.Printf("\n%d pages on %d hosts, 20 a host where their number differs, %d at once, pairs: %d; median "+
		"(least-greatest)\n\n",
		b.pages, b.hosts, b.concurrency, b.rounds)
	t.print(os.Stdout)
	return nil
}

// pair runs two setups in turns.
func (b *bench) pair(ctx context.Context, sides [2]setup) (first, second []result, err error) {
	kumo := kumoPeer(b.kumo)
	for range b.rounds {
		for i, to := range []*[]result{&first, &second} {
			s := sides[i]
			r, err := b.crawl(ctx, kumo, s.concurrency, 0, s.web, s.env...)
			if err != nil {
				return nil, nil, err
			}
			b.say("%-14s %s µs CPU a page, %s pages/s", s.name, number(r.perPage()), number(r.perSecond()))
			*to = append(*to, r)
		}
	}
	return first, second, nil
}

// measureTLS measures large pages and many handshakes.
func measureTLS(ctx context.Context, b *bench) error {
	b.defaults(100, 5000, 64, 3)
	return b.alone(ctx, "242-KB pages over TLS 1.3, 10 a connection",
		b.webFlags(b.hosts, b.pages, "--tls", "--page-size", "242KB", "--per-connection", "10"))
}

// measureMemory measures a crawl's memory.
func measureMemory(ctx context.Context, b *bench) error {
	b.defaults(100, 100_000, 64, 3)
	return b.alone(ctx, "memory", b.webFlags(b.hosts, b.pages))
}

// alone runs kumo several times on one web.
func (b *bench) alone(ctx context.Context, title string, web []string) error {
	var runs []result
	for round := range b.rounds {
		r, err := b.run(ctx, round, kumoPeer(b.kumo), 0, web)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	fmt.Printf("\n%s: %d pages on %d hosts, %d at once, rounds: %d; median (least-greatest)\n\n", title, b.pages, b.hosts,
		b.concurrency, b.rounds)
	var t table
	t.add("pages/CPU s", "pages/s", "CPU s", "wall s", "peak MB", "coverage", "connections", "server/CPU")
	t.add(spread(each(runs, result.perCPU)), spread(each(runs, result.perSecond)), spread(each(runs, cpuSeconds)),
		spread(each(runs, wallSeconds)), spread(each(runs, peakMB)), fmt.Sprintf("%.1f%%", median(each(runs, coverage))),
		fmt.Sprintf("%.0f", median(each(runs, func(r result) float64 { return float64(r.score.Connections) }))),
		fmt.Sprintf("%.2f", median(each(runs, serverShare))))
	t.print(os.Stdout)
	return nil
}
