package sim

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A journal is all that one node has entered, the part of it that is durable on its disk, and its copy with the
// registry. The process that writes it may end; others read the copy.
type journal struct {
	node       strategy.Node
	entries    []*entry
	durable    int
	shipped    int // as the writer knows
	shipping   bool
	committing bool     // a commit is under way
	onCommit   []func() // wait for the next commit
	waiters    []waiter
	log        *shippedLog
}

// A waiter wants to know when the journal is shipped up to a place.
type waiter struct {
	upTo int
	f    func()
}

func newJournal(w *world, n strategy.Node) *journal {
	j := &journal{node: n}
	j.log = &shippedLog{journal: j}
	w.logs[n] = j.log
	return j
}

// cut loses entries of a process that has ended, which were not durable. Pages they said to be done are fetched again.
func (w *world) truncateJournal(j *journal, n int) {
	if !j.log.closed {
		w.allowRepeats(j.entries[n:])
	}
	w.restoreHandedOver(j.node, j.entries[n:])
	j.entries = j.entries[:n]
	j.durable, j.shipped = n, j.log.length
	j.committing, j.shipping, j.waiters, j.onCommit = false, false, nil, nil
}

// closeLog lets nothing be added to a log any more. Pages that the rest of the journal says to be done are fetched again.
func (w *world) closeLog(log *shippedLog) {
	if !log.closed {
		log.closed = true
		w.allowRepeats(log.journal.entries[log.length:])
	}
}

func (w *world) allowRepeats(entries []*entry) {
	for _, e := range entries {
		if e.kind == entryDone {
			w.checker.allowRepeat(e.page)
		}
	}
}

// enter appends an entry and applies it. It is durable, and shipped, some time later.
func (p *process) enter(e *entry) {
	j := p.journal
	j.entries = append(j.entries, e)
	p.state.apply(e, p.w.k.now)
	if j.log.closed {
		p.w.allowRepeats([]*entry{e})
	}
	if !j.committing {
		j.committing = true
		p.after(p.w.k.uniform(p.w.cfg.Commit, 4*p.w.cfg.Commit), p.commit)
	}
}

func (p *process) commit() {
	j := p.journal
	j.committing = false
	j.durable = len(j.entries)
	ready := j.onCommit
	j.onCommit = nil
	for _, f := range ready {
		f()
	}
	p.ship()
}

// ship copies what is durable to the registry, one piece at a time.
func (p *process) ship() {
	j, log := p.journal, p.journal.log
	if j.shipping || j.shipped == j.durable {
		return
	}
	j.shipping = true
	upTo := j.durable
	closed := false
	add := func() {
		if closed = log.closed; !closed {
			log.length = max(log.length, upTo) // a piece that was tried before is not added twice
		}
	}
	p.w.reg.request(p, 100*(upTo-j.shipped), add, func(ok bool) {
		j.shipping = false
		if closed {
			return // it is lost, and its member will be told so
		}
		if ok {
			j.shipped = upTo
			p.wasShipped()
		}
		if j.shipped < j.durable {
			p.after(p.w.k.exponential(100*time.Millisecond), p.ship)
		}
	})
}

func (p *process) wasShipped() {
	j := p.journal
	n := 0
	for n < len(j.waiters) && j.waiters[n].upTo <= j.shipped {
		n++
	}
	ready := j.waiters[:n]
	j.waiters = j.waiters[n:]
	for _, w := range ready {
		w.f()
	}
}

// whenShipped calls f when all that is entered by now is shipped.
func (p *process) whenShipped(f func()) { p.whenShippedTo(len(p.journal.entries), f) }

func (p *process) whenShippedTo(upTo int, f func()) {
	j := p.journal
	if j.shipped >= upTo {
		p.after(0, f)
		return
	}
	at, _ := slices.BinarySearchFunc(j.waiters, upTo+1, func(w waiter, n int) int { return cmp.Compare(w.upTo, n) })
	j.waiters = slices.Insert(j.waiters, at, waiter{upTo, f})
}
