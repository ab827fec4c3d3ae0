package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"kumo/internal/frontier"
	"kumo/internal/member"
)

// A handover moves hosts from one node to another: the sender drains them, and exports them in chunks; the receiver takes each into its
// journal, its frontier and its URL database, within one hold of the committer's gate; when it has the last, the hosts are its own,
// and the sender forgets them. What waits is held by one of the two. What is known stays with the sender, too; it is less than what the new
// owner knows, and when the host comes back, what waits comes with it and is not asked for there.
//
// A host of which the frontier says that it is away is not held here: it was forgotten, or its transfer dropped, and nothing of it has
// come back.

// handing is what the engine has in hand of handovers.
type handing struct {
	one    sync.Mutex // held by who takes, drops or forgets; taken before the committer's gate
	unpack *unpacker  // used with one held; nil until it is needed
	parked map[member.Transfer][]string
	met    map[member.Transfer]map[uint64]bool // hosts whose pages are counted anew; nil without a limit

	mu       sync.Mutex // guards arrivals, which change with one and the committer's gate held, too
	arrivals arrivals
}

// arriving is what hosts are parked for whose transfer is under way: they are not this node's yet.
const arriving = "a transfer"

var errNoDB = errors.New("a crawl without a folder has no part in a handover")

// Take takes a chunk of a transfer in, from an [Export] of another node. Chunks of a transfer come in order, one after the other; one
// that was taken before is ignored. With the last one, which may be empty, the hosts of all of them are this node's. It is in the journal,
// and that is shipped, when it returns. data that is no chunk is an error and changes nothing. It waits for room, and needs a Run to commit.
func (e *Engine) Take(ctx context.Context, t member.Transfer, seq uint64, last bool, data []byte) error {
	durable, err := e.TakeChunk(ctx, t, seq, last, data)
	if err != nil {
		return err
	}
	return durable(ctx)
}

// TakeChunk is Take in two parts: durable waits until the chunk is in the journal, and shipped, while the next is taken.
func (e *Engine) TakeChunk(ctx context.Context, t member.Transfer, seq uint64, last bool, data []byte) (durable func(context.Context) error, err error) {
	if e.db == nil {
		return nil, errNoDB
	}
	e.space.await(ctx)
	e.await(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.came.Add(1)
	ticket, err := e.takeChunk(came{t, seq, last, string(data)})
	if err != nil {
		return nil, fmt.Errorf("take a chunk from %s: %w", t.From, err)
	}
	return func(ctx context.Context) error { return e.sure(ctx, ticket) }, nil
}

// sure is safe without waiting for the next commit's time: who hands over waits for each answer.
func (e *Engine) sure(ctx context.Context, ticket uint64) error {
	select {
	case e.committer.full <- struct{}{}:
	default:
	}
	return e.safe(ctx, ticket)
}

func (e *Engine) takeChunk(c came) (ticket uint64, err error) {
	h := &e.hand
	h.one.Lock()
	defer h.one.Unlock()
	if h.unpack == nil {
		if h.unpack, err = newUnpacker(); err != nil {
			return 0, err
		}
	}
	p, err := h.unpack.read([]byte(c.data))
	if err != nil {
		return 0, err
	}
	if next, err := h.arrivals.expects(c.transfer, c.seq); err != nil || !next {
		return e.committer.ticket(), err // what was taken before may not be durable yet
	}
	err = e.committer.within(func() error {
		var enc encoder
		enc.came(c)
		e.committer.enqueue(enc.b)
		h.mu.Lock()
		h.arrivals.take(c.transfer, p, c.last)
		h.mu.Unlock()
		e.receive(c.transfer, p)
		ticket = e.committer.ticket()
		return nil
	})
	if err == nil && c.last {
		for _, host := range h.parked[c.transfer] {
			e.frontier.Unpark(host, arriving)
		}
		delete(h.parked, c.transfer)
		delete(h.met, c.transfer)
	}
	return ticket, err
}

// receive enters what a chunk has. Until the transfer is whole, its hosts are parked, lest the frontier hands them out in vain.
func (e *Engine) receive(t member.Transfer, p *parcel) {
	items := int64(0)
	for i := range p.waiting {
		a := &p.waiting[i]
		a.host = e.intern(a.host)
		for k := range a.items {
			a.items[k].Path = e.intern(a.items[k].Path)
		}
		e.frontier.Park(a.host, arriving)
		e.frontier.Arrive(a.host, a.clock.asked, a.clock.wait, a.items...)
		e.hand.park(t, a.host)
		items += int64(len(a.items))
	}
	e.committer.since.Add(items * itemWeight / 4) // a replay holds them in memory
	for i := range p.known {
		l := &p.known[i]
		e.frontier.Arrive(l.host, l.clock.asked, l.clock.wait)
		e.countArrived(t, l)
		e.db.Learn(l.entries)
	}
}

func (h *handing) park(t member.Transfer, host string) {
	if h.parked == nil {
		h.parked = map[member.Transfer][]string{}
	}
	if all := h.parked[t]; len(all) == 0 || all[len(all)-1] != host {
		h.parked[t] = append(all, host)
	}
}

// countArrived counts the pages that a host has given elsewhere, where their number is limited. What it has given here before is among them.
func (e *Engine) countArrived(t member.Transfer, l *learnt) {
	if e.cfg.PagesPerHost == 0 {
		return
	}
	if e.hand.met == nil {
		e.hand.met = map[member.Transfer]map[uint64]bool{}
	}
	if e.hand.met[t] == nil {
		e.hand.met[t] = map[uint64]bool{}
	}
	if k := e.hash(l.host); !e.hand.met[t][k] {
		e.hand.met[t][k] = true
		e.quota.reset(l.host)
	}
	n := int64(0)
	for i := range l.entries {
		if answered(&l.entries[i]) {
			n++
		}
	}
	e.quota.before(l.host, n)
}

// reset forgets the pages of a host.
func (q *quota) reset(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.perHost > 0 {
		q.byHost.set(host, 0)
	}
}

// Drop undoes what was taken of a transfer that did not come whole, durably.
func (e *Engine) Drop(ctx context.Context, t member.Transfer) error {
	e.hand.one.Lock()
	ticket, err := e.drop(t)
	e.hand.one.Unlock()
	if err != nil {
		return fmt.Errorf("drop what has come from %s: %w", t.From, err)
	}
	return e.sure(ctx, ticket)
}

func (e *Engine) drop(t member.Transfer) (ticket uint64, err error) {
	var r removed
	err = e.committer.within(func() error {
		var enc encoder
		enc.dropped(t)
		e.committer.enqueue(enc.b)
		ticket = e.committer.ticket()
		e.hand.mu.Lock()
		r.hosts = e.hand.arrivals.drop(t)
		e.hand.mu.Unlock()
		for part := range slices.Chunk(r.hosts, forgetStep) {
			robots, err := e.frontier.Remove(part...)
			if err != nil {
				return err
			}
			r.robots = append(r.robots, robots...)
		}
		return nil
	})
	delete(e.hand.parked, t)
	delete(e.hand.met, t)
	if err == nil {
		e.afterRemoval(&r)
	}
	return ticket, err
}

// removed is what was taken out of the frontier.
type removed struct {
	hosts  []string
	robots []frontier.Item
}

// afterRemoval forgets what the engine keeps for hosts that are gone: if they come back, all is asked anew. Where a robots.txt was to be
// had at one of them for another host, that asks anew, too.
func (e *Engine) afterRemoval(r *removed) {
	for _, host := range r.hosts {
		e.forget("http://" + host)
		e.forget("https://" + host)
	}
	for i := range r.robots {
		e.forget(r.robots[i].Robots)
		e.frontier.Unpark(hostOf(r.robots[i].Robots), r.robots[i].Robots)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.told) == 0 {
		return
	}
	for url := range e.told {
		if _, gone := slices.BinarySearch(r.hosts, hostOfURL(url)); gone {
			delete(e.told, url)
		}
	}
}

// forgetStep is how many hosts are removed in one hold of the committer's gate.
const forgetStep = 1024

// Forget forgets the hosts that have come whole to other nodes, durably: gone says which. It may be called again after a crash.
func (e *Engine) Forget(ctx context.Context, gone func(host string) bool) error {
	if e.db == nil {
		return errNoDB
	}
	e.hand.one.Lock()
	ticket, err := e.forgetAll(ctx, gone)
	e.hand.one.Unlock()
	if err != nil {
		return fmt.Errorf("forget hosts: %w", err)
	}
	return e.sure(ctx, ticket)
}

func (e *Engine) forgetAll(ctx context.Context, gone func(host string) bool) (ticket uint64, err error) {
	f := forgetting{Engine: e, ctx: ctx, ticket: e.committer.ticket()}
	came := e.hand.arrivals.hosts()
	f.gone = func(host string) bool { return !came[host] && gone(host) }
	for _, step := range []func() error{f.shelved, f.waiting, f.known, f.flush} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return f.ticket, nil
}

// A forgetting finds hosts and forgets them, some at a time.
type forgetting struct {
	*Engine
	ctx    context.Context
	gone   func(host string) bool
	hosts  []string
	shelf  map[string]bool // hosts that have something on the shelf
	ticket uint64
}

func (f *forgetting) add(host string) error {
	if f.hosts = append(f.hosts, host); len(f.hosts) < forgetStep {
		return nil
	}
	return f.flush()
}

// shelved finds hosts of which something was given up.
func (f *forgetting) shelved() error {
	f.shelf = map[string]bool{}
	err := f.Engine.shelf.here(func(host string, _ frontier.Item) error {
		if !f.shelf[host] && f.gone(host) {
			f.shelf[host] = true
		}
		return nil
	})
	for host := range f.shelf {
		if err == nil {
			err = f.add(host)
		}
	}
	return err
}

// waiting finds hosts where something waits.
func (f *forgetting) waiting() error {
	tour := f.frontier.Tour(f.gone)
	defer tour.Close()
	for {
		s, err := tour.Next()
		if s == nil || err != nil {
			return err
		}
		if err := f.add(s.Key); err != nil {
			return err
		}
	}
}

// known finds hosts of which only is known what was there.
func (f *forgetting) known() error {
	hosts := byOrigin[bool]{of: func(host string) bool { return f.gone(host) && !f.isAway(host) }}
	for entry, err := range f.db.Select(hosts.isOf) {
		if err = errors.Join(err, f.ctx.Err()); err != nil {
			return err
		}
		if host, news := hosts.next(entry.URL); news && !f.isAway(host) {
			if err := f.add(host); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) isAway(host string) bool {
	i, _ := e.frontier.Host(host)
	return i.Away
}

// flush forgets those that were found.
func (f *forgetting) flush() error {
	if len(f.hosts) == 0 {
		return f.ctx.Err()
	}
	slices.Sort(f.hosts)
	r := removed{hosts: slices.Compact(f.hosts)}
	err := f.committer.within(func() (err error) {
		var enc encoder
		enc.forgot(r.hosts)
		f.committer.enqueue(enc.b)
		f.ticket = f.committer.ticket()
		for _, host := range r.hosts {
			if f.shelf[host] {
				if err := f.Engine.shelf.void(host); err != nil {
					return err
				}
			}
		}
		r.robots, err = f.frontier.Remove(r.hosts...)
		return err
	})
	if err != nil {
		return err
	}
	f.afterRemoval(&r)
	f.hosts = f.hosts[:0]
	return f.ctx.Err()
}

// byOrigin asks once for each origin in an order of URLs.
type byOrigin[T comparable] struct {
	of     func(host string) T
	asked  string // the origin that was asked about last
	answer T
	given  string // the origin of the last URL that next was told
}

// ask is the answer for a URL's host.
func (o *byOrigin[T]) ask(url []byte) T {
	if origin := originOfURL(url); string(origin) != o.asked {
		o.asked = string(origin)
		o.answer = o.of(hostOfURL(o.asked + "/"))
	}
	return o.answer
}

// isOf reports whether there is an answer for a URL's host.
func (o *byOrigin[T]) isOf(url []byte) bool {
	var none T
	return o.ask(url) != none
}

// next is the host of a URL, and whether its origin is another than the last.
func (o *byOrigin[T]) next(url string) (host string, news bool) {
	origin := originOfURL(url)
	if origin == o.given {
		return "", false
	}
	o.given = origin
	return hostOfURL(url), true
}

// Arrived are the transfers that came whole since an epoch was settled.
func (e *Engine) Arrived() []member.Transfer {
	e.hand.mu.Lock()
	defer e.hand.mu.Unlock()
	return slices.Clone(e.hand.arrivals.Whole)
}

// Partial are the transfers of which something has come, and that have not come whole.
func (e *Engine) Partial() []member.Transfer {
	e.hand.mu.Lock()
	defer e.hand.mu.Unlock()
	return e.hand.arrivals.partial()
}

// Settled forgets, durably, which transfers came whole under epochs up to one.
func (e *Engine) Settled(ctx context.Context, epoch uint64) error {
	e.hand.one.Lock()
	var ticket uint64
	err := e.committer.within(func() error {
		var enc encoder
		enc.epoch(epoch)
		e.committer.enqueue(enc.b)
		ticket = e.committer.ticket()
		e.hand.mu.Lock()
		defer e.hand.mu.Unlock()
		e.hand.arrivals.settle(epoch)
		return nil
	})
	e.hand.one.Unlock()
	if err != nil {
		return err
	}
	return e.sure(ctx, ticket)
}
