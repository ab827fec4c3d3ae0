package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// batchPeer is a batch crawl of the whole web as one collection, on this machine, without delay.
func batchPeer(path string) *peer {
	config := func(j job) string { return filepath.Join(j.dir, "all.yaml") }
	return &peer{name: "batch", does: "robots, documents, XML", path: path,
		prepare: func(j job) error {
			return os.WriteFile(config(j), fmt.Appendf(nil, "code: all\nseeds: [%q]\nscope: any\ndepth: 1000\n"+
				"threads: %d\ninterval: 0s\nlanguage: {code: any}\n", j.web.seed, j.concurrency), 0o644)
		},
		command: func(path string, j job) []string {
			return []string{path, "batch", "run", "-q", "--place", filepath.Join(j.dir, "place"), "--allow-private",
				"--ip-delay", "0s", config(j)}
		}}
}

// measureBatch compares the cost of a page in a batch crawl with that in kumo crawl with and without main texts, which
// a batch crawl always extracts. The web is in 27 languages.
func measureBatch(ctx context.Context, b *bench) error {
	b.defaults(54, 1000, 64, 5)
	web := b.webFlags(b.hosts, b.pages, "--by-address", "--languages", "27")
	plain, text := kumoPeer(b.kumo), kumoPeer(b.kumo, "--text")
	plain.name, text.name = "crawl", "crawl --text"
	all := []*peer{plain, text, batchPeer(b.kumo)}
	runs := make([][]result, len(all))
	for round := range b.rounds {
		for i, p := range all {
			r, err := b.run(ctx, round, p, 0, web)
			if err == nil && r.score.Covered < r.score.Truth {
				err = fmt.Errorf("%s fetched %d of %d pages", p.name, r.score.Covered, r.score.Truth)
			}
			if err != nil {
				return err
			}
			runs[i] = append(runs[i], r)
		}
	}
	fmt.Printf("\n%d pages in 27 languages on %d hosts, %d at once, rounds: %d; median (least-greatest)\n\n", b.pages,
		b.hosts,
		b.concurrency, b.rounds)
	var t table
	t.add("crawler", "ms CPU a page", "batch is x", "pages/CPU s", "peak MB")
	for i, p := range all {
		t.add(p.name, spread(each(runs[i], func(r result) float64 { return r.perPage() / 1e3 })),
			spread(ratios(runs[len(all)-1], runs[i], result.perPage)), spread(each(runs[i], result.perCPU)),
			spread(each(runs[i], peakMB)))
	}
	t.print(os.Stdout)
	return nil
}
