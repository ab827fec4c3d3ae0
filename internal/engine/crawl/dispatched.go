package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/content/cookies"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/transfer"
)

// ErrNotOurs means that links were dispatched to a node that does not, or no longer, fetch their hosts.
var ErrNotOurs = errors.New("links were dispatched to a node that does not own their hosts")

var errNoClaims = errors.New("dispatch links: this crawl does not claim links, or has no folder")

// Dispatches is this node's part in a crawl whose links are claimed: it admits the URLs that other nodes dispatch to
// it, reports finished ones, and releases hosts. It guards the tenures in claims.
type Dispatches struct {
	cfg        *Config
	claims     *claims // nil where links are not claimed
	known      *known
	hosts      *hosts
	outbox     *exchange.Outbox
	frontier   *frontier.Frontier
	transfer   *transfer.Endpoint
	workers    *workerPool
	pool       *batchPool
	holds      *holds
	names      *names
	scopeSeeds *scopeSeeds
	admission  *admission
	batches    *batchWriter
	abandons   *abandoner
	ledger     *ledger.Ledger
	cookies    *cookies.Jar // nil if cookies are not kept
}

// TakeDispatched admits links that this node is to fetch, a [member.Batch]'s data. It returns, by index, which are
// finished: fetched, filtered or failed in this crawl, with all their links claimed. Admitted links are durable when it
// returns. The same links may come again. If a link's host is not this node's, it admits none and returns ErrNotOurs.
// It waits for room, and needs a Run to commit.
func (ds *Dispatches) TakeDispatched(ctx context.Context, data []byte) (done []bool, err error) {
	if ds.claims == nil || ds.known.db == nil {
		return nil, errNoClaims
	}
	b := ds.pool.acquire()
	defer ds.pool.put(b)
	if err := b.read(data); err != nil {
		return nil, fmt.Errorf("read dispatched links: %w", err)
	}
	if err := ds.holds.admit(ctx); err != nil {
		return nil, err
	}
	done, sequence, err := ds.commitDispatched(b)
	if err == nil {
		err = ds.ledger.WaitDurable(ctx, sequence)
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

func (ds *Dispatches) commitDispatched(b *batch) (done []bool, sequence uint64, err error) {
	ds.claims.tenureLock.Lock()
	defer ds.claims.tenureLock.Unlock()
	d, err := ds.lookUpDispatched(b)
	if err != nil {
		return nil, 0, err
	}
	ours := false
	err = ds.abandons.commitBatch(b, func() error {
		ours = !slices.ContainsFunc(b.cands, func(c entry.Candidate) bool {
			return frontier.Belongs(c.Host, c.Item.URL) && !ds.hosts.ours(ds.hosts.sliceOf(&c))
		})
		if !ours {
			return nil
		}
		b.routed = true
		ds.scopeSeeds.admitAll(b)
		ds.routeDispatched(b, d)
		if err := ds.batches.apply(b); err != nil {
			return err
		}
		sequence = ds.ledger.Sequence()
		return nil
	})
	if err == nil && !ours {
		err = ErrNotOurs
	}
	return d.done, sequence, err
}

// dispatched is the state of dispatched links, by their indexes in the batch.
type dispatched struct {
	done    []bool
	met     []seen.Entry // the entries before the batch
	tenures []int
}

// lookUpDispatched looks up each link of a batch in the URL database, which reads the disk for URLs that may be there.
// The caller holds claims.tenureLock.
func (ds *Dispatches) lookUpDispatched(b *batch) (d dispatched, err error) {
	claimed := ds.outbox.Earlier() == 0
	for i := range b.cands {
		c := &b.cands[i]
		// filtered, or no URL that can be fetched
		met, over := seen.Entry{}, c.Rule != "" || !frontier.Belongs(c.Host, c.Item.URL)
		if !over {
			if met, _, err = ds.known.db.Get(c.Item.URL); err != nil {
				return d, err
			}
			// a URL is unreported before its entry says that it is over
			if met.Over() && !ds.claims.isUnreported(ds.hosts.sliceOf(c), c.Item.URL) {
				over = ds.reportOver(c, &met, claimed)
			}
		}
		d.done = append(d.done, over)
		d.met = append(d.met, met)
		d.tenures = append(d.tenures, ds.claims.tenures.Of(ds.hosts.sliceOf(c)))
	}
	return d, nil
}

// reportOver reports a URL that is over soon, unless it can be answered at once that it is done.
func (ds *Dispatches) reportOver(c *entry.Candidate, met *seen.Entry, claimed bool) (done bool) {
	host := ds.hosts.sliceOf(c)
	switch {
	case ds.cfg.Recrawl.Enabled() && !met.Due.IsZero() && !met.Waits() && c.Item.Refetches == 0:
		ds.claims.reportAgain(host, met, c.Item, claimed) // done once other nodes know when it is due again
	case claimed:
		return true
	default:
		it := c.Item
		it.URL = strings.Clone(it.URL) // from a batch
		ds.claims.addEarlier(&finishedURL{host: host, url: it.URL, key: it.Key()}, false)
	}
	return false
}

// routeDispatched queues the new links of a batch, and leaves filtered ones in it to be offered. It is called within
// the ledger's gate.
func (ds *Dispatches) routeDispatched(b *batch, d dispatched) {
	now := map[string]int32{} // depths of the URLs that this batch has queued
	b.retain(func(i int, c *entry.Candidate) bool {
		if c.Rule != "" || !frontier.Belongs(c.Host, c.Item.URL) {
			return frontier.Belongs(c.Host, c.Item.URL)
		}
		depth, waits := now[c.Item.URL]
		if m := &d.met[i]; !waits && m.State == seen.Known && m.Tenure == d.tenures[i] {
			depth, waits = m.Depth, true
		}
		switch over := d.met[i].Over(); {
		case !waits && !over:
			ds.admitNew(b, c, d.tenures[i])
			now[c.Item.URL] = c.Item.Depth
		case ds.known.depths && waits && c.Item.Depth < depth:
			ds.known.db.InsertKnown([]seen.URL{{URL: c.Item.URL, Depth: c.Item.Depth, State: seen.Known}})
			b.entries.Nearer(c.Item.URL, c.Item.Depth)
			now[c.Item.URL] = c.Item.Depth
		}
		return false
	})
}

// admitNew queues a new link; tenure is its host's.
func (ds *Dispatches) admitNew(b *batch, c *entry.Candidate, tenure int) {
	f := *c
	f.Item.URL = strings.Clone(c.Item.URL) // a copy that can be retained; the link's is part of its batch
	f.Host = ds.names.intern(c.Host)
	f.Item.Path = ds.admission.path(c.Item.Path, c.Item.Kind)
	if f.Item.Refetch {
		ds.claims.refetch.Add(1)
	}
	ds.known.db.InsertKnown([]seen.URL{{URL: f.Item.URL, Depth: f.Item.Depth, State: seen.Known}})
	if tenure == 0 {
		b.entries.Found(&f.Item)
	} else {
		ds.known.db.UpdateMeta(f.Item.URL, seen.Meta{Tenure: tenure})
		b.entries.Dispatched(&f.Item, tenure)
	}
	b.found = append(b.found, f)
}

// keepReporting reports finished URLs once they are durable, until the context ends.
func (ds *Dispatches) keepReporting(ctx context.Context) error {
	if ds.claims == nil {
		return nil
	}
	tick := time.NewTicker(ds.cfg.Commit)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		all, sequence := ds.claims.dequeueReady(ds.outbox.Earlier() == 0)
		if len(all) == 0 {
			continue
		}
		// the run ends, with this error or another
		if ds.ledger.WaitDurable(ctx, sequence) != nil || ds.claims.announceAtRisk(ctx, all) != nil {
			ds.claims.markReady(all)
			return nil
		}
		ds.claims.report(all)
	}
}

// reportLast reports the URLs that finished after keepReporting ended. The caller has made them durable.
func (ds *Dispatches) reportLast() {
	if ds.claims == nil {
		return
	}
	all, _ := ds.claims.dequeueReady(ds.outbox.Earlier() == 0)
	// pages at risk cannot be announced any more
	all = slices.DeleteFunc(all, func(n *finishedURL) bool { return n.page != nil })
	if len(all) > 0 {
		ds.claims.report(all)
	}
}

// Reoffer puts URLs whose records were lost into the outbox, for the nodes that remember their hosts. It returns when
// that is durable in this node's journal, and needs a Run to commit.
func (ds *Dispatches) Reoffer(ctx context.Context, items []item.Item) error {
	if ds.claims == nil {
		return errNoClaims
	}
	if err := ds.holds.admit(ctx); err != nil {
		return err
	}
	var sequence uint64
	err := ds.ledger.Within(func() error {
		var out entry.Encoder
		for i := range items {
			c := entry.Candidate{Host: items[i].Host(), Item: items[i]}
			ds.outbox.Put(&out, &c, nil)
		}
		ds.ledger.Enqueue(out.Writer)
		sequence = ds.ledger.Sequence()
		return nil
	})
	if err == nil {
		err = ds.ledger.WaitDurable(ctx, sequence)
	}
	return err
}

// Refetched returns how many URLs this process has queued again because their records were lost with other nodes.
func (ds *Dispatches) Refetched() int64 {
	if ds.claims == nil {
		return 0
	}
	return ds.claims.refetch.Load()
}
