package hostlease

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/wait"
)

// Timing has the intervals of a Machine. TTL and Margin must be the same in all processes.
type Timing struct {
	Beat   time.Duration // interval of renewals of the entry
	TTL    time.Duration // how long an entry is valid without renewal
	Margin time.Duration // after TTL, until others delete the entry
	Retry  time.Duration // after a failed read or write

	Burst     int           // visits in a row while another crawl or process wants the host
	BurstTime time.Duration // time in a row, the same
	Idle      time.Duration // after this time without a visit, a process passes a wanted host on during its burst
	Forget    time.Duration // after this time without a visit, a process forgets a host
	Reread    time.Duration // after this time without an answer, a requester reads the record again
	Rewrite   time.Duration // the record of a host in use is written again after this time, before it expires
	Reopen    time.Duration // how long only one crawl must be active before a process is open again
}

// NewTiming returns the timing for the given lease of processes.
func NewTiming(beat, ttl, margin, retry time.Duration) Timing {
	return Timing{Beat: beat, TTL: ttl, Margin: margin, Retry: retry, Burst: 16, BurstTime: 10 * time.Second,
		Idle: 2 * time.Second, Forget: time.Minute, Reread: 5 * time.Second, Rewrite: MaxAge / 4,
		Reopen: 5 * time.Second}
}

// MaxAge is the age at which a record expires that was not written again.
const MaxAge = 20 * time.Minute

// maxLongest limits how long visits without a lease delay other crawls.
const maxLongest = time.Minute

// A Machine decides which hosts this process may visit for which crawl. It is not safe for concurrent use.
type Machine struct {
	outbox
	timing Timing
	self   string

	own    ownEntry
	others map[string]*process
	gone   map[string]time.Time // deleted processes, and when that was seen
	synced bool

	active   []string             // crawls of this process, sorted
	waits    map[string]time.Time // by crawl: when the waits after its last visits are over
	blocked  map[string]time.Time // by crawl: when another crawl was last visiting hosts without leases
	gate     gate
	hosts    map[string]*host
	list     []*host // the same hosts, so that a seed gives one order
	held     int     // visits with a lease under way
	draining int     // of these, visits that began before the last Restart
	number   uint64  // of the last request
	swept    time.Time
	counters Counters
}

// Counters count a machine's work.
type Counters struct {
	Visits   int64 // with a lease
	Open     int64 // without
	Reads    int64 // of records
	Writes   int64 // of records
	Messages int64
}

// ownEntry is the process's own entry.
type ownEntry struct {
	rev     uint64
	until   time.Time // end of the lease
	asked   time.Time // start of the last write
	writing bool
	retry   time.Time // no write begins earlier
	sent    Entry     // of the last write
	written bool      // the last write has succeeded
	shown   Entry     // as last seen in the watch
	isShown bool
	lost    bool // deleted by another process
}

// A gate decides whether visits need leases.
type gate struct {
	open    string    // the crawl that visits hosts without leases; "": none
	alone   time.Time // since when only one crawl is active; zero: it is not
	barrier time.Time // not open before this time: a process has died whose waits may not be over
	crawl   string    // of the visits without a lease, whose waits are not over; "": none
	n       int       // visits without a lease under way
	until   time.Time // the waits after all ended visits without a lease are over
	longest time.Duration
}

// A process is another process.
type process struct {
	entry    Entry
	rev      uint64
	seen     time.Time // when this revision was seen
	deleting time.Time // when its deletion was requested
}

// New returns the machine of a process with a new identity.
func New(self string, t Timing) *Machine {
	return &Machine{timing: t, self: self, others: map[string]*process{}, gone: map[string]time.Time{},
		waits: map[string]time.Time{}, blocked: map[string]time.Time{}, hosts: map[string]*host{}}
}

// Restart gives the process a new identity after its entry was deleted: its leases of hosts are void.
func (m *Machine) Restart(self string) {
	m.self, m.own, m.synced, m.gate.open = self, ownEntry{}, false, ""
	m.others, m.gone, m.hosts = map[string]*process{}, map[string]time.Time{}, map[string]*host{}
	m.list, m.draining = nil, m.held
}

// Lost reports whether the process's entry was deleted. The caller then calls Restart.
func (m *Machine) Lost() bool { return m.own.lost }

// An outbox collects actions for the caller.
type outbox struct{ out []Action }

// Actions returns the actions since the last call.
func (b *outbox) Actions() []Action {
	out := b.out
	b.out = nil
	return out
}

func (b *outbox) do(a Action) { b.out = append(b.out, a) }

// Counters returns the counts since the start.
func (m *Machine) Counters() Counters { return m.counters }

// Activate adds a crawl. Its visits may begin when Acquire permits it.
func (m *Machine) Activate(now time.Time, crawl string) {
	if i, has := slices.BinarySearch(m.active, crawl); !has {
		m.active = slices.Insert(m.active, i, crawl)
	}
	m.update(now)
}

// Deactivate removes a crawl without visits under way.
func (m *Machine) Deactivate(now time.Time, crawl string) {
	m.active = slices.DeleteFunc(m.active, func(c string) bool { return c == crawl })
	delete(m.blocked, crawl)
	m.update(now)
}

// Frontiers returns the number of frontiers in all processes: one for each process and crawl.
func (m *Machine) Frontiers() int {
	n := len(m.active)
	for _, p := range m.others {
		n += len(p.entry.Crawls)
	}
	return n
}

// Revision returns the revision of the process's own entry.
func (m *Machine) Revision() uint64 { return m.own.rev }

// IsQuiescent reports whether all visits without a lease are over, with the waits after them.
func (m *Machine) IsQuiescent(now time.Time) bool { return m.gate.n == 0 && !now.Before(m.gate.until) }

// Step processes an event.
func (m *Machine) Step(now time.Time, e Event) {
	switch e := e.(type) {
	case EntrySeen:
		m.entrySeen(now, e)
	case PutEntryDone:
		m.own.finishWrite(now, e, &m.timing)
	case ReadRecordDone:
		m.recordRead(now, e)
	case CheckEntryDone:
		m.entryChecked(now, e)
	case PutRecordDone:
		m.recordWritten(now, e)
	case Received:
		m.receive(now, e)
	case Tick:
		m.deleteExpired(now)
		m.sweep(now)
	}
	m.update(now)
}

func (m *Machine) entrySeen(now time.Time, e EntrySeen) {
	switch {
	case e.Process == "":
		m.synced = true
	case e.Process == m.self && e.Entry == nil:
		m.own.lost, m.own.until = true, time.Time{}
	case e.Process == m.self:
		m.own.shown, m.own.isShown = *e.Entry, true
		m.own.rev = max(m.own.rev, e.Rev) // after a write whose result was unknown
	case e.Entry == nil:
		m.entryDeleted(now, e.Process)
	default:
		delete(m.gone, e.Process)
		p := m.others[e.Process]
		if p == nil {
			p = &process{}
			m.others[e.Process] = p
		}
		if e.Rev > p.rev {
			p.entry, p.rev, p.seen = *e.Entry, e.Rev, now
		}
	}
}

func (m *Machine) entryDeleted(now time.Time, id string) {
	if p := m.others[id]; p != nil && len(p.entry.Crawls) > 0 { // it may have visited hosts until its lease ended
		m.gate.barrier = latest(m.gate.barrier, now.Add(maxLongest))
	}
	delete(m.others, id)
	m.gone[id] = now
}

// deleteExpired deletes entries that were not renewed in time.
func (m *Machine) deleteExpired(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(m.others)) {
		p := m.others[id]
		silent := m.timing.TTL + m.timing.Margin
		if p.entry.Open != "" {
			silent += duration(p.entry.Longest)
		}
		if now.Sub(p.seen) > silent && now.Sub(p.deleting) > m.timing.Beat {
			p.deleting = now
			m.do(DeleteEntry{id, p.rev})
		}
	}
	for id, at := range m.gone {
		if now.Sub(at) > 2*MaxAge { // no record names it any more
			delete(m.gone, id)
		}
	}
}

// update renews the entry if it is time or if it has to change, and decides whether visits need leases.
func (m *Machine) update(now time.Time) {
	only := m.onlyCrawl(now)
	if m.gate.open = ""; only != "" && m.own.isShown && m.own.shown.Open == only {
		m.gate.open = only
	}
	for _, c := range m.active {
		if !m.mayVisit(now, c) {
			m.blocked[c] = now
		}
	}
	o := &m.own
	if o.lost || !m.synced || o.writing || now.Before(o.retry) {
		return
	}
	want := m.desiredEntry(now, only)
	if o.written && want.equal(&o.sent) && now.Sub(o.asked) < m.timing.Beat {
		return
	}
	o.writing, o.asked, o.sent = true, now, want
	m.do(PutEntry{want, o.rev})
}

// desiredEntry returns the entry that the process should have.
func (m *Machine) desiredEntry(now time.Time, only string) Entry {
	e := Entry{Crawls: m.entryCrawls(now), Open: m.own.sent.Open}
	if longest := m.gate.longest; longest > 0 {
		step := time.Second
		for step < longest {
			step *= 2
		}
		e.Longest = milliseconds(step)
	}
	if only == "" {
		m.gate.alone = time.Time{}
	} else if m.gate.alone.IsZero() {
		m.gate.alone = now
	}
	switch {
	case e.Open != "" && e.Open != only:
		if m.IsQuiescent(now) {
			e.Open = ""
		}
	case e.Open == "" && only != "" && m.mayOpen(now):
		e.Open = only
	}
	return e
}

// mayOpen reports whether a process may become open: at once for its first crawl, otherwise when only one crawl has
// been active for a while.
func (m *Machine) mayOpen(now time.Time) bool {
	return !now.Before(m.gate.barrier) && (len(m.own.sent.Crawls) == 0 || now.Sub(m.gate.alone) >= m.timing.Reopen)
}

// entryCrawls returns the active crawls, and those whose last visits are too recent.
func (m *Machine) entryCrawls(now time.Time) []string {
	all := slices.Clone(m.active)
	for c, until := range m.waits {
		switch {
		case slices.Contains(m.active, c):
		case now.Before(until):
			all = append(all, c)
		default:
			delete(m.waits, c)
		}
	}
	slices.Sort(all)
	if all == nil {
		all = []string{}
	}
	return all
}

// onlyCrawl returns the crawl of this process if no other crawl is active in any process, otherwise "".
func (m *Machine) onlyCrawl(now time.Time) string {
	mine := m.entryCrawls(now)
	if len(mine) != 1 {
		return ""
	}
	for _, p := range m.others {
		if p.entry.isOpenForOther(mine[0]) ||
			slices.ContainsFunc(p.entry.Crawls, func(c string) bool { return c != mine[0] }) {
			return ""
		}
	}
	return mine[0]
}

func (o *ownEntry) finishWrite(now time.Time, e PutEntryDone, t *Timing) {
	o.writing, o.written = false, e.Err == nil
	if e.Err != nil { // if a write has succeeded after all, the watch shows its revision
		o.retry = now.Add(t.Retry)
		return
	}
	o.rev = max(o.rev, e.Rev)
	if until := o.asked.Add(t.TTL); !o.lost && until.After(o.until) {
		o.until = until
	}
}

// leased reports whether the process's own lease is valid.
func (o *ownEntry) leased(now time.Time) bool { return wait.IsAfter(o.until, now) }

// mayVisit reports whether the process may visit hosts for a crawl with leases.
func (m *Machine) mayVisit(now time.Time, crawl string) bool {
	o := &m.own
	if !o.isShown || !slices.Contains(o.shown.Crawls, crawl) || o.shown.isOpenForOther(crawl) {
		return false
	}
	if m.gate.crawl != crawl && !m.IsQuiescent(now) {
		return false
	}
	for _, p := range m.others {
		if p.entry.isOpenForOther(crawl) {
			return false
		}
	}
	return true
}
