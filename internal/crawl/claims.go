package crawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/bounded"
	"kumo/internal/entry"
	"kumo/internal/exchange"
	"kumo/internal/frontier"
	"kumo/internal/item"
	"kumo/internal/recovery"
	"kumo/internal/seen"
)

// Where links are claimed (Config.Claims), other nodes remember which URLs of a host are known, and dispatch those that
// are new to the node that fetches them. So all links go into the outbox, whoever is to fetch them, and only what comes
// by TakeDispatched is taken in. A link that a rule leaves out stays with its finder, as nothing follows from it.
//
// Who dispatches a URL keeps it until this node says that it is done (Parts.Finished). It says so only when the links
// that it has brought are claimed, too: while they are in this node's outbox alone, the page that has them must be
// fetched again if this node is lost. So a page is unsaid from the batch of the journal that ends its visit until it is
// said. What a process has not said, the next one tells when the URL is dispatched again; as nobody knows then which
// links are that page's, it is done when all are claimed that earlier processes have found.
//
// A URL that is known here and not over waits. That ends with its host's tenure, when the host is given up
// (ReleaseHosts): a URL of an earlier tenure that is not over is new when it is dispatched again. A tenure is how often
// a host was given up before, so that nothing is kept of those that never were.

// An AtRisk is a page that is done, and whose record may be on this node's disk alone.
type AtRisk struct {
	Item item.Item
	File string // that has the record, as it is named when it is closed
	// the record refers to an earlier one, which may be in another file
	Refers bool
}

// linesFile has the records of a crawl without WARC files.
const linesFile = "pages.jsonl"

// claims is what the engine keeps of what was dispatched to it.
type claims struct {
	slices   *item.Slices
	finished func(host string, keys []string)
	atRisk   func(ctx context.Context, pages []AtRisk) error // nil: no page is
	archive  bool                                            // one of the stores is a WARC
	refetch  atomic.Int64                                    // URLs that have come again as their records were lost

	// held by who takes in what is dispatched, or gives hosts up; taken before the ledger's gate
	taking  sync.Mutex
	tenures recovery.Tenures // read with taking held or alone within the gate, changed with both

	mu     sync.Mutex                    // guards what follows
	unsaid map[string]map[string]*ending // by host and URL
	ready  []*ending                     // of these, those whose links are claimed
	said   chan struct{}                 // closed when some were said; nil if nobody waits for that
	begun  *bounded.Recent[string, *visitLinks]
}

// maxBegun is of how many hosts the links are known that a visit has brought which was put off, as a robots.txt does
// that names sitemaps. Where they are forgotten, the next visit does not wait until they are claimed.
const maxBegun = 1 << 14

// An ending is a URL that is not fetched any more.
type ending struct {
	host, url string
	key       string  // its item's
	sequence  uint64  // of the batch that says so
	page      *AtRisk // nil: there is no record, or records go nowhere else
}

// visitLinks are the links of a visit.
type visitLinks struct {
	page    *exchange.Page
	endings []*ending // of what ended with the visit; set before the page is closed
}

func newClaims(slices *item.Slices, p *Parts, t recovery.Tenures) *claims {
	finished := p.Finished
	if finished == nil {
		finished = func(string, []string) {}
	}
	return &claims{slices: slices, finished: finished, atRisk: p.AtRisk, archive: p.Archive, tenures: t,
		unsaid: map[string]map[string]*ending{},
		begun:  bounded.NewRecent[string, *visitLinks](maxBegun)}
}

// begin returns the links of a visit that begins: those, too, of an earlier one of the host that was put off. end or
// putOff is told of them.
func (c *claims) begin(host string) *visitLinks {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, begun := c.begun.Get(host); begun {
		c.begun.Drop(host)
		return v
	}
	v := &visitLinks{}
	v.page = exchange.NewPage(func() { c.claimed(v.endings) })
	return v
}

// putOff keeps the links of a visit that has not ended for the next of its host.
func (c *claims) putOff(host string, v *visitLinks) {
	if v == nil || !v.page.Waits() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun.Put(host, v)
}

// claimed is told of endings whose links are all claimed.
func (c *claims) claimed(all []*ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = append(c.ready, all...)
}

// end notes what ends with a batch, in the batch's sequence. It is called within the ledger's gate, before any view
// knows it.
func (c *claims) end(b *batch, sequence uint64) (all []*ending) {
	for _, url := range b.over() {
		n := &ending{host: c.slices.Of(url), url: url, key: url, sequence: sequence}
		if b.item != nil && url == b.item.URL {
			n.key = b.item.Key()
		}
		all = append(all, n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range all {
		if c.unsaid[n.host] == nil {
			c.unsaid[n.host] = map[string]*ending{}
		}
		c.unsaid[n.host][n.url] = n
	}
	return all
}

// over are the URLs that are not fetched any more once the batch is put.
func (b *batch) over() []string {
	if b.settles == "" {
		return b.ended
	}
	return append(b.ended, b.settles)
}

// closed is told that what end has noted is put.
func (c *claims) closed(b *batch, all []*ending) {
	if b.visit == nil {
		c.claimed(all)
		return
	}
	c.notePage(b, all)
	b.visit.endings = all
	b.visit.page.Close()
	b.visit = nil
}

// notePage notes in which file the record lies that a visit has brought.
func (c *claims) notePage(b *batch, all []*ending) {
	if c.atRisk == nil || b.item == nil || b.item.Robots != "" || len(b.done) == 0 || b.done[0].Visit.Status == 0 {
		return
	}
	rec := b.records[0]
	p := &AtRisk{Item: *b.item, File: linesFile, Refers: rec.Revisit != nil}
	if c.archive {
		if rec.Place.File == "" {
			return // it is not to be archived
		}
		p.File = "warc/" + rec.Place.File
	}
	for _, n := range all {
		if n.url == b.item.URL {
			n.page = p
		}
	}
}

// isUnsaid reports whether a URL is over, and not said to be.
func (c *claims) isUnsaid(host, url string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsaid[host][url] != nil
}

// hasUnsaid reports whether something of one of some hosts is unsaid; of any host if there are none.
func (c *claims) hasUnsaid(hosts ...string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits(hosts)
}

// waits is hasUnsaid with mu held.
func (c *claims) waits(hosts []string) bool {
	return len(hosts) == 0 && len(c.unsaid) > 0 ||
		slices.ContainsFunc(hosts, func(host string) bool { return len(c.unsaid[host]) > 0 })
}

// awaitSaid waits until nothing of some hosts is unsaid.
func (c *claims) awaitSaid(ctx context.Context, hosts []string) error {
	for {
		c.mu.Lock()
		if len(hosts) == 0 || !c.waits(hosts) {
			c.mu.Unlock()
			return nil
		}
		if c.said == nil {
			c.said = make(chan struct{})
		}
		said := c.said
		c.mu.Unlock()
		select {
		case <-said:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take takes what is ready to be said, once it is durable, and up to which batch that is.
func (c *claims) take() (all []*ending, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.ready = c.ready, nil
	for _, n := range all {
		sequence = max(sequence, n.sequence)
	}
	return all, sequence
}

// say says what is durable.
func (c *claims) say(all []*ending) {
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
		if c.unsaid[n.host][n.url] != n {
			continue // it was fetched again meanwhile
		}
		if delete(c.unsaid[n.host], n.url); len(c.unsaid[n.host]) == 0 {
			delete(c.unsaid, n.host)
		}
	}
	if c.said != nil {
		close(c.said)
		c.said = nil
	}
}

// keepSaying says what was fetched, until the context ends.
func (e *Engine) keepSaying(ctx context.Context) error {
	if e.claims == nil {
		return nil
	}
	tick := time.NewTicker(e.cfg.Commit)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		all, sequence := e.claims.take()
		if len(all) == 0 {
			continue
		}
		// the run ends, with that or with what failed
		if e.ledger.WaitDurable(ctx, sequence) != nil || e.claims.tellAtRisk(ctx, all) != nil {
			e.claims.claimed(all)
			return nil
		}
		e.claims.say(all)
	}
}

// sayLast says, when all is durable, what was fetched since keepSaying has ended.
func (e *Engine) sayLast() {
	if e.claims == nil {
		return
	}
	all, _ := e.claims.take()
	// others may not come to know any more that their records are here alone
	all = slices.DeleteFunc(all, func(n *ending) bool { return n.page != nil })
	if len(all) > 0 {
		e.claims.say(all)
	}
}

// tellAtRisk has others know of pages whose records are here alone.
func (c *claims) tellAtRisk(ctx context.Context, all []*ending) error {
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

// OfferAgain offers URLs whose records were lost to who remembers them, as other URLs offer themselves by links. It
// returns when that is durable here, and needs a Run to commit.
func (e *Engine) OfferAgain(ctx context.Context, items []item.Item) error {
	if e.claims == nil {
		return errNoClaims
	}
	e.await(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	e.peers.received.Add(1)
	var sequence uint64
	err := e.ledger.Within(func() error {
		var out entry.Encoder
		for i := range items {
			c := entry.Candidate{Host: items[i].Host(), Item: items[i]}
			e.peers.outbox.Put(&out, &c, nil)
		}
		e.ledger.Enqueue(out.Writer)
		sequence = e.ledger.Sequence()
		return nil
	})
	if err == nil {
		err = e.ledger.WaitDurable(ctx, sequence)
	}
	return err
}

// Refetched is how many URLs this process has taken in again because their records were lost with other nodes.
func (e *Engine) Refetched() int64 {
	if e.claims == nil {
		return 0
	}
	return e.claims.refetch.Load()
}

// claim puts all links of a batch into the outbox that a rule does not leave out.
func (e *Engine) claim(b *batch) {
	var known []bool
	if e.known.db != nil { // what is known here was claimed
		known = e.known.db.Remembers(b.urls, b.known[:0])
		b.known = known
	}
	kept := 0
	for i := range b.cands {
		c := &b.cands[i]
		if c.Rule != "" {
			b.cands[kept], b.urls[kept] = *c, b.urls[i]
			kept++
			continue
		}
		if c.Item.Root && !b.rooted {
			e.divertRoot(&c.Item)
		}
		if known != nil && known[i] {
			continue
		}
		var page *exchange.Page
		if b.visit != nil {
			page = b.visit.page
		}
		e.peers.outbox.Put(&b.entries, c, page)
	}
	clear(b.cands[kept:])
	b.cands, b.urls = b.cands[:kept], b.urls[:kept]
}

// ErrNotOurs is links that were dispatched to a node which is not the one to fetch their hosts, or not any more.
var ErrNotOurs = errors.New("links were dispatched to a node that does not fetch their hosts")

var errNoClaims = errors.New("nothing is dispatched to a crawl whose links are not claimed, or that has no folder")

// TakeDispatched takes links in that this node is to fetch, a [member.Batch]'s data: they are in its journal when it
// returns. It says of each, by its place, whether it is done: fetched, left out or given up in this crawl, with all
// links that it has brought claimed. The same links may come again. If one is of a host that is not this node's, by the
// router, the error is ErrNotOurs, and none is taken. It waits for room, and needs a Run to commit.
func (e *Engine) TakeDispatched(ctx context.Context, data []byte) (done []bool, err error) {
	if e.claims == nil || e.known.db == nil {
		return nil, errNoClaims
	}
	w := e.workers.take(e)
	defer e.workers.rest(w)
	w.batch.reset()
	defer w.batch.reset() // its strings are parts of data
	if err := w.batch.read(data); err != nil {
		return nil, fmt.Errorf("take dispatched links: %w", err)
	}
	e.control.disk.await(ctx)
	e.await(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.peers.received.Add(1)
	done, sequence, err := e.takeDispatched(&w.batch)
	if err == nil {
		err = e.ledger.WaitDurable(ctx, sequence)
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

func (e *Engine) takeDispatched(b *batch) (done []bool, sequence uint64, err error) {
	e.claims.taking.Lock()
	defer e.claims.taking.Unlock()
	d, err := e.lookUp(b)
	if err != nil {
		return nil, 0, err
	}
	ours := false
	err = e.ledger.Within(func() error {
		if ours = e.areOurs(b); !ours {
			return nil
		}
		b.routed = true
		e.admitRoots(b)
		e.enter(b, d)
		if err := e.apply(b); err != nil {
			return err
		}
		sequence = e.ledger.Sequence()
		return nil
	})
	if err == nil && !ours {
		err = ErrNotOurs
	}
	if err != nil {
		return nil, 0, err
	}
	e.tellSkips(b)
	return d.done, sequence, e.failAbandoned(b.found)
}

func (e *Engine) areOurs(b *batch) bool {
	for i := range b.cands {
		if c := &b.cands[i]; frontier.Belongs(c.Host, c.Item.URL) && !e.ours(e.sliceOf(c)) {
			return false
		}
	}
	return true
}

// dispatched is what is known of links that are dispatched, by their places in the batch.
type dispatched struct {
	done    []bool
	met     []seen.Entry // as it was before
	tenures []int
}

// lookUp asks the URL database for each link of a batch, which reads the disk for those that it may know. It is called
// with claims.taking held.
func (e *Engine) lookUp(b *batch) (d dispatched, err error) {
	claimed := e.peers.outbox.Earlier() == 0
	for i := range b.cands {
		c := &b.cands[i]
		met, over := seen.Entry{}, c.Rule != "" || !frontier.Belongs(c.Host, c.Item.URL) // nothing comes of it
		if !over {
			if met, _, err = e.known.db.Get(c.Item.URL); err != nil {
				return d, err
			}
			over = met.Over() && claimed && !e.claims.isUnsaid(e.sliceOf(c), c.Item.URL) // unsaid is noted before it is over
		}
		d.done = append(d.done, over)
		d.met = append(d.met, met)
		d.tenures = append(d.tenures, e.claims.tenures.Of(e.sliceOf(c)))
	}
	return d, nil
}

// enter sorts links that are dispatched: those that are new are to be fetched, and those that are left out are offered.
// It is called within the ledger's gate.
func (e *Engine) enter(b *batch, d dispatched) {
	now := map[string]int32{} // depths of what this batch has entered
	kept := 0
	for i := range b.cands {
		c := &b.cands[i]
		switch {
		case !frontier.Belongs(c.Host, c.Item.URL):
		case c.Rule != "":
			b.cands[kept], b.urls[kept] = *c, b.urls[i]
			kept++
		default:
			depth, waits := now[c.Item.URL]
			if m := &d.met[i]; !waits && m.State == seen.Known && m.Tenure == d.tenures[i] {
				depth, waits = m.Depth, true
			}
			switch over := d.met[i].Over(); {
			case !waits && !over:
				e.enterNew(b, c, d.tenures[i])
				now[c.Item.URL] = c.Item.Depth
			case e.depths && waits && c.Item.Depth < depth:
				e.known.db.InsertKnown([]seen.URL{{URL: c.Item.URL, Depth: c.Item.Depth, State: seen.Known}})
				b.entries.Nearer(c.Item.URL, c.Item.Depth)
				now[c.Item.URL] = c.Item.Depth
			}
		}
	}
	clear(b.cands[kept:])
	b.cands, b.urls = b.cands[:kept], b.urls[:kept]
}

// enterNew enters a link of a host's tenure that is to be fetched.
func (e *Engine) enterNew(b *batch, c *entry.Candidate, tenure int) {
	f := *c
	f.Item.URL = strings.Clone(c.Item.URL) // which is kept; that of the link is a part of its batch
	f.Host = e.names.intern(c.Host)
	f.Item.Path = e.path(c.Item.Path, c.Item.Kind)
	if f.Item.Again {
		e.claims.refetch.Add(1)
	}
	e.known.db.InsertKnown([]seen.URL{{URL: f.Item.URL, Depth: f.Item.Depth, State: seen.Known}})
	if tenure == 0 {
		b.entries.Found(&f.Item)
	} else {
		e.known.db.UpdateMeta(f.Item.URL, seen.Meta{Tenure: tenure})
		b.entries.Dispatched(&f.Item, tenure)
	}
	b.found = append(b.found, f)
}

// ReleaseHosts gives hosts up that the router says are not this node's any more. When it returns, no visit to them is
// under way, what was fetched of them is said (Parts.Finished), and what waits there is forgotten, durably, as is what
// was known of that. A host that comes back begins afresh, but for what is over. It calls owed with what a host
// asks for and how long it is to be left alone yet, by who fetches it next. It waits until the links are claimed that
// the hosts' pages have brought, and needs a Run to commit.
func (e *Engine) ReleaseHosts(ctx context.Context, hosts []string,
	owed func(host string, asked, wait time.Duration)) error {
	if e.claims == nil || len(hosts) == 0 {
		return nil
	}
	for _, over := range e.Busy(hosts) {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := e.claims.awaitSaid(ctx, hosts); err != nil {
		return err
	}
	e.claims.taking.Lock()
	defer e.claims.taking.Unlock()
	for _, host := range hosts {
		if i, met := e.frontier.Host(host); met {
			owed(host, i.Asked, i.Next.Sub(e.cfg.Now()))
		}
	}
	return e.peers.transfer.Release(ctx, hosts, func(part []string) {
		for _, host := range part {
			e.claims.tenures.End(host)
		}
	})
}

// Owe has a host left alone for a while, and asked no sooner than it asks for, as who fetched it before says. What
// waits is not less than it was.
func (e *Engine) Owe(host string, asked, wait time.Duration) {
	i, _ := e.frontier.Host(host)
	e.frontier.Arrive(host, max(asked, i.Asked), wait)
}

// HeldHosts calls f with each host of which something waits to be fetched. It is called before Run.
func (e *Engine) HeldHosts(f func(host string) error) error {
	all := e.frontier.Iterate(func(string) bool { return true })
	defer all.Close()
	for {
		host, err := all.Next()
		if host == nil || err != nil {
			return err
		}
		it, err := host.Next() // none if there is only another host's robots.txt
		if it != nil && err == nil {
			err = f(host.Key)
		}
		if err != nil {
			return err
		}
	}
}

// Waits reports whether something of a host waits, is under way, or was fetched and is not said yet.
func (e *Engine) Waits(host string) bool {
	i, _ := e.frontier.Host(host)
	return i.Waiting > 0 || i.Active > 0 || e.claims.hasUnsaid(host)
}
