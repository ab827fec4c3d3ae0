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
	mostDearer   = 1.25 // times the baseline: a higher cost fails
)

// A baseline is the recorded cost of a page.
type baseline struct {
	// Ratio is kumo's CPU time per page divided by the loop's. The loop makes the ratio independent of the machine.
	Ratio float64 `json:"kumo_by_loop"`
}

// checkCost fails if a page costs kumo more than the baseline, relative to the loop program, which never changes. With
// -renew it writes the baseline instead.
func checkCost(ctx context.Context, b *bench) error {
	b.defaults(100, 4000, 64, 5)
	chosen, err := choose(ctx, b.tools, "loop", b.say)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return fmt.Errorf("nothing to compare with: the loop program cannot be built")
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
	fmt.Printf("CPU µs a page: kumo %s, loop %s; kumo divided by loop, by pair: %s\n", spread(own), spread(loop),
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

// wantAll rejects runs that did not fetch all pages.
func wantAll(d *duel) error {
	for i := range d.kumo {
		for _, s := range []score{d.kumo[i].score, d.runs[i].score} {
			if s.Covered < s.Truth {
				return fmt.Errorf("round %d: only %d of %d pages were fetched", i+1, s.Covered, s.Truth)
			}
		}
	}
	return nil
}

// against prints the measured and the recorded ratio, and returns an error if kumo has become more expensive.
func (m baseline) against(recorded baseline) error {
	dearer := m.Ratio / recorded.Ratio
	fmt.Printf("measured %.3f, recorded %.3f: x %.2f, at most x %.2f\n", m.Ratio, recorded.Ratio, dearer, mostDearer)
	const renew = "go run -C bench/peers . -case ci -renew"
	switch {
	case dearer > mostDearer:
		return fmt.Errorf("a page costs kumo %.3f of what it costs the loop; recorded: %.3f (x %.2f, at most x %.2f): "+
			"profile with kumo crawl --profile, or, if the cost is justified, renew %s: %s",
			m.Ratio, recorded.Ratio, dearer, mostDearer, baselineName, renew)
	case dearer < 1/mostDearer:
		fmt.Printf("much cheaper than recorded: renew the baseline to keep the gain: %s\n", renew)
	}
	return nil
}

func readBaseline(path string) (r baseline, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	if r.Ratio <= 0 {
		return r, fmt.Errorf("%s: kumo_by_loop is %v, must be above 0", path, r.Ratio)
	}
	return r, nil
}

func (m baseline) write(path string) error {
	data := fmt.Appendf(nil, "{\"kumo_by_loop\": %.3f}\n", m.Ratio)
	fmt.Printf("recorded %.3f in %s\n", m.Ratio, path)
	return os.WriteFile(path, data, 0o644)
}
