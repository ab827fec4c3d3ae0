package mesh

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// An outstanding is a host with URLs that are dispatched and not done. All its backups have one; the first of them sees
// to it that they are fetched.
type outstanding struct {
	host   string
	id     xor.ID // to which its backups are closest
	open   int    // URLs that are dispatched and not done, by the history
	seen   int    // of these, at the last review
	first  bool   // this node is the first backup
	target strategy.Node
	before strategy.Node // who was the target as the first backup before this one knew it: it may not have stopped
	// What is to be sent to the target: links that have just been claimed, and all that the history has from a place on.
	queue  []Link
	reread bool
	from   string
	missed bool // there was no room in the queue for some that lie before that place

	// The other backups have had all that is open here, but for what is being claimed. It is not so where this node has
	// just become the first backup: links may be known to it alone, and of others they may know that they are done.
	sure     bool
	had      []strategy.Node    // backups that are meant; who has become one since is given all by a sweep, some time
	ensuring *pass              // makes it so; nil if none does
	unsure   []func(known bool) // done when it is so, or this node is not the first backup any more
	claims   []*claim           // that are under way

	finding bool // the target is looked for
	anew    bool // and was found before
	reading bool
	flying  bool  // something is on its way to the target
	resting bool  // until a timer's time
	rested  *bool // ends that sooner
	laters  int   // times that the target could not take something yet, one after the other
	quiet   int   // checks by which the target had nothing to do for the host
}

const (
	maxQueue = 2000 // links of a host that are kept for its target; the others are read again
	// until a target is asked again that said no or later, or is looked for again; it doubles so often at most
	pause      = time.Second
	mostLaters = 3
	quietMost  = 2               // checks
	checkMost  = 256             // hosts of a check
	overdue    = 3 * time.Second // a flight that has had no answer so long is to a target that is gone, perhaps
)

// opened notes how many URLs of a host are open, by the history. So many of them have just been recorded, and are seen
// to by who had them recorded.
func (m *Machine) opened(host string, open, fresh int) {
	h := m.hosts[host]
	switch {
	case open > 0 && h == nil:
		h = &outstanding{host: host, id: m.backup(host), open: open}
		m.hosts[host] = h
		if open == fresh && m.closest(h.id) {
			h.first, h.sure = true, true
			h.had, _ = m.peers(host)
			return
		}
		m.lookAt(h)
	case open > 0:
		h.open = open
	case h != nil:
		m.unwatch(h)
		delete(m.hosts, host)
		h.ensured(true)
	}
}

// lookAtHosts looks again who is the first backup of each host.
func (m *Machine) lookAtHosts() {
	for _, host := range sortedKeys(m.hosts) {
		m.lookAt(m.hosts[host])
	}
}

// forgetFirsts ends to see to all hosts: others have done so, perhaps.
func (m *Machine) forgetFirsts() {
	for _, host := range sortedKeys(m.hosts) {
		m.notFirst(m.hosts[host])
	}
}

func (m *Machine) notFirst(h *outstanding) {
	m.unwatch(h)
	h.before = cmp.Or(h.target, h.before)
	h.first, h.target, h.queue, h.reread, h.missed = false, "", nil, false, false
	h.ensured(false)
}

// lookAt begins or ends to see to a host. What the one before has dispatched is dispatched again, as far as no other
// backup knows that it is done: the target says what it has fetched, or whose the host is.
func (m *Machine) lookAt(h *outstanding) {
	first := m.closest(h.id)
	switch {
	case first && !h.first:
		h.first = true
		if h.open > maxQueue {
			m.again(h, "")
		}
		m.ensure(h)
	case !first && h.first:
		m.notFirst(h)
	case first: // who is no backup any more drops what it has had
		peers, _ := m.peers(h.host)
		h.had = slices.DeleteFunc(h.had, func(n strategy.Node) bool { return !slices.Contains(peers, n) })
	}
}

// again dispatches all that is open of a host, to a target that is looked for if none is named.
func (m *Machine) again(h *outstanding, target strategy.Node) {
	m.unwatch(h)
	h.anew = h.target != "" && target == "" // it is the target no more
	h.target, h.queue, h.reread, h.from, h.missed, h.quiet = target, nil, true, "", false, 0
	m.push(h)
}

// silentTarget looks for another target. The one until now may be busy only, and not have stopped.
func (m *Machine) silentTarget(h *outstanding) {
	if h.before == "" && !m.absent.died.has(h.target, m.now) {
		h.before = h.target
	}
	m.again(h, "")
}

// dispatch has links of a host fetched.
func (m *Machine) dispatch(h *outstanding, links []Link) {
	switch {
	case !h.first || h.reread && h.from == "" && !h.reading:
		return // who is the first will, or what is read will have them
	case len(h.queue)+len(links) <= maxQueue:
		h.queue = append(h.queue, links...)
	case h.reread:
		h.missed = true
	default:
		h.queue, h.reread, h.from = nil, true, ""
	}
	m.push(h)
}

// ensure has the other backups know all that is open of a host of which this node has become the first backup, and
// dispatches what none of them knows to be done.
func (m *Machine) ensure(h *outstanding) {
	if h.sure || h.ensuring != nil {
		return
	}
	h.ensuring = &pass{}
	m.ensureFrom(h, h.ensuring, "")
}

// A pass goes over all that is open of a host.
type pass struct {
	failed bool // not all backups have answered
	again  bool // it has gone over all once
}

// ensureFrom does so from a place on.
func (m *Machine) ensureFrom(h *outstanding, p *pass, from string) {
	m.read(h.host, from, false, func(k Known) {
		m.confirm(h.host, k.Links, func(left []Link, by []strategy.Node) {
			if h.ensuring != p {
				return
			}
			if !h.reread && !p.again {
				m.dispatch(h, left)
			}
			p.failed = p.failed || !m.areAll(h.host, by)
			switch {
			case k.Next != "":
				m.ensureFrom(h, p, k.Next)
			case !p.failed:
				h.had, _ = m.peers(h.host)
				h.ensured(true)
			default:
				p.failed, p.again = false, true
				m.after(giveAgain, func() {
					if h.ensuring == p {
						m.ensureFrom(h, p, "")
					}
				})
			}
		})
	})
}

// ensured goes on with what has waited until the other backups have had all that is open here.
func (h *outstanding) ensured(sure bool) {
	waiting := h.unsure
	h.sure, h.ensuring, h.unsure = sure, nil, nil
	for _, f := range waiting {
		f(sure)
	}
}

// push sends the target what is to be sent.
func (m *Machine) push(h *outstanding) {
	if !h.first || h.finding || h.flying || h.resting || m.hosts[h.host] != h {
		return
	}
	switch {
	case h.target == "" && (h.reread || len(h.queue) > 0):
		m.findTarget(h)
	case h.target == "":
	case len(h.queue) > 0:
		n := min(len(h.queue), maxItem)
		links := slices.Clone(h.queue[:n])
		h.queue = h.queue[n:]
		m.sendLinks(h, links)
	case h.reread && !h.reading:
		m.readOpen(h)
	}
}

func (m *Machine) findTarget(h *outstanding) {
	h.finding = true
	m.find(m.target(h.host), h.anew, func(nodes []strategy.Node) {
		h.finding, h.anew = false, false
		if len(nodes) == 0 {
			m.rest(h)
			return
		}
		h.target = nodes[0]
		m.push(h)
	})
}

// rest pushes a host after a while.
func (m *Machine) rest(h *outstanding) {
	if h.resting {
		return
	}
	h.resting = true
	rested := false
	h.rested = &rested
	m.at(m.now.Add(pause<<min(max(h.laters-1, 0), mostLaters)), h.rested, func() {
		h.resting = false
		m.push(h)
	})
}

func (m *Machine) readOpen(h *outstanding) {
	h.reading = true
	from := h.from
	m.read(h.host, from, false, func(k Known) {
		h.reading = false
		if !h.reread || h.from != from { // it was begun anew meanwhile, or ended
			m.push(h)
			return
		}
		h.from, h.reread = k.Next, k.Next != "" || h.missed
		h.missed = h.missed && k.Next != ""
		h.queue = append(h.queue, k.Links...)
		m.push(h)
	})
}

// confirm asks the other backups which of some open URLs are done, and has them know the others. f is called with
// these, and with who has answered.
func (m *Machine) confirm(host string, links []Link, f func(left []Link, by []strategy.Node)) {
	left := slices.Clone(links)
	var done []Link
	var by []strategy.Node
	peers, _ := m.peers(host)
	waits := 1
	over := func() {
		if waits--; waits > 0 {
			return
		}
		if len(done) == 0 {
			f(left, by)
			return
		}
		m.record(host, done, func(Recorded) { f(left, by) })
	}
	for _, to := range peers {
		if len(links) == 0 {
			by = append(by, to)
			continue
		}
		waits++
		m.post(to, item{kind: itemStore, host: host, links: links}, func(_ strategy.Node, r *reply) {
			if m.hear(r); r != nil && r.code == replyYes {
				m.hearTarget(host, r.node)
				more, later := doneOf(links, r.states), withState(links, r.states, withheld)
				if left = without(left, later); len(later) == 0 {
					by = append(by, to)
				}
				done, left = append(done, more...), without(left, more)
			}
			over()
		})
	}
	over()
}

// sendLinks sends links to a host's target.
func (m *Machine) sendLinks(h *outstanding, links []Link) {
	h.flying = true
	to := h.target
	m.watch(h)
	it := item{kind: itemDispatch, host: h.host, links: links, node: h.before, number: m.owed(h.host).pack()}
	m.post(to, it, func(_ strategy.Node, r *reply) {
		h.flying = false
		if !h.first || h.target != to {
			m.push(h)
			return
		}
		if r == nil || r.code != replyLater {
			h.laters = 0
		}
		switch {
		case r == nil:
			m.rest(h)
			m.silentTarget(h)
		case r.code == replyYes:
			h.before = ""
			m.tookLinks(h, links, r.states)
			m.push(h)
		case r.code == replyMoved && r.node != "":
			m.again(h, r.node)
		case r.code == replyLater: // it waits for others to stop, or says to whom the host goes
			h.laters++
			m.rest(h)
			m.again(h, to)
		default:
			m.rest(h)
			m.again(h, "")
		}
	})
}

// tookLinks marks what a target had fetched before.
func (m *Machine) tookLinks(h *outstanding, links []Link, states []State) {
	if done := doneOf(links, states); len(done) > 0 {
		m.mark(h.host, done, func([]State) {})
	}
}

// mark records that URLs are done, and has the other backups record it. over is called with what was known of them.
func (m *Machine) mark(host string, done []Link, over func(before []State)) {
	m.record(host, done, func(r Recorded) {
		peers, _ := m.peers(host)
		for _, to := range peers {
			if m.mayHear(to) {
				m.post(to, item{kind: itemStore, host: host, links: done}, func(strategy.Node, *reply) {})
			}
		}
		over(r.Before)
	})
}

// marked takes what a node says it has fetched, the target or one that was it.
func (m *Machine) marked(from strategy.Node, it item, answer func(reply)) {
	if _, one := m.peers(it.host); !one || len(it.links) == 0 {
		answer(reply{code: replyNo})
		return
	}
	other := false
	if h := m.hosts[it.host]; h != nil {
		h.quiet = 0
		other = h.target != "" && h.target != from
	}
	m.mark(it.host, it.links, func(before []State) {
		if other {
			m.differed(it, before)
		}
		answer(reply{code: replyYes})
	})
}

// hostMoved takes word that another node is to fetch a host.
func (m *Machine) hostMoved(it item, answer func(reply)) {
	if !m.closest(m.backup(it.host)) {
		answer(reply{code: replyNo})
		return
	}
	if t := unpackTiming(it.number); t.Wait > 0 {
		m.timings.Put(it.host, timed{t, m.now})
	}
	if h := m.hosts[it.host]; h != nil {
		h.before, h.laters = "", 0
		if h.resting { // it need not wait any longer
			*h.rested, h.resting = true, false
		}
		m.again(h, it.node)
	}
	answer(reply{code: replyYes})
}

// A check is what a target is asked from time to time: whether it has what was dispatched to it.
type check struct {
	hosts map[string]bool
	next  string // the host that is asked for first, or the first behind it
	armed bool
	wait  time.Duration // until the next one; it doubles while nothing is amiss
}

// checkLess is up to how many times Config.Check a target is asked more seldom that has had all.
const checkLess = 6

func (m *Machine) watch(h *outstanding) {
	c := m.checks[h.target]
	if c == nil {
		c = &check{hosts: map[string]bool{}, wait: m.cfg.Check}
		m.checks[h.target] = c
	}
	c.hosts[h.host] = true
	if !c.armed {
		c.armed = true
		to := h.target
		m.after(c.wait, func() { m.check(to, c) })
	}
}

func (m *Machine) unwatch(h *outstanding) {
	if c := m.checks[h.target]; c != nil {
		delete(c.hosts, h.host)
	}
}

// check asks a target for some of the hosts that it is to have.
func (m *Machine) check(to strategy.Node, c *check) {
	c.armed = false
	all := sortedKeys(c.hosts)
	if len(all) == 0 {
		delete(m.checks, to)
		return
	}
	at, _ := slices.BinarySearch(all, c.next)
	all = append(all[at:], all[:at]...)
	asked := all[:min(len(all), checkMost)]
	if c.next = ""; len(asked) < len(all) {
		c.next = all[len(asked)]
	}
	for _, host := range asked {
		h := m.hosts[host]
		m.post(to, item{kind: itemCheck, host: host}, func(_ strategy.Node, r *reply) {
			if r == nil || r.code != replyYes {
				c.wait = m.cfg.Check
			}
			m.checkedBy(h, to, r)
		})
	}
	c.armed = true
	c.wait = min(2*c.wait, checkLess*m.cfg.Check)
	m.after(c.wait, func() { m.check(to, c) })
}

// checkedBy takes a target's word of a host.
func (m *Machine) checkedBy(h *outstanding, to strategy.Node, r *reply) {
	if h == nil || m.hosts[h.host] != h || h.target != to || !h.first {
		return
	}
	switch {
	case r == nil:
		m.silentTarget(h)
	case r.code == replyMoved && r.node != "":
		m.again(h, r.node)
	case r.code == replyNo:
		m.again(h, "")
	case r.code == replyIdle && !h.flying && !h.reread && len(h.queue) == 0:
		if h.quiet++; h.quiet >= quietMost { // its word of what it has fetched was lost
			m.again(h, to)
		}
	default:
		h.quiet = 0
	}
}

// goneTarget lets the hosts of a node that is gone have another target.
func (m *Machine) goneTarget(node strategy.Node) {
	c := m.checks[node]
	if c == nil {
		return
	}
	for _, host := range sortedKeys(c.hosts) {
		if h := m.hosts[host]; h != nil && h.target == node {
			m.again(h, "")
		}
	}
}

// Word of what is done may have been lost on its way to a backup that is not the first; what is open may have come to
// some of the backups alone, where nodes came and died at the same time. So each looks now and then at the hosts of
// which as much is open as before: the first backup compares that with all others, they with the first.
const (
	reviewEvery = 30 * time.Second
	reviewQuiet = 10 * time.Second // where nothing else is done
	reviewMost  = 256              // hosts
)

// review reviews hosts now and then, and sooner where the engine rests, and nothing has come since it was called last:
// the crawl's end may wait for that alone.
func (m *Machine) review() {
	m.after(reviewQuiet, m.review)
	rests, came := m.engine()
	quiet := rests && came == m.quiet.came
	if m.quiet.came = came; quiet || m.now.Sub(m.quiet.reviewed) >= reviewEvery {
		m.reviewHosts()
	}
}

func (m *Machine) reviewHosts() {
	m.quiet.reviewed = m.now
	if m.leaving || !m.now.Before(m.fresh) {
		return
	}
	asked := 0
	for _, host := range sortedKeys(m.hosts) {
		h := m.hosts[host]
		if h.seen != h.open || asked == reviewMost {
			h.seen = h.open
			continue
		}
		if h.first && !m.underWay(h) {
			m.silentTarget(h)
		}
		asked++
		peers, _ := m.peers(host)
		for _, to := range peers {
			m.post(to, item{kind: itemOpen, host: host}, func(to strategy.Node, r *reply) {
				if r != nil && r.code == replyYes && r.number != int64(h.open) {
					m.compareOpen(host, to, "")
				}
			})
			if !h.first {
				break
			}
		}
	}
}

// underWay reports whether something happens with what is open of a host.
func (m *Machine) underWay(h *outstanding) bool {
	c := m.checks[h.target]
	return h.ensuring != nil || h.finding || h.reading || h.flying || h.resting || c != nil && c.hosts[h.host]
}

// tellOpen says how many URLs of a host are open.
func (m *Machine) tellOpen(it item, answer func(reply)) {
	if _, one := m.peers(it.host); !one {
		answer(reply{code: replyNo})
		return
	}
	n := 0
	if h := m.hosts[it.host]; h != nil {
		n = h.open
	}
	answer(reply{code: replyYes, number: int64(n)})
}

// compareOpen has another backup of a host know what is open here, and learns what is done.
func (m *Machine) compareOpen(host string, other strategy.Node, from string) {
	m.read(host, from, false, func(k Known) {
		if len(k.Links) == 0 {
			return
		}
		m.post(other, item{kind: itemStore, host: host, links: k.Links}, func(_ strategy.Node, r *reply) {
			if r == nil || r.code != replyYes {
				return
			}
			if done := doneOf(k.Links, r.states); len(done) > 0 {
				m.record(host, done, func(Recorded) {})
			}
			if k.Next != "" {
				m.compareOpen(host, other, k.Next)
			}
		})
	})
}

// doneOf are those of some links that another node knows to be done.
func doneOf(links []Link, states []State) []Link {
	done := withState(links, states, Done)
	for i := range done {
		done[i] = Link{Hash: done[i].Hash, State: Done}
	}
	return done
}

// withState are those of some links of which another node has said that they are in a state.
func withState(links []Link, states []State, state State) (some []Link) {
	for i, s := range states {
		if s == state && i < len(links) {
			some = append(some, links[i])
		}
	}
	return some
}
