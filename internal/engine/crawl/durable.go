package crawl

import "sync/atomic"

// durablePages is how many pages are durable, with their records.
type durablePages struct {
	now  atomic.Int64
	next atomic.Int64 // when the commit that is under way is done
}

func newDurablePages(pages int64) *durablePages {
	d := new(durablePages)
	d.now.Store(pages)
	d.next.Store(pages)
	return d
}

// cut says that a commit begins with so many pages: the one before is done.
func (d *durablePages) cut(pages int64) {
	d.now.Store(d.next.Load())
	d.next.Store(pages)
}

// DurablePages is how many of the pages that were answered are durable. A slow disk may be many pages behind.
func (i *Inspector) DurablePages() int64 {
	if i.ledger.Settled() {
		return i.counts.stats.Pages()
	}
	return i.counts.durable.now.Load()
}
