package mesh

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A PageConfig connects the crawl's page limit to the engine. Both functions are nil, or none is.
type PageConfig struct {
	Use func() (u PageUse, ok bool) // false: there is no engine yet
	// sets how many pages the engine may fetch over all its runs; negative: no limit. It returns the number that the
	// engine obeys: more, if more are in progress.
	SetShare func(pages int64) (ceiling int64)
}

// A PageUse is what a node has used of the crawl's page limit.
type PageUse struct {
	Done int64 // pages over all runs
	Used int64 // Done, and pages in progress
	Busy bool  // has pending URLs, or pages in progress
}

// PageLimit sets the crawl's page limit, as of the record that this node knows; 0: none.
type PageLimit struct{ Pages int64 }

// LimitReached reports that all nodes together have fetched as many pages as the crawl's limit.
type LimitReached struct{ Pages int64 }

func (PageLimit) event()     {}
func (LimitReached) action() {}

// A PageTally is the sum of the nodes' parts in a division of the page limit.
type PageTally struct {
	Nodes     int   // with an engine
	Unlimited int   // of these, nodes that do not know the limit yet
	Busy      int   // of these, nodes with pending URLs
	Active    int   // of these, nodes that use their shares
	Awaiting  int   // of these, nodes that have seen others die, and wait for them
	Bound     int   // of these, nodes that accept only another divider's grants
	Done      int64 // pages that they have fetched
	Ceiling   int64 // pages that they may fetch
	Need      int64 // pages that they request
}

func (t *PageTally) add(o PageTally) {
	t.Nodes += o.Nodes
	t.Unlimited += o.Unlimited
	t.Busy += o.Busy
	t.Active += o.Active
	t.Awaiting += o.Awaiting
	t.Bound += o.Bound
	t.Done += o.Done
	t.Ceiling += o.Ceiling
	t.Need += o.Need
}

func (t *PageTally) append(w *varint.Writer) {
	for _, n := range []int64{int64(t.Nodes), int64(t.Unlimited), int64(t.Busy), int64(t.Active), int64(t.Awaiting),
		int64(t.Bound), t.Done, t.Ceiling, t.Need} {
		w.Uint(uint64(n))
	}
}

func (t *PageTally) read(r *varint.Reader) {
	count := func() int64 { return int64(r.UintMax(maxPages)) }
	t.Nodes, t.Unlimited, t.Busy, t.Active = int(count()), int(count()), int(count()), int(count())
	t.Awaiting, t.Bound = int(count()), int(count())
	t.Done, t.Ceiling, t.Need = count(), count(), count()
}

const maxPages = 1 << 50

// A division tells the nodes how many pages each should have to fetch.
type division struct {
	divider strategy.Node
	known   bool  // the next two are
	active  int64 // pages of a node that uses its share
	idle    int64 // pages of another node
	all     bool  // no node uses its share: all with pending URLs count as active
	total   int64 // pages of the crawl, as known to the divider
}

func (d *division) append(w *varint.Writer) {
	w.String(string(d.divider))
	w.Flags(d.known, d.all)
	w.Uint(uint64(d.active))
	w.Uint(uint64(d.idle))
	w.Uint(uint64(d.total))
}

func (d *division) read(r *varint.Reader) {
	d.divider = strategy.Node(r.String())
	r.Bad = r.Bad || len(d.divider) > maxName
	flags := r.Byte()
	d.known, d.all = flags&1 != 0, flags&2 != 0
	d.active, d.idle, d.total = int64(r.UintMax(maxPages)), int64(r.UintMax(maxPages)), int64(r.UintMax(maxPages))
}

const (
	divideEvery = time.Second
	// how long a node accepts no grants of a divider after it was counted by a closer one. Two counts that overlap are
	// both over then.
	bindFor      = 2 * gatherFor
	stalledAfter = 10 * time.Second // of a node that fetches nothing of its share
	// after this time without some of the pages that the nodes had reported, they count as lost
	shortAfter = 30 * time.Second
	// In the tail of the crawl, the whole rest of the limit is granted: so many pages a node, or seconds at its rate.
	tailPages   = 64
	tailSeconds = 10
)

// A bond is a node's relation to the divider whose grants it accepts.
type bond struct {
	divider strategy.Node
	at      time.Time // when the divider last counted this node
	counted gatherKey // in which gathering; zero: this node has received its grant
}

// pageShares divide the crawl's page limit among the nodes, without a center.
//
// The node that detects the end divides. Every divideEvery it gathers how many pages the nodes have fetched, may fetch
// (their ceilings) and request. Then it grants the rest of the limit. Grants pass down the tree that gathered the
// counts: each node divides its grant in proportion to its own request and those of its children. A division also
// states how many pages a node should have to fetch. A node with more lowers its ceiling, so that the shares of slow
// nodes return to the others.
//
// Only a node raises its ceiling, by a grant, and only by a grant of the last gathering in which it was counted. So the
// ceilings stay within the limit when the divider changes, and when grants are lost or come late: a later gathering
// has counted the node without them. Ceilings last as long as the process. Afterwards they are the pages in the folder.
//
// While nodes do not know each other yet, several may divide at once, and count the nodes in different orders: each
// could grant what the other has granted to nodes that it has counted before. So a node accepts grants of the divider
// that is the closest to the id, and for bindFor after that one's count, none of the others. These grant nothing while
// there is such a node.
//
// A dead node counts with the pages that its keepers know: those that it had when it was last counted. The pages that
// it has fetched after that, at most its ceiling, may come on top of the limit. Parts of a divided network each grant
// what the other part has not used by then, once the nodes that have seen others die no longer wait for these.
//
// Invariant: in a network that is not divided, the sum of all ceilings and the pages of departed nodes are at most the
// limit, apart from pages in progress when the limit was lowered.
type pageShares struct {
	core   *core
	place  *place
	cfg    PageConfig
	gather func(division, func(*gathering)) // counts all nodes
	grant  func(*gathering, int64)          // grants pages to the counted nodes
	share  func()                           // shares the number of this node's pages with its keepers
	isHere func() bool                      // whether this node divides: the closest one to place.endID does
	awaits func() bool                      // whether this node has seen another die, and waits for it

	limit   int64     // 0: none
	ceiling int64     // pages that the engine may fetch
	total   int64     // the greatest number of pages of all nodes that this node knows of
	used    int64     // by the engine, when it was last counted
	usedAt  time.Time // when that changed, or when the engine had nothing left to use
	bond    bond

	scheduled bool
	running   bool
	reached   bool      // the last count was complete, and has reached the limit
	next      division  // the next one
	at        time.Time // of the last count
	short     time.Time // since when pages are missing; zero: none are
}

// setLimit processes a change of the limit, or of the engine.
func (s *pageShares) setLimit(limit int64) {
	if s.cfg.Use == nil {
		return
	}
	s.limit, s.next, s.reached = limit, division{}, false
	if limit <= 0 {
		s.ceiling = 0
		s.cfg.SetShare(-1)
		return
	}
	s.ceiling = s.cfg.SetShare(s.ceiling)
	s.schedule()
}

// tally returns this node's part in a division.
func (s *pageShares) tally(d *division, key gatherKey) (t PageTally) {
	if s.cfg.Use == nil {
		return t
	}
	u, ok := s.cfg.Use()
	if !ok {
		return t
	}
	s.share()
	s.total = max(s.total, d.total)
	if s.limit <= 0 {
		return PageTally{Nodes: 1, Unlimited: 1, Done: u.Done, Ceiling: u.Used}
	}
	bound := s.bind(d.divider, key)
	if !bound {
		d = &division{}
	}
	if s.usedAt.IsZero() || u.Used != s.used || u.Used >= s.ceiling {
		s.used, s.usedAt = u.Used, s.core.now
	}
	t = PageTally{Nodes: 1, Done: u.Done}
	if !bound {
		t.Bound = 1
	}
	aim := d.idle
	if u.Busy {
		t.Busy = 1
	}
	if s.awaits() {
		t.Awaiting = 1
	}
	stalled := s.core.now.Sub(s.usedAt) > stalledAfter
	if u.Busy && !stalled {
		t.Active = 1
	}
	if t.Active > 0 || u.Busy && d.all {
		aim = d.active
	}
	if d.known && s.ceiling > u.Used+aim {
		s.ceiling = s.cfg.SetShare(u.Used + aim)
	}
	if open := s.ceiling - u.Used; d.known && 2*open < aim {
		t.Need = aim - max(open, 0)
	}
	t.Ceiling = max(s.ceiling, u.Used)
	return t
}

// bind binds this node to a divider that counts it. It reports false while the node is bound to a closer one.
func (s *pageShares) bind(divider strategy.Node, key gatherKey) bool {
	was := &s.bond
	if divider != was.divider && !was.at.IsZero() && s.core.now.Sub(was.at) <= bindFor &&
		xor.Compare(s.place.nodeID(divider), s.place.nodeID(was.divider), s.place.endID()) > 0 {
		return false
	}
	s.bond = bond{divider, s.core.now, key}
	return true
}

// accept raises this node's ceiling by a grant that answers its request in a gathering.
func (s *pageShares) accept(key gatherKey, pages int64) {
	if pages > 0 && s.limit > 0 && key == s.bond.counted {
		s.bond.counted = gatherKey{}
		s.ceiling = s.cfg.SetShare(s.ceiling + pages)
	}
}

func (s *pageShares) schedule() {
	if s.cfg.Use != nil && s.limit > 0 && !s.scheduled && s.isHere() {
		s.scheduled = true
		s.core.after(0, s.run)
	}
}

// run divides the limit, as long as there is one and this node divides it.
func (s *pageShares) run() {
	if s.scheduled = s.limit > 0 && s.isHere(); !s.scheduled {
		s.next, s.reached = division{}, false
		return
	}
	s.core.after(divideEvery, s.run)
	s.divide()
}

func (s *pageShares) divide() {
	if s.running || s.place.alone.waits() {
		return
	}
	s.running = true
	s.next.total = s.total
	s.next.divider = s.core.self
	asked := s.next
	s.gather(asked, func(g *gathering) {
		s.running = false
		if s.counts(&g.sum) && s.isHere() {
			s.grantRest(g)
		} else {
			s.reached = false
		}
		if !asked.known && s.next.known {
			s.divide() // the first time, nodes only reported what they have
		}
	})
}

// counts reports whether a tally is that of all nodes.
func (s *pageShares) counts(t *Tally) bool {
	total := t.DepartedPages + t.Pages.Done
	switch {
	case t.Missing > 0 || t.Pages.Unlimited > 0 || partOf*t.Pages.Awaiting > t.Nodes:
		return false
	case total >= s.total:
		s.short = time.Time{}
		return true
	case s.short.IsZero():
		s.short = s.core.now
	}
	// a node has died, or is back, and its neighbors do not know yet
	return s.core.now.Sub(s.short) > shortAfter
}

// grantRest grants the rest of the limit, and prepares the next division.
func (s *pageShares) grantRest(g *gathering) {
	t := &g.sum
	total := t.DepartedPages + t.Pages.Done
	if s.limit > 0 && total >= s.limit {
		if s.reached { // twice in a row: a node that is just back may have been counted twice
			s.total = total
			s.core.do(LimitReached{Pages: total})
		}
		s.reached = true
		return
	}
	s.reached = false
	if left := s.limit - t.DepartedPages - t.Pages.Ceiling; left > 0 && t.Pages.Need > 0 && t.Pages.Bound == 0 {
		s.grant(g, min(left, t.Pages.Need))
	}
	rate := 0.0
	if passed := s.core.now.Sub(s.at).Seconds(); !s.at.IsZero() && passed > 0 {
		rate = float64(total-s.total) / passed
	}
	s.at, s.total = s.core.now, total
	rest, nodes := s.limit-total, int64(max(t.Pages.Nodes, 1))
	s.next = division{known: true, all: t.Pages.Active == 0}
	active := int64(max(t.Pages.Active, 1))
	if s.next.all {
		active = int64(max(t.Pages.Busy, 1))
	}
	if rest <= max(tailPages*nodes, int64(tailSeconds*rate)) {
		s.next.active = (rest + active - 1) / active
	} else {
		s.next.active, s.next.idle = rest/(2*active), rest/(8*nodes)
	}
}

// splitGrant divides a grant in proportion to requests, and gives no more than requested. What remains by rounding goes
// to the requests from the one with index first on.
func splitGrant(pages int64, needs []int64, first int) []int64 {
	sum := int64(0)
	for _, n := range needs {
		sum += n
	}
	shares := make([]int64, len(needs))
	if sum <= 0 || pages <= 0 {
		return shares
	}
	pages = min(pages, sum)
	left := pages
	for i, n := range needs {
		shares[i] = min(int64(float64(pages)*(float64(n)/float64(sum))), n, left)
		left -= shares[i]
	}
	for i := range needs {
		k := (first + i) % len(needs)
		more := min(left, needs[k]-shares[k], max(left/int64(len(needs)), 1))
		shares[k] += more
		left -= more
	}
	return shares
}
