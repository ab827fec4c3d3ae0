package crawl

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"kumo/internal/base/bounded"
	"kumo/internal/base/item"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/recovery"
)

// Where links are claimed (Config.Claims), other nodes remember which URLs of a host are known, and dispatch new ones
// to the node that fetches them. So all links go into the outbox, and only TakeDispatched queues URLs. A filtered link
// stays with its finder, as nothing follows from it.
//
// The dispatching node keeps a URL until this node reports it as finished (Parts.Finished), once the links of its page
// are claimed: while they are in this node's outbox alone, the page must be fetched again if this node is lost. So a
// page is unreported from the batch that ends its visit. What a process has not reported, the next one answers when the
// URL is dispatched again, after all links that earlier processes have found are claimed.
//
// A URL that is known here and not over is pending until its host's tenure ends (ReleaseHosts): afterwards it is new
// when it is dispatched again. A tenure is how often the host was released before.

// An AtRisk is a page that is done, and whose record may be on this node's disk alone.
type AtRisk struct {
	Item item.Item
	File string // that has the record, as it is named when it is closed
	// the record refers to an earlier one, which may be in another file
	Refers bool
}

// pagesFile has the records of a crawl without WARC files.
const pagesFile = "pages.jsonl"

// claims is what the engine keeps of what was dispatched to it.
type claims struct {
	slices   *item.Slices
	finished func(host string, keys []string)
	atRisk   func(ctx context.Context, pages []AtRisk) error // nil: no page is
	archive  bool                                            // one of the stores is a WARC
	refetch  atomic.Int64                                    // URLs that have come again as their records were lost

	// held by who takes in what is dispatched, or gives hosts up; taken before the ledger's gate
	tenureLock sync.Mutex
	tenures    recovery.Tenures // read with taking held or alone within the gate, changed with both

	mu         sync.Mutex                         // guards what follows
	unreported map[string]map[string]*finishedURL // by host and URL
	ready      []*finishedURL                     // of these, those whose links are claimed
	reported   chan struct{}                      // closed when some were said; nil if nobody waits for that
	openVisits *bounded.Recent[string, *visitLinks]
}

// maxOpenVisits is of how many hosts the links are known that a visit has brought which was put off, as a robots.txt does
// that names sitemaps. Where they are forgotten, the next visit does not wait until they are claimed.
const maxOpenVisits = 1 << 14

// An ending is a URL that is not fetched any more.
type finishedURL struct {
	host, url string
	key       string  // its item's
	sequence  uint64  // of the batch that says so
	page      *AtRisk // nil: there is no record, or records go nowhere else
}

// visitLinks are the links of a visit.
type visitLinks struct {
	page     *exchange.Page
	finished []*finishedURL // of what ended with the visit; set before the page is closed
}

func newClaims(slices *item.Slices, p *Parts, t recovery.Tenures) *claims {
	finished := p.Finished
	if finished == nil {
		finished = func(string, []string) {}
	}
	return &claims{slices: slices, finished: finished, atRisk: p.AtRisk, archive: p.Archive, tenures: t,
		unreported: map[string]map[string]*finishedURL{},
		openVisits: bounded.NewRecent[string, *visitLinks](maxOpenVisits)}
}

// begin returns the links of a visit that begins: those, too, of an earlier one of the host that was put off. end or
// putOff is told of them.
func (c *claims) openVisit(host string) *visitLinks {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, begun := c.openVisits.Get(host); begun {
		c.openVisits.Delete(host)
		return v
	}
	v := &visitLinks{}
	v.page = exchange.NewPage(func() { c.markReady(v.finished) })
	return v
}

// putOff keeps the links of a visit that has not ended for the next of its host.
func (c *claims) retainOpen(host string, v *visitLinks) {
	if v == nil || !v.page.HasLinks() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openVisits.Put(host, v)
}

// markReady is told of endings whose links are all claimed.
func (c *claims) markReady(all []*finishedURL) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = append(c.ready, all...)
}

// addFinished notes what ends with a batch, in the batch's sequence. It is called within the ledger's gate, before any view
// knows it.
func (c *claims) addFinished(b *batch, sequence uint64) (all []*finishedURL) {
	for _, url := range b.finishedURLs() {
		n := &finishedURL{host: c.slices.Of(url), url: url, key: url, sequence: sequence}
		if b.item != nil && url == b.item.URL {
			n.key = b.item.Key()
		}
		all = append(all, n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range all {
		if c.unreported[n.host] == nil {
			c.unreported[n.host] = map[string]*finishedURL{}
		}
		c.unreported[n.host][n.url] = n
	}
	return all
}

// over are the URLs that are not fetched any more once the batch is put.
func (b *batch) finishedURLs() []string {
	if b.visitURL == "" {
		return b.ended
	}
	return append(b.ended, b.visitURL)
}

// closeVisit is told that what end has noted is put.
func (c *claims) closeVisit(b *batch, all []*finishedURL) {
	if b.visit == nil {
		c.markReady(all)
		return
	}
	c.setRecordFile(b, all)
	b.visit.finished = all
	b.visit.page.Close()
	b.visit = nil
}

// setRecordFile notes in which file the record lies that a visit has brought.
func (c *claims) setRecordFile(b *batch, all []*finishedURL) {
	if c.atRisk == nil || b.item == nil || b.item.Robots != "" || len(b.done) == 0 || b.done[0].Visit.Status == 0 {
		return
	}
	rec := b.records[0]
	p := &AtRisk{Item: *b.item, File: pagesFile, Refers: rec.Revisit != nil}
	if c.archive {
		if rec.Location.File == "" {
			return // it is not to be archived
		}
		p.File = "warc/" + rec.Location.File
	}
	for _, n := range all {
		if n.url == b.item.URL {
			n.page = p
		}
	}
}

// isUnreported reports whether a URL is over, and not said to be.
func (c *claims) isUnreported(host, url string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unreported[host][url] != nil
}

// hasUnreported reports whether something of one of some hosts is unsaid; of any host if there are none.
func (c *claims) hasUnreported(hosts ...string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(hosts) == 0 && len(c.unreported) > 0 ||
		slices.ContainsFunc(hosts, func(host string) bool { return len(c.unreported[host]) > 0 })
}

// awaitReported waits until nothing of a host is unsaid.
func (c *claims) awaitReported(ctx context.Context, host string) error {
	for {
		c.mu.Lock()
		if len(c.unreported[host]) == 0 {
			c.mu.Unlock()
			return nil
		}
		if c.reported == nil {
			c.reported = make(chan struct{})
		}
		said := c.reported
		c.mu.Unlock()
		select {
		case <-said:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takeReady takes what is ready to be said, once it is durable, and up to which batch that is.
func (c *claims) takeReady() (all []*finishedURL, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.ready = c.ready, nil
	for _, n := range all {
		sequence = max(sequence, n.sequence)
	}
	return all, sequence
}

// say says what is durable.
func (c *claims) report(all []*finishedURL) {
	byHost := map[string][]string{}
	for _, n := range all {
		byHost[n.host] = append(byHost[n.host], n.key)
	}
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		c.finished(host, byHost[host])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range all {
		if c.unreported[n.host][n.url] != n {
			continue // it was fetched again meanwhile
		}
		if delete(c.unreported[n.host], n.url); len(c.unreported[n.host]) == 0 {
			delete(c.unreported, n.host)
		}
	}
	if c.reported != nil {
		close(c.reported)
		c.reported = nil
	}
}

// announceAtRisk reports pages whose records are on this node's disk alone.
func (c *claims) announceAtRisk(ctx context.Context, all []*finishedURL) error {
	var pages []AtRisk
	for _, n := range all {
		if n.page != nil {
			pages = append(pages, *n.page)
		}
	}
	if len(pages) == 0 {
		return nil
	}
	return c.atRisk(ctx, pages)
}
