package hostlease

import (
	"errors"
	"slices"
	"time"
)

// A host is a host that this process visits, or whose lease another process requests from it.
type host struct {
	name      string
	mine      bool      // the record names this process, and the lease is not being passed on
	rev       uint64    // of the record; 0: unknown
	holder    string    // the other process that the record names, as far as known
	uncertain bool      // a write with an unknown result may still take effect
	read      Record    // that was read, while its holder is checked
	written   time.Time // when this process last wrote the record
	delay     time.Duration
	busy      bool      // a read or write of the record is under way
	retry     time.Time // no read or write begins earlier
	request   request   // to the holder
	grantee   waiter    // who gets the lease by the write under way; zero: this process
	notBefore time.Time // no visit begins earlier, because the lease was a dead process's; zero: it was not
	queue     []waiter
	turn      turn

	next    time.Time // no visit of another crawl begins earlier
	lastEnd time.Time // of the last visit, as far as known
}

// A request is a request for a lease that was not answered yet; zero: there is none.
type request struct {
	to     string
	number uint64
	at     time.Time
}

// A waiter is a crawl of this process, or another process, that wants a host.
type waiter struct {
	crawl   string
	process string
	number  uint64        // of the process's request
	delay   time.Duration // of the crawl
	began   time.Time     // when the crawl first asked
	asked   time.Time     // when it last asked
}

// A turn is the use of a host by one crawl of this process.
type turn struct {
	crawl string    // "": nobody's
	n     int       // visits under way
	used  int       // visits
	began time.Time // of the burst: its first visit; the wait before that may be longer than a burst
	last  time.Time // begin or end of the last visit; before the first one, when the crawl last asked
}

// staleWait is the time after which a crawl that has not asked again is no longer waiting.
const staleWait = 5 * time.Second

// Acquire's retry for a visit that may not begin yet: shortly after the first request for a lease, and while the lease
// or the turn is awaited. maxRetry limits the retry after a delay.
const (
	retrySoon  = 50 * time.Millisecond
	retryLater = 400 * time.Millisecond
	maxRetry   = time.Second
)

// A Lease permits one visit. The zero Lease permits none.
type Lease struct {
	host  *host // nil: the visit needs no lease
	crawl string
}

// OK reports whether the lease permits a visit.
func (l Lease) OK() bool { return l.crawl != "" }

// Acquire asks for a visit to a host for a crawl, whose delay between requests to the host is given. If the Lease is
// OK, the visit may begin, and the caller calls End when it is over. Otherwise the caller asks again after retry.
func (m *Machine) Acquire(now time.Time, crawl, name string, delay time.Duration) (l Lease, retry time.Duration) {
	switch {
	case !m.own.leased(now), m.draining > 0:
		return l, retryLater
	case m.gate.open == crawl:
		m.gate.n++
		m.gate.crawl = crawl
		m.counters.Open++
		return Lease{crawl: crawl}, 0
	case !m.mayVisit(now, crawl):
		return l, retryLater
	}
	h := m.open(name)
	if h.mine && m.hasTurn(now, h, crawl) {
		if at := latest(h.earliest(delay), m.blocked[crawl].Add(delay)); h.turn.used == 0 && now.Before(at) {
			h.turn.began, h.turn.last = now, now
			return l, min(max(at.Sub(now), retrySoon), maxRetry)
		}
		h.turn.n++
		h.turn.used++
		h.turn.last = now
		m.held++
		m.counters.Visits++
		return Lease{h, crawl}, 0
	}
	w := h.enqueue(waiter{crawl: crawl, delay: delay, began: now, asked: now})
	if h.mine {
		m.pass(now, h)
		return l, retryLater
	}
	m.obtain(now, h)
	if now.Sub(w.began) < retryLater {
		return l, retrySoon
	}
	return l, retryLater
}

// open returns a host, which it adds if it is new.
func (m *Machine) open(name string) *host {
	h := m.hosts[name]
	if h == nil {
		h = &host{name: name}
		m.hosts[name] = h
		m.list = append(m.list, h)
	}
	return h
}

// earliest returns the time before which a crawl with the given delay may not begin its turn.
func (h *host) earliest(delay time.Duration) time.Time {
	at := h.next
	if !h.lastEnd.IsZero() && h.lastEnd.Add(delay).After(at) {
		at = h.lastEnd.Add(delay)
	}
	return at
}

// hasTurn reports whether a crawl may visit the host now. A crawl whose burst is over lets others go first.
func (m *Machine) hasTurn(now time.Time, h *host, crawl string) bool {
	h.dropStale(now)
	if h.turn.crawl == "" && len(h.queue) == 0 {
		h.turn = turn{crawl: crawl, began: now, last: now}
	}
	if h.turn.crawl != crawl || len(h.queue) > 0 && m.burstOver(now, h) {
		m.pass(now, h)
	}
	return h.mine && h.turn.crawl == crawl && !(len(h.queue) > 0 && m.burstOver(now, h))
}

func (m *Machine) burstOver(now time.Time, h *host) bool {
	return h.turn.used >= m.timing.Burst || now.Sub(h.turn.began) >= m.timing.BurstTime
}

// enqueue adds a waiter, or updates it.
func (h *host) enqueue(w waiter) *waiter {
	for i := range h.queue {
		if q := &h.queue[i]; q.crawl == w.crawl && q.process == w.process {
			q.asked, q.number, q.delay = w.asked, w.number, w.delay
			return q
		}
	}
	h.queue = append(h.queue, w)
	return &h.queue[len(h.queue)-1]
}

func (h *host) dropStale(now time.Time) {
	h.queue = slices.DeleteFunc(h.queue, func(w waiter) bool { return w.crawl != "" && now.Sub(w.asked) > staleWait })
}

// End ends a visit that Acquire has permitted. wait is the time until the crawl's next request to the host, counted
// from now. requested is false if no request was made.
func (m *Machine) End(now time.Time, l Lease, wait time.Duration, requested bool) {
	if requested {
		if until := now.Add(min(wait, maxLongest)); until.After(m.waits[l.crawl]) {
			m.waits[l.crawl] = until
		}
	}
	h := l.host
	if h == nil {
		m.gate.n--
		if requested {
			m.gate.longest = min(max(m.gate.longest, wait), maxLongest)
			if until := now.Add(min(wait, maxLongest)); until.After(m.gate.until) {
				m.gate.until = until
			}
		}
		return
	}
	m.held--
	if m.draining > 0 {
		m.draining--
	}
	h.turn.n--
	h.turn.last = now
	if requested {
		h.lastEnd = now
		if next := now.Add(wait); next.After(h.next) {
			h.next = next
		}
	} else {
		h.turn.used--
	}
	if m.hosts[h.name] != h { // acquired under an earlier identity
		return
	}
	if known := min(wait, maxLongest); requested && h.mine && !h.busy && known > h.delay+500*time.Millisecond {
		m.rewrite(now, h, known) // if this process dies, the next one keeps the delay
		return
	}
	m.pass(now, h)
}

// pass gives the host to the next waiter, if the current turn is over.
func (m *Machine) pass(now time.Time, h *host) {
	if !h.mine || h.busy || h.turn.n > 0 {
		return
	}
	h.dropStale(now)
	idle := now.After(latest(h.turn.last, h.next).Add(m.timing.Idle))
	if len(h.queue) == 0 || h.turn.crawl != "" && !idle && !m.burstOver(now, h) {
		return
	}
	w := h.queue[0]
	if w.process != "" && h.rev == 0 {
		m.read(now, h)
		return
	}
	h.queue = slices.Delete(h.queue, 0, 1)
	if w.process == "" {
		h.turn = turn{crawl: w.crawl, began: now, last: now}
		return
	}
	m.grant(now, h, w, h.rev)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// grant writes another process into the record.
func (m *Machine) grant(now time.Time, h *host, to waiter, rev uint64) {
	r := Record{Host: h.name, Holder: to.process, Wait: milliseconds(h.next.Sub(now)), Since: -1,
		Delay: milliseconds(h.delay)}
	if !h.lastEnd.IsZero() {
		r.Since = now.Sub(h.lastEnd).Milliseconds() // rounded down: the reader waits longer
	}
	h.mine, h.grantee, h.turn, h.request = false, to, turn{}, request{} // a late grant to this process is void
	m.put(h, r, rev)
}

func (m *Machine) put(h *host, r Record, rev uint64) {
	h.busy = true
	m.counters.Writes++
	m.do(PutRecord{r, rev})
}

func (m *Machine) rewrite(now time.Time, h *host, delay time.Duration) {
	if h.rev == 0 {
		m.read(now, h)
		return
	}
	h.delay = max(h.delay, delay)
	h.grantee = waiter{}
	m.put(h, Record{Host: h.name, Holder: m.self, Since: -1, Delay: milliseconds(h.delay)}, h.rev)
}

func (m *Machine) read(now time.Time, h *host) {
	if h.busy || now.Before(h.retry) {
		return
	}
	h.busy = true
	m.counters.Reads++
	m.do(ReadRecord{h.name})
}

// obtain begins to acquire the lease for the waiting crawls of this process.
func (m *Machine) obtain(now time.Time, h *host) {
	switch {
	case h.mine || h.busy || now.Before(h.retry) || h.request.number != 0 && now.Sub(h.request.at) < m.timing.Reread:
	case h.holder != "" && m.others[h.holder] != nil && h.request.number == 0:
		m.send(now, h, h.holder)
	case h.rev == 0 && h.request.number == 0 && h.written.IsZero() && h.retry.IsZero():
		m.acquireRecord(now, h, 0) // there is no record yet, as a rule
	default:
		m.read(now, h)
	}
}

// acquireRecord writes this process into the record.
func (m *Machine) acquireRecord(now time.Time, h *host, rev uint64) {
	for _, w := range h.queue {
		h.delay = max(h.delay, w.delay)
	}
	h.grantee = waiter{}
	m.put(h, Record{Host: h.name, Holder: m.self, Since: -1, Delay: milliseconds(h.delay)}, rev)
}

// isWanted reports whether a crawl of this process waits for the host.
func (h *host) isWanted(now time.Time) bool {
	h.dropStale(now)
	return slices.ContainsFunc(h.queue, func(w waiter) bool { return w.process == "" })
}

func (m *Machine) recordRead(now time.Time, e ReadRecordDone) {
	h := m.hosts[e.Host]
	if h == nil || !h.busy {
		return
	}
	h.busy = false
	r := e.Record
	switch {
	case e.Err != nil:
		h.retry = now.Add(m.timing.Retry)
	case e.Rev == 0:
		if h.mine || h.isWanted(now) {
			m.acquireRecord(now, h, 0)
		}
	case r.Holder == m.self:
		h.rev = e.Rev
		switch {
		case h.uncertain: // so that an earlier write cannot take effect any more
			m.acquireRecord(now, h, e.Rev)
		case h.mine:
			m.pass(now, h)
		default:
			m.beginLease(now, h, &r)
		}
	case h.mine: // another process has acquired it, since this one's entry was deleted
		h.mine, h.turn, h.rev, h.holder, h.uncertain = false, turn{n: h.turn.n}, e.Rev, r.Holder, false
	default:
		h.rev, h.holder, h.uncertain = e.Rev, r.Holder, false
		h.read = r
		switch {
		case !h.isWanted(now):
		case !m.gone[r.Holder].IsZero():
			m.replaceHolder(now, h)
		case m.others[r.Holder] != nil:
			m.await(now, h)
		default:
			h.busy = true
			m.counters.Reads++
			m.do(CheckEntry{h.name, r.Holder})
		}
	}
}

func (m *Machine) entryChecked(now time.Time, e CheckEntryDone) {
	h := m.hosts[e.Host]
	if h == nil || !h.busy {
		return
	}
	h.busy = false
	switch {
	case e.Err != nil:
		h.retry = now.Add(m.timing.Retry)
	case e.Exists:
		m.await(now, h)
	default:
		m.replaceHolder(now, h)
	}
}

// replaceHolder acquires the lease of a dead process. Its last request ended when its entry did, at the latest.
func (m *Machine) replaceHolder(now time.Time, h *host) {
	h.notBefore = now.Add(max(duration(h.read.Wait), duration(h.read.Delay)))
	h.delay = max(h.delay, duration(h.read.Delay))
	m.acquireRecord(now, h, h.rev)
}

// await requests the lease from the holder in the record. The holder may not have read the waits in its record yet.
func (m *Machine) await(now time.Time, h *host) {
	h.applyWaits(now, &h.read)
	m.send(now, h, h.holder)
}

// applyWaits applies the times of a record that was just read or received.
func (h *host) applyWaits(now time.Time, r *Record) {
	h.next = latest(h.next, now.Add(duration(r.Wait)))
	if r.Since >= 0 {
		h.lastEnd = latest(h.lastEnd, now.Add(-time.Duration(r.Since)*time.Millisecond))
	}
	h.delay = max(h.delay, duration(r.Delay))
}

// send requests the lease from its holder.
func (m *Machine) send(now time.Time, h *host, holder string) {
	if h.request.number == 0 || h.request.to != holder {
		m.number++
		h.request.number = m.number
	}
	h.request.to, h.request.at = holder, now
	m.message(holder, Message{Kind: Request, Host: h.name, Number: h.request.number, Rev: h.rev})
}

func (m *Machine) message(to string, msg Message) {
	m.counters.Messages++
	m.do(Send{to, msg})
}

// beginLease begins to use a lease, whose record was just read or received.
func (m *Machine) beginLease(now time.Time, h *host, r *Record) {
	h.mine, h.written, h.request, h.holder = true, now, request{}, ""
	h.applyWaits(now, r)
	if !h.notBefore.IsZero() {
		h.next, h.lastEnd, h.notBefore = latest(h.next, h.notBefore), now, time.Time{}
	}
	h.turn = turn{n: h.turn.n}
	m.pass(now, h)
}

func (m *Machine) recordWritten(now time.Time, e PutRecordDone) {
	h := m.hosts[e.Record.Host]
	if h == nil || !h.busy {
		return
	}
	h.busy = false
	to := h.grantee
	h.grantee = waiter{}
	switch {
	case e.Err != nil: // a lease that this process holds stays valid; its record is read before it is passed on
		h.rev, h.holder, h.retry = 0, "", now
		if !errors.Is(e.Err, ErrStale) {
			h.uncertain, h.retry = true, now.Add(m.timing.Retry)
		}
		if h.mine || h.isWanted(now) {
			m.read(now, h)
		}
	case to.process == "":
		h.rev, h.written, h.uncertain = e.Rev, now, false
		if h.mine {
			m.pass(now, h)
			return
		}
		m.beginLease(now, h, &Record{Since: -1})
	default:
		h.rev, h.holder, h.uncertain = e.Rev, to.process, false
		g := Message{Kind: Grant, Host: h.name, Number: to.number, Rev: e.Rev, Record: e.Record}
		if h.isWanted(now) {
			m.number++
			h.request = request{to.process, m.number, now}
			g.Wanted = m.number
		}
		m.message(to.process, g)
	}
}

func (m *Machine) receive(now time.Time, e Received) {
	msg := &e.Message
	if !m.own.leased(now) {
		return
	}
	h := m.hosts[msg.Host]
	switch msg.Kind {
	case Request:
		w := waiter{process: e.From, number: msg.Number, asked: now}
		h = m.open(msg.Host)
		switch {
		case h.mine || h.busy || h.turn.n > 0:
			h.enqueue(w)
			m.pass(now, h)
		default: // this process has forgotten the host: the record still names it, or the write fails
			m.grant(now, h, w, msg.Rev)
		}
	case Grant:
		if h == nil || h.mine || h.request.number != msg.Number || h.request.to != e.From {
			return // read the record if it is wanted
		}
		h.rev, h.uncertain = msg.Rev, false
		if msg.Wanted > 0 {
			h.enqueue(waiter{process: e.From, number: msg.Wanted, asked: now})
		}
		m.beginLease(now, h, &msg.Record)
	}
}

// sweepInterval is the time between two passes over all hosts.
const sweepInterval = 500 * time.Millisecond

// sweep releases idle leases, repeats requests, and forgets hosts.
func (m *Machine) sweep(now time.Time) {
	if now.Sub(m.swept) < sweepInterval {
		return
	}
	m.swept = now
	kept := m.list[:0]
	for _, h := range m.list {
		used := latest(h.turn.last, h.next)
		h.dropStale(now)
		switch {
		case h.busy:
		case h.mine && len(h.queue) > 0:
			m.pass(now, h)
		case h.mine && now.Sub(h.written) > m.timing.Rewrite && now.Sub(used) < m.timing.Forget:
			m.rewrite(now, h, h.delay)
			h.written = now
		case !h.mine && h.isWanted(now):
			m.obtain(now, h)
		case h.turn.n == 0 && now.Sub(used) > m.timing.Forget:
			delete(m.hosts, h.name) // only processes may wait, and they request the host from its holder
			continue
		}
		kept = append(kept, h)
	}
	clear(m.list[len(kept):])
	m.list = kept
}
