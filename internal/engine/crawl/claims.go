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
// page is unreported from the batch that ends its visit. If a process ends with unreported pages, the next process
// reports each when its URL is dispatched again, after all links found by earlier processes are claimed.
//
// A known, unfinished URL is pending until its host's tenure ends (ReleaseHosts): afterwards it is new when it is
// dispatched again. A host's tenure is the number of times it was released before.

// An AtRisk is a finished page whose record may be on this node's disk alone.
type AtRisk struct {
	Item item.Item
	File string // the file with the record, under its name after closing
	// the record refers to an earlier record, possibly in another file
	Refers bool
}

// pagesFile has the records of a crawl without WARC files.
const pagesFile = "pages.jsonl"

// claims tracks the URLs that were dispatched to this node.
type claims struct {
	slices   *item.Slices
	finished func(host string, keys []string)
	revisit  func(host, url string, next item.Revisit)
	atRisk   func(ctx context.Context, pages []AtRisk) error // nil: no page is at risk
	archive  bool                                            // one of the stores is a WARC
	refetch  atomic.Int64                                    // URLs dispatched again because their records were lost

	// held while dispatched links are admitted or hosts are released; taken before the ledger's gate
	tenureLock sync.Mutex
	tenures    recovery.Tenures // read with tenureLock or alone within the gate; changed with both held

	mu         sync.Mutex                         // guards the fields below
	unreported map[string]map[string]*finishedURL // by host and URL
	ready      []*finishedURL                     // the unreported URLs whose links are claimed
	earlier    []*finishedURL                     // those of earlier processes, until all links of these are claimed
	reported   chan struct{}                      // closed when some were reported; nil if nobody waits
	openVisits *bounded.Recent[string, *visitLinks]
}

// maxOpenVisits bounds openVisits: hosts whose visit was postponed after it had found links, for example those of a
// robots.txt that names sitemaps. If one is forgotten, its next visit ends without waiting until these links are
// claimed.
const maxOpenVisits = 1 << 14

// A finishedURL is a URL that will not be fetched any more.
type finishedURL struct {
	host, url string
	key       string        // the item's key
	revisit   *item.Revisit // the next visit, in a crawl with recrawls; may be nil
	sequence  uint64        // of the batch that finishes it
	page      *AtRisk       // nil if there is no record, or records are not replicated
}

// visitLinks tracks the links that a visit has found.
type visitLinks struct {
	page     *exchange.Page
	finished []*finishedURL // the URLs that the visit finishes; set before the page is closed
}

func newClaims(slices *item.Slices, p *Parts, t recovery.Tenures) *claims {
	finished := p.Finished
	if finished == nil {
		finished = func(string, []string) {}
	}
	revisit := p.Revisit
	if revisit == nil {
		revisit = func(string, string, item.Revisit) {}
	}
	return &claims{slices: slices, finished: finished, revisit: revisit, atRisk: p.AtRisk, archive: p.Archive, tenures: t,
		unreported: map[string]map[string]*finishedURL{},
		openVisits: bounded.NewRecent[string, *visitLinks](maxOpenVisits)}
}

// openVisit returns the links of a visit that begins, together with those of an earlier, postponed visit to the host.
// They must be passed to closeVisit, as the visit of a batch, or to retainOpen.
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

// retainOpen retains the links of a visit that has not ended for the host's next visit.
func (c *claims) retainOpen(host string, v *visitLinks) {
	if v == nil || !v.page.HasLinks() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openVisits.Put(host, v)
}

// markReady marks finished URLs as ready to report: all their links are claimed.
func (c *claims) markReady(all []*finishedURL) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = append(c.ready, all...)
}

// addFinished adds the URLs that a batch finishes as unreported; sequence is the batch's. It is called within the
// ledger's gate, before any view has the batch.
func (c *claims) addFinished(b *batch, sequence uint64) (all []*finishedURL) {
	for _, url := range b.finishedURLs() {
		n := &finishedURL{host: c.slices.Of(url), url: url, key: url, sequence: sequence}
		if b.item != nil && url == b.item.URL {
			n.key = b.item.Key()
			if b.planned != nil {
				n.revisit = b.planned.revisitOf(b.item)
			}
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

// itemURL returns the URL of the batch's item, if it has one.
func (b *batch) itemURL() string {
	if b.item == nil {
		return ""
	}
	return b.item.URL
}

// finishedURLs returns the URLs that the batch finishes.
func (b *batch) finishedURLs() []string {
	if b.visitURL == "" {
		return b.ended
	}
	return append(b.ended, b.visitURL)
}

// closeVisit closes the visit's list of links after its batch is written. all is the result of addFinished.
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

// setRecordFile sets the file that has the visit's record.
func (c *claims) setRecordFile(b *batch, all []*finishedURL) {
	if c.atRisk == nil || b.item == nil || b.item.Robots != "" || len(b.done) == 0 || b.done[0].Visit.Status == 0 {
		return
	}
	rec := b.records[0]
	p := &AtRisk{Item: *b.item, File: pagesFile, Refers: rec.Revisit != nil}
	if c.archive {
		if rec.Location.File == "" {
			return // not archived
		}
		p.File = "warc/" + rec.Location.File
	}
	for _, n := range all {
		if n.url == b.item.URL {
			n.page = p
		}
	}
}

// isUnreported reports whether a URL is finished and not reported yet.
func (c *claims) isUnreported(host, url string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unreported[host][url] != nil
}

// hasUnreported reports whether one of the hosts, or any host if none is given, has unreported URLs.
func (c *claims) hasUnreported(hosts ...string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(hosts) == 0 && len(c.unreported) > 0 ||
		slices.ContainsFunc(hosts, func(host string) bool { return len(c.unreported[host]) > 0 })
}

// awaitReported waits until all finished URLs of a host are reported.
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

// addEarlier adds a durable URL that an earlier process has finished, unless it is unreported. claimed means that all
// links of earlier processes are.
func (c *claims) addEarlier(n *finishedURL, claimed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch all := c.unreported[n.host]; {
	case all == nil:
		c.unreported[n.host] = map[string]*finishedURL{n.url: n}
	case all[n.url] != nil:
		return
	default:
		all[n.url] = n
	}
	if claimed {
		c.ready = append(c.ready, n)
	} else {
		c.earlier = append(c.earlier, n)
	}
}

// dequeueReady takes the URLs that are ready to report. They may be reported once the batch with the returned sequence
// is durable. claimed means that all links of earlier processes are.
func (c *claims) dequeueReady(claimed bool) (all []*finishedURL, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.ready = c.ready, nil
	if claimed {
		all, c.earlier = append(all, c.earlier...), nil
	}
	for _, n := range all {
		sequence = max(sequence, n.sequence)
	}
	return all, sequence
}

// report reports finished URLs, which are durable.
func (c *claims) report(all []*finishedURL) {
	byHost := map[string][]string{}
	for _, n := range all {
		if n.revisit != nil {
			c.revisit(n.host, n.url, *n.revisit)
			continue
		}
		byHost[n.host] = append(byHost[n.host], n.key)
	}
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		c.finished(host, byHost[host])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range all {
		if c.unreported[n.host][n.url] != n {
			continue // fetched again in between
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
