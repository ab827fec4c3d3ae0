package crawl

import (
	"kumo/internal/state/frontier"
)

// What nobody can fetch does not enter the crawl: admission lets no link in that is not http or https with a host, and
// the frontier refuses what comes by other ways. An earlier version was not so strict; what it has left is dropped, and
// counted, wherever it comes from.

// Refused is how many URLs waited, in this run or at its beginning, and were dropped because nobody can fetch them.
func (e *Engine) Refused() int { return e.resumed.refused + e.frontier.Refused() }

// dropStrange takes links out of a batch from elsewhere that nobody can fetch. They count as taken in: their finder is
// to send them no more.
func (b *batch) dropStrange() {
	kept := 0
	for i := range b.cands {
		if c := &b.cands[i]; frontier.Belongs(c.Host, c.Item.URL) {
			b.cands[kept], b.urls[kept] = *c, b.urls[i]
			kept++
		}
	}
	clear(b.cands[kept:])
	b.cands, b.urls = b.cands[:kept], b.urls[:kept]
}
