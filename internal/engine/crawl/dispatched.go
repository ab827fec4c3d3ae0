package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

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
	e.workers.getBuffers(&w.batch)
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
