package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/transfer"
)

// ErrNotOurs is links that were dispatched to a node which is not the one to fetch their hosts, or not any more.
var ErrNotOurs = errors.New("links were dispatched to a node that does not fetch their hosts")

var errNoClaims = errors.New("nothing is dispatched to a crawl whose links are not claimed, or that has no folder")

// Dispatches does a node's part of a crawl whose links are claimed: it takes the URLs that other nodes dispatch to it,
// reports those that it has finished, and releases hosts. It guards the tenures in claims.
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
}

// TakeDispatched admits links that this node is to fetch, a [member.Batch]'s data, durably. It returns, by index, which
// are done: fetched, filtered or failed in this crawl, with all their links claimed. The same links may come again. If
// one's host is not this node's, the error is ErrNotOurs, and none is admitted. It waits for room, and needs a Run to
// commit.
func (ds *Dispatches) TakeDispatched(ctx context.Context, data []byte) (done []bool, err error) {
	if ds.claims == nil || ds.known.db == nil {
		return nil, errNoClaims
	}
	b := ds.pool.take()
	defer ds.pool.put(b)
	if err := b.read(data); err != nil {
		return nil, fmt.Errorf("take dispatched links: %w", err)
	}
	if err := ds.holds.admit(ctx); err != nil {
		return nil, err
	}
	done, sequence, err := ds.takeDispatched(b)
	if err == nil {
		err = ds.ledger.WaitDurable(ctx, sequence)
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

func (ds *Dispatches) takeDispatched(b *batch) (done []bool, sequence uint64, err error) {
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

// dispatched is what is known of links that are dispatched, by their places in the batch.
type dispatched struct {
	done    []bool
	met     []seen.Entry // as it was before
	tenures []int
}

// lookUpDispatched asks the URL database for each link of a batch, which reads the disk for those that it may know. It
// is called with claims.taking held.
func (ds *Dispatches) lookUpDispatched(b *batch) (d dispatched, err error) {
	claimed := ds.outbox.Earlier() == 0
	for i := range b.cands {
		c := &b.cands[i]
		met, over := seen.Entry{}, c.Rule != "" || !frontier.Belongs(c.Host, c.Item.URL) // nothing comes of it
		if !over {
			if met, _, err = ds.known.db.Get(c.Item.URL); err != nil {
				return d, err
			}
			over = met.Over() && claimed &&
				!ds.claims.isUnreported(ds.hosts.sliceOf(c), c.Item.URL) // unsaid is noted before it is over
		}
		d.done = append(d.done, over)
		d.met = append(d.met, met)
		d.tenures = append(d.tenures, ds.claims.tenures.Of(ds.hosts.sliceOf(c)))
	}
	return d, nil
}

// routeDispatched sorts links that are dispatched: those that are new are to be fetched, and those that are left out are offered.
// It is called within the ledger's gate.
func (ds *Dispatches) routeDispatched(b *batch, d dispatched) {
	now := map[string]int32{} // depths of what this batch has entered
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

// admitNew enters a link of a host's tenure that is to be fetched.
func (ds *Dispatches) admitNew(b *batch, c *entry.Candidate, tenure int) {
	f := *c
	f.Item.URL = strings.Clone(c.Item.URL) // which is kept; that of the link is a part of its batch
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
		all, sequence := ds.claims.takeReady()
		if len(all) == 0 {
			continue
		}
		// the run ends, with that or with what failed
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
	all, _ := ds.claims.takeReady()
	// others may not come to know any more that their records are here alone
	all = slices.DeleteFunc(all, func(n *finishedURL) bool { return n.page != nil })
	if len(all) > 0 {
		ds.claims.report(all)
	}
}

// Reoffer offers URLs whose records were lost to who remembers them, as other URLs offer themselves by links. It
// returns when that is durable here, and needs a Run to commit.
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

// Refetched is how many URLs this process has taken in again because their records were lost with other nodes.
func (ds *Dispatches) Refetched() int64 {
	if ds.claims == nil {
		return 0
	}
	return ds.claims.refetch.Load()
}
