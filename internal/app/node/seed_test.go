package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kumo/internal/app/node"
	"kumo/internal/cluster/bus/inproc"
)

// Seeds are passed to the nodes in chunks of bounded size, and read on demand: no process has all of them in memory.
func TestSeedsGoInChunks(t *testing.T) {
	const n = 20_000
	b, err := inproc.New(1).Join("control")
	must(t, err)
	c := node.Control{Registry: b}
	asked, most := 0, 0
	err = c.AddSeeds(t.Context(), func(yield func(string) bool) {
		for ; asked < n; asked++ {
			r, _, err := c.Record(t.Context())
			must(t, err)
			most = max(most, asked-int(r.Seeds)*1000)
			if !yield(fmt.Sprintf("http://h%d.test/%s", asked, strings.Repeat("x", 120))) {
				return
			}
		}
	})
	must(t, err)
	r, _, err := c.Record(t.Context())
	must(t, err)
	var all []string
	for i := range r.Seeds {
		e, err := b.Get(t.Context(), fmt.Sprintf("seeds/%d", i))
		must(t, err)
		if len(e.Value) > 130<<10 {
			t.Errorf("chunk %d has %d bytes", i, len(e.Value))
		}
		all = append(all, strings.Split(string(e.Value), "\n")...)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != n {
		t.Errorf("%d seeds", len(all))
	}
	if most > 2000 {
		t.Errorf("up to %d seeds were taken before any was put down", most)
	}
}
