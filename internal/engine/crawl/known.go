package crawl

import (
	"sync/atomic"

	"kumo/internal/base/page"
	"kumo/internal/state/entry"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
)

// known has the URLs and the page contents that the crawl has met.
type known struct {
	seen      recovery.Seen
	db        *seen.DB // seen, if it is on disk; else nil
	digests   recovery.Digests
	undecided atomic.Int64 // URLs in memory that the next merge decides
	depths    bool         // the depth at which a URL was met matters
}

// pending returns the number of URLs that seen has yet to decide on: they may have been met before.
func (k *known) pending() int {
	n := k.undecided.Load()
	if k.db != nil {
		n += k.db.Waiting()
	}
	return int(n)
}

// pendingDedup reports whether seen has yet to decide whether some URLs are new.
func (k *known) pendingDedup() bool { return k.pending() > 0 }

func (k *known) full() bool {
	d, ok := k.digests.(*seen.Digests)
	return k.db.Full() || ok && d.Full()
}

// refer lets later records with the same payload refer to this one.
func (k *known) refer(rec *page.Record, d *entry.Done) {
	if rec.Location.ID == "" || rec.Revisit != nil || rec.Response == nil || rec.Response.PayloadLen() == 0 {
		return
	}
	d.Ref = page.Ref{URL: rec.URL, Time: rec.Response.Start, ID: rec.Location.ID, Chunked: rec.Location.Chunked}
	k.digests.Put(rec.Digest, seen.Ref(d.Ref))
}

// recordVisit records the result of a visit, and when the next is due.
func (k *known) recordVisit(b *batch, url string, meta *seen.Meta) {
	if k.db == nil {
		return
	}
	k.db.UpdateMeta(url, *meta)
	if !meta.Due.IsZero() {
		b.entries.Due(url, meta)
	}
	if meta.From != "" {
		b.entries.From(url, meta.From)
	}
}

// recordEnded records the URLs that end with a batch without an answer or a final failure.
func (k *known) recordEnded(b *batch) {
	for _, url := range b.finishedURLs() {
		b.entries.Ended(url)
		if k.db != nil {
			k.db.UpdateMeta(url, seen.Meta{Ended: true})
		}
	}
}
