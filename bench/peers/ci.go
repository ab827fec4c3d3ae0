package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

const (
	baselineName = "baseline.json"
	mostDearer   = 1.25 // times the baseline: more fails
)

// A baseline is what a page may cost.
type baseline struct {
	// Ratio is kumo's CPU time a page, divided by the loop's: the loop stands for the machine, which may be another each
	// time.
	Ratio float64 `json:"kumo_by_loop"`
}

// checkCost fails when kumo's way of a page has become dearer than the baseline, beside a loop that stays as it is.
// With -renew it writes the baseline instead.
func checkCost(ctx context.Context, b *bench) error {
	b.defaults(100, 4000, 64, 5)
	chosen, err := choose(ctx, b.tools, "loop", b.say)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return fmt.Errorf("there is nothing to compare with: the loop cannot be built")
	}
	d, kumo, web := &duel{peer: chosen[0]}, kumoPeer(b.kumo), b.webFlags(b.hosts, b.pages, "--by-address")
	for round := range b.rounds {
		if err := b.fight(ctx, round, d, kumo, web); err != nil {
			return err
		}
	}
	if d.failed != nil {
		return d.failed
	}
	if err := wantAll(d); err != nil {
		return err
	}
	own, loop := each(d.kumo, result.perPage), each(d.runs, result.perPage)
	measured := baseline{Ratio: median(ratios(d.kumo, d.runs, result.perPage))}
	fmt.Printf("CPU µs a page: kumo %s, loop %s; kumo by loop, pair by pair: %s\n", spread(own), spread(loop),
		spread(ratios(d.kumo, d.runs, result.perPage)))
	path := filepath.Join(b.tools.here, baselineName)
	if b.renew {
		return measured.write(path)
	}
	recorded, err := readBaseline(path)
	if err != nil {
		return err
	}
	return measured.against(recorded)
}

// wantAll refuses runs that are cheap because they did less.
func wantAll(d *duel) error {
	for i := range d.kumo {
		for _, s := range []score{d.kumo[i].score, d.runs[i].score} {
			if s.Covered < s.Truth {
				return fmt.Errorf("round %d: %d of %d pages were fetched", i+1, s.Covered, s.Truth)
			}
		}
	}
	return nil
}

// against compares what was measured with what was recorded, prints both, and fails when kumo has become dearer.
func (m baseline) against(recorded baseline) error {
	dearer := m.Ratio / recorded.Ratio
	fmt.Printf("measured %.3f, recorded %.3f: x %.2f, at most x %.2f\n", m.Ratio, recorded.Ratio, dearer, mostDearer)
	const renew = "go run -C bench/peers . -case ci -renew"
	switch {
	case dearer > mostDearer:
		return fmt.Errorf("a page costs kumo %.3f of what it costs the loop, recorded are %.3f (x %.2f, at most x %.2f): "+
			"look with kumo crawl --profile where the time goes, or, if it is worth it, renew %s: %s",
			m.Ratio, recorded.Ratio, dearer, mostDearer, baselineName, renew)
	case dearer < 1/mostDearer:
		fmt.Printf("much cheaper than recorded: renew the baseline, so that it is kept: %s\n", renew)
	}
	return nil
}

func readBaseline(path string) (r baseline, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading %s: %w", path, err)
	}
	if r.Ratio <= 0 {
		return r, fmt.Errorf("%s: kumo_by_loop is %v, want more than 0", path, r.Ratio)
	}
	return r, nil
}

func (m baseline) write(path string) error {
	data := fmt.Appendf(nil, "{\"kumo_by_loop\": %.3f}\n", m.Ratio)
	fmt.Printf("recorded %.3f in %s\n", m.Ratio, path)
	return os.WriteFile(path, data, 0o644)
}
