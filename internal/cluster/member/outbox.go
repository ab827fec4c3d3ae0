package member

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// OutboxConfig configures an Outbox. Zero values become the defaults named.
type OutboxConfig struct {
	Window   int           // unanswered batches to one node; 4
	Bytes    int           // maximum size of a batch, unless a single link is larger; 256 KiB
	Links    int           // maximum number of links in a batch; 2000
	Retry    time.Duration // until an unanswered batch is sent again, doubled each time; 2s
	MaxRetry time.Duration // limit of Retry's doubling; 30s
	// until a link that was refused, or has no owner, is routed again, doubled each time; 500ms
	Wait    time.Duration
	MaxWait time.Duration // limit of Wait's doubling; 5s
	// number of the first batch; it must differ between processes, so that late answers to an earlier process match no
	// batch of this one
	First uint64
}

func (c OutboxConfig) withDefaults() OutboxConfig {
	c.Window, c.Bytes, c.Links = cmp.Or(c.Window, 4), cmp.Or(c.Bytes, 256<<10), cmp.Or(c.Links, 2000)
	c.Retry, c.MaxRetry = cmp.Or(c.Retry, 2*time.Second), cmp.Or(c.MaxRetry, 30*time.Second)
	c.Wait, c.MaxWait = cmp.Or(c.Wait, 500*time.Millisecond), cmp.Or(c.MaxWait, 5*time.Second)
	return c
}

// A Batch contains links for one node. The node answers which of them it refuses, by index from 0.
type Batch struct {
	To     strategy.Node
	Number uint64 // the same when the batch is sent again
	Data   []byte // LinksVersion, then the links, each preceded by its length as a uvarint
}

// LinksVersion is the first byte of a batch's data.
const LinksVersion = 2

// A Range is the link numbers from First to Last.
type Range struct{ First, Last uint64 }

// An Outbox stores links to other nodes' hosts until their owners have acknowledged them. It does not interpret the
// data of a link. It is deterministic, reads no clock, and is not safe for concurrent use.
//
// A link is in one of four places: fresh, to be routed; in the lane of its owner; in a batch in flight; or deferred,
// because it was refused or its host has no owner. Only an answer removes it from the outbox.
type Outbox struct {
	cfg      OutboxConfig
	links    map[uint64]*link
	bytes    int64
	last     uint64 // number of the last link
	fresh    []*link
	lanes    []*lane         // sorted by node
	flights  []*flight       // sorted by number
	next     uint64          // number of the next batch
	deferred []deferredLinks // sorted by time
	retryAll bool            // deferred links may have other owners now
	unrouted unrouted
}

type link struct {
	number    uint64
	host      string
	data      string
	refusedBy strategy.Node // node that has refused it last
	refused   bool          // a node has refused it
	tries     uint8         // failed attempts to find an owner that accepts it
	sent      bool          // it was in a batch
	filtered  bool          // a rule excludes its URL
}

// A lane is the queue of links for one node.
type lane struct {
	to       strategy.Node
	queue    []*link
	inFlight int // batches
}

type flight struct {
	number uint64
	to     strategy.Node
	links  []*link
	tries  uint8
	again  time.Time
}

type deferredLinks struct {
	until time.Time
	links []*link
}

// linkCost is the approximate memory of a link besides its data, in bytes.
const linkCost = 160

// NewOutbox returns an empty outbox.
func NewOutbox(cfg OutboxConfig) *Outbox {
	return &Outbox{cfg: cfg.withDefaults(), links: map[uint64]*link{}, next: cfg.First}
}

// Put adds a link and returns its number. host may be a substring of data.
func (o *Outbox) Put(host, data string) uint64 {
	o.Restore(o.last+1, host, data)
	return o.last
}

// Restore adds a link that an earlier process has put. Links that are put later get greater numbers.
func (o *Outbox) Restore(number uint64, host, data string) {
	k := &link{number: number, host: host, data: data}
	o.last = max(o.last, number)
	o.links[number] = k
	o.fresh = append(o.fresh, k)
	o.bytes += k.cost()
}

func (k *link) cost() int64 { return int64(len(k.data)) + linkCost }

// Len returns the number of links.
func (o *Outbox) Len() int { return len(o.links) }

// Bytes returns the approximate memory of the links.
func (o *Outbox) Bytes() int64 { return o.bytes }

// Numbers returns the numbers of all links, in no order.
func (o *Outbox) Numbers() []uint64 {
	all := make([]uint64, 0, len(o.links))
	for n := range o.links {
		all = append(all, n)
	}
	return all
}

// Data returns the data of a link; false if the outbox does not have it.
func (o *Outbox) Data(number uint64) (string, bool) {
	k, ok := o.links[number]
	if !ok {
		return "", false
	}
	return k.data, true
}

// Replace replaces the data of a link that was in no batch yet by data of the same length; false if that is not
// possible.
func (o *Outbox) Replace(number uint64, data string) bool {
	k, ok := o.links[number]
	if !ok || k.sent || len(data) != len(k.data) {
		return false
	}
	k.data = data
	return true
}

// Batches returns the batches to send now: new ones, and those that have been unanswered for too long. It is called
// repeatedly; longer intervals make fuller batches. owner returns the owner of a host; false if none is known.
func (o *Outbox) Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []Batch {
	for len(o.deferred) > 0 && !o.deferred[0].until.After(now) {
		for _, k := range o.deferred[0].links {
			o.unrouted.remove(k)
		}
		o.fresh = append(o.fresh, o.deferred[0].links...)
		o.deferred = slices.Delete(o.deferred, 0, 1)
	}
	if o.retryAll {
		o.retryAll = false
		o.retry(func(k *link) bool { to, ok := owner(k.host); return ok && (!k.refused || to != k.refusedBy) })
	}
	out := o.resend(now, owner)
	o.route(now, owner)
	return o.send(now, out)
}

// resend returns the unanswered batches that are due. If a batch has links that now have another owner, it and the
// links in its lane are routed again instead.
func (o *Outbox) resend(now time.Time, owner func(string) (strategy.Node, bool)) (out []Batch) {
	moved := func(f *flight, links []*link) bool {
		return slices.ContainsFunc(links, func(k *link) bool {
			to, ok := owner(k.host)
			return !ok || to != f.to
		})
	}
	o.flights = slices.DeleteFunc(o.flights, func(f *flight) bool {
		due := !f.again.After(now)
		switch {
		// a node that is gone is not waited for long
		case due && moved(f, f.links), f.tries > 1 && moved(f, f.links[:1]):
			l := o.lane(f.to)
			l.inFlight--
			o.fresh = append(append(o.fresh, f.links...), l.queue...)
			l.queue = nil
			return true
		case due:
			out = append(out, o.sendBatch(f, now))
		}
		return false
	})
	return out
}

// sendBatch returns a batch to send, for the first time or again.
func (o *Outbox) sendBatch(f *flight, now time.Time) Batch {
	f.again = now.Add(backoff(o.cfg.Retry, f.tries, o.cfg.MaxRetry))
	f.tries = incSaturating(f.tries)
	size := 1
	for _, k := range f.links {
		size += k.framedSize()
	}
	data := append(make([]byte, 0, size), LinksVersion)
	for _, k := range f.links {
		data = AppendLink(data, k.data)
	}
	return Batch{f.to, f.number, data}
}

// AppendLink appends a link to a batch's data, which begins with LinksVersion.
func AppendLink[B string | []byte](data []byte, link B) []byte {
	return append(binary.AppendUvarint(data, uint64(len(link))), link...)
}

// framedSize returns the maximum size of a link in a batch.
func (k *link) framedSize() int { return len(k.data) + binary.MaxVarintLen32 }

// route moves fresh links into the lanes of their owners.
func (o *Outbox) route(now time.Time, owner func(string) (strategy.Node, bool)) {
	var ownerless []*link
	for _, k := range o.fresh {
		if to, ok := owner(k.host); ok {
			l := o.lane(to)
			l.queue = append(l.queue, k)
		} else {
			k.refused = false
			ownerless = append(ownerless, k)
		}
	}
	o.fresh = nil
	o.deferLinks(ownerless, now)
}

// deferLinks defers links.
func (o *Outbox) deferLinks(links []*link, now time.Time) {
	if len(links) == 0 {
		return
	}
	wait := time.Duration(0)
	for _, k := range links {
		wait = max(wait, backoff(o.cfg.Wait, k.tries, o.cfg.MaxWait))
		k.tries = incSaturating(k.tries)
	}
	o.unrouted.addHosts(links)
	if o.unrouted.enabled {
		o.unrouted.add(links)
	}
	r := deferredLinks{now.Add(wait), links}
	at, _ := slices.BinarySearchFunc(o.deferred, r,
		func(a, b deferredLinks) int { return cmp.Or(a.until.Compare(b.until), -1) })
	o.deferred = slices.Insert(o.deferred, at, r)
}

// send fills the windows of all nodes.
func (o *Outbox) send(now time.Time, out []Batch) []Batch {
	for _, l := range o.lanes {
		for l.inFlight < o.cfg.Window && len(l.queue) > 0 {
			f := &flight{number: o.next, to: l.to, links: o.dequeueBatch(l)}
			o.next++
			o.flights = append(o.flights, f)
			l.inFlight++
			out = append(out, o.sendBatch(f, now))
		}
	}
	o.lanes = slices.DeleteFunc(o.lanes, func(l *lane) bool { return l.inFlight == 0 && len(l.queue) == 0 })
	return out
}

// dequeueBatch removes a batch of links from a lane.
func (o *Outbox) dequeueBatch(l *lane) []*link {
	n, size := 0, 1
	for n < len(l.queue) && n < o.cfg.Links {
		size += l.queue[n].framedSize()
		if size > o.cfg.Bytes && n > 0 {
			break
		}
		n++
	}
	links := slices.Clone(l.queue[:n])
	for _, k := range links {
		k.sent = true
	}
	clear(l.queue[:n])
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return links
}

// Answered processes a node's answer to a batch. The node has refused some links and has acknowledged the others.
// Answered removes those and returns their numbers. It ignores an answer that matches no batch in flight or is invalid.
func (o *Outbox) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) []Range {
	i, found := slices.BinarySearchFunc(o.flights, batch, func(f *flight, n uint64) int {
		return cmp.Compare(f.number,
			n)
	})
	if !found || o.flights[i].to != from {
		return nil
	}
	f := o.flights[i]
	not := make([]bool, len(f.links))
	for _, n := range refused {
		if n < 0 || n >= len(not) {
			return nil
		}
		not[n] = true
	}
	o.flights = slices.Delete(o.flights, i, i+1)
	o.lane(from).inFlight--
	var gone []Range
	var back []*link
	for i, k := range f.links {
		if not[i] {
			k.refusedBy, k.refused = from, true
			back = append(back, k)
			continue
		}
		delete(o.links, k.number)
		o.bytes -= k.cost()
		gone = appendRange(gone, k.number)
	}
	o.deferLinks(back, now)
	return gone
}

// appendRange adds a number to ranges; most numbers come in order.
func appendRange(all []Range, n uint64) []Range {
	if last := len(all) - 1; last >= 0 && all[last].Last+1 == n {
		all[last].Last = n
		return all
	}
	return append(all, Range{n, n})
}

func (o *Outbox) lane(to strategy.Node) *lane {
	i, found := slices.BinarySearchFunc(o.lanes, to, func(l *lane, to strategy.Node) int { return cmp.Compare(l.to, to) })
	if !found {
		o.lanes = slices.Insert(o.lanes, i, &lane{to: to})
	}
	return o.lanes[i]
}

// backoff returns a wait that doubles with each failed attempt.
func backoff(wait time.Duration, times uint8, most time.Duration) time.Duration {
	if times > 30 {
		return most
	}
	return min(wait<<times, most)
}

func incSaturating(n uint8) uint8 {
	if n == math.MaxUint8 {
		return n
	}
	return n + 1
}

// AppendAnswer appends the answer to a batch: its number, then the distance of each refused link from the one before.
func AppendAnswer(data []byte, number uint64, refused []int) []byte {
	data = binary.AppendUvarint(data, number)
	last := 0
	for _, i := range refused {
		data = binary.AppendUvarint(data, uint64(i-last))
		last = i
	}
	return data
}

var errAnswer = errors.New("invalid answer to a batch of links")

// ReadAnswer decodes an answer to a batch.
func ReadAnswer(data []byte) (number uint64, refused []int, err error) {
	r := varint.Reader{Rest: data}
	number = r.Uint()
	last := uint64(0)
	for len(r.Rest) > 0 && !r.Bad {
		n := r.Uint()
		if n > 1<<30-last {
			r.Bad = true
			break
		}
		last += n
		refused = append(refused, int(last))
	}
	if r.Bad {
		return 0, nil, errAnswer
	}
	return number, refused, nil
}
