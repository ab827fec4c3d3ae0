package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// A duel has the runs of a peer, and the runs of kumo made right before each.
type duel struct {
	peer *peer
	kumo []result
	runs []result

	failed error // error that ended the peer's runs
}

// comparePeers runs kumo and each peer in turns. The web's hosts are IP addresses, which all crawlers can reach without
// DNS.
func comparePeers(ctx context.Context, b *bench) error {
	b.defaults(100, 20_000, 64, 3)
	chosen, err := choose(ctx, b.tools, b.peers, b.say)
	if err != nil {
		return err
	}
	kumo := kumoPeer(b.kumo)
	web := b.webFlags(b.hosts, b.pages, "--by-address")
	duels := make([]*duel, len(chosen))
	for i, p := range chosen {
		duels[i] = &duel{peer: p}
	}
	for round := range b.rounds {
		for _, d := range duels {
			if err := b.fight(ctx, round, d, kumo, web); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n%d pages on %d hosts, %d at once, rounds: %d; median (least-greatest)\n\n", b.pages, b.hosts,
		b.concurrency, b.rounds)
	printDuels(kumo, duels)
	return nil
}

// fight runs kumo and a peer, unless the peer has failed before.
func (b *bench) fight(ctx context.Context, round int, d *duel, kumo *peer, web []string) error {
	if d.failed != nil {
		return nil
	}
	own, err := b.run(ctx, round, kumo, 0, web)
	if err != nil {
		return err
	}
	d.kumo = append(d.kumo, own)
	other, err := b.run(ctx, round, d.peer, b.limit, web)
	if err != nil {
		d.failed = err
		b.say("FAILED: %v", err)
		return ctx.Err()
	}
	d.runs = append(d.runs, other)
	return nil
}

// run makes and reports one run of a round.
func (b *bench) run(ctx context.Context, round int, p *peer, limit time.Duration, web []string) (result, error) {
	r, err := b.crawl(ctx, p, b.concurrency, limit, web)
	if err == nil {
		b.say("round %d: %-10s %6d pages, %s s CPU, %s s, %s MB", round+1, p.name, r.score.Covered,
			number(cpuSeconds(r)), number(wallSeconds(r)), number(peakMB(r)))
	}
	return r, err
}

// say prints progress.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func printDuels(kumo *peer, duels []*duel) {
	var t table
	t.add("crawler", "pages/CPU s", "kumo is x", "CPU s", "wall s", "peak MB", "coverage", "repeats", "forbidden",
		"before robots", "server/CPU", "does")
	var own []result
	for _, d := range duels {
		own = append(own, d.kumo...)
	}
	t.add(row(kumo, own, "1")...)
	for _, d := range duels {
		if len(d.runs) == 0 {
			t.add(d.peer.name, "FAILED")
			continue
		}
		t.add(row(d.peer, d.runs, spread(ratios(d.kumo, d.runs, result.perCPU)))...)
	}
	t.print(os.Stdout)
}

// row returns a crawler's row of the table.
func row(p *peer, runs []result, ratio string) []string {
	count := func(n func(score) int64) string {
		return fmt.Sprintf("%.0f", median(each(runs, func(r result) float64 { return float64(n(r.score)) })))
	}
	does := p.does
	for _, r := range runs {
		if r.stopped {
			does += "; STOPPED at the time limit"
			break
		}
	}
	return []string{p.name, spread(each(runs, result.perCPU)), ratio, spread(each(runs, cpuSeconds)),
		spread(each(runs, wallSeconds)),
		spread(each(runs, peakMB)), fmt.Sprintf("%.1f%%", median(each(runs, coverage))),
		count(func(s score) int64 { return s.Repeats + s.RepeatsOther }), count(func(s score) int64 { return s.Forbidden }),
		count(func(s score) int64 { return s.BeforeRobots }),
		fmt.Sprintf("%.2f", median(each(runs, serverShare))), does}
}

// coverage returns the percentage of the URLs of a correct crawl that were fetched.
func coverage(r result) float64 {
	return 100 * float64(r.score.Covered) / float64(max(r.score.Truth, 1))
}
