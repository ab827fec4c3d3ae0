package sim

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	"kumo/internal/member"
	"kumo/internal/strategy"
)

// A mind is what carries out what a strategy wants done that is no Placer.
type mind struct {
	p        *process
	s        strategy.Strategy
	inbox    []strategy.Event
	stepping bool
	actions  []strategy.Action
	timers   map[uint64]int // how often each was set
	asked    map[string]bool
	trying   bool
	rate     float64 // pages a second, lately
}

// ledger is the log of a strategy, which all nodes share.
type ledger struct {
	entries []ledgerEntry // from the first that is not trimmed
	last    uint64
}

type ledgerEntry struct {
	number uint64
	data   []byte
}

func (p *process) think(s strategy.Strategy) {
	p.mind = &mind{p: p, s: s, timers: map[uint64]int{}, asked: map[string]bool{}}
	p.mind.weigh()
}

// strategy is what the process thinks with; nil for a Placer.
func (p *process) strategy() strategy.Strategy {
	if p.mind == nil {
		return nil
	}
	return p.mind.s
}

func (m *mind) tell(e strategy.Event) {
	m.inbox = append(m.inbox, e)
	if !m.stepping {
		m.stepping = true
		m.p.w.k.within(m.p, 0, m.step)
	}
}

func (m *mind) step() {
	m.stepping = false
	events := m.inbox
	m.inbox = nil
	out := m.s.Step(m.p.now(), events, m.actions[:0])
	for _, a := range out {
		m.carry(a)
	}
	m.actions = out[:0]
}

func (m *mind) carry(a strategy.Action) {
	p := m.p
	switch a := a.(type) {
	case strategy.Send:
		m.send(a)
	case strategy.Persist:
		m.persist(a)
	case strategy.Read:
		m.read(a)
	case strategy.Trim:
		p.w.reg.ask(p, 50, func() { p.w.ledger.trim(a.Before) }, func(bool) {})
	case strategy.Changed:
		p.tell(member.Route{View: m.s.View()})
	case strategy.Acknowledged:
		p.tell(member.Acknowledged(a))
	case strategy.HandOver:
		m.handOver(a)
	case strategy.Survey:
		m.survey()
	case strategy.Probe:
		m.probe(a)
	case strategy.Spare:
		m.spare(a.Most)
	case strategy.Timer:
		m.timers[a.Timer]++
		id := m.timers[a.Timer]
		p.w.k.within(p, p.until(a.At), func() {
			if m.timers[a.Timer] == id {
				m.tell(strategy.Fired{Timer: a.Timer})
			}
		})
	default:
		p.w.violate("%s's strategy wants %T done, which is unknown here", p.node, a)
	}
}

func (m *mind) send(a strategy.Send) {
	p := m.p
	to, ok := p.w.place[a.To]
	if !ok {
		return
	}
	p.w.net.send(p.m.index, to, len(a.Data), func() {
		q := p.w.machines[to].proc
		if q == nil || q.node != a.To || q.mind == nil {
			return
		}
		p.w.k.within(q, 0, func() { q.mind.tell(strategy.Message{From: p.node, Data: a.Data}) })
	})
}

func (m *mind) persist(a strategy.Persist) {
	l := &m.p.w.ledger
	number, done := uint64(0), false
	m.p.w.reg.ask(m.p, len(a.Data), func() {
		if number, done = l.append(a); done {
			m.p.w.moves.decided(a.Data)
		}
	}, func(ok bool) {
		e := strategy.Persisted{ID: a.ID, Number: number}
		switch {
		case !ok:
			e.State = strategy.Doubt
		case !done:
			e.State = strategy.Stale
		}
		m.tell(e)
	})
}

func (l *ledger) append(a strategy.Persist) (uint64, bool) {
	if l.last != a.After {
		return 0, false
	}
	l.last++
	l.entries = append(l.entries, ledgerEntry{l.last, a.Data})
	return l.last, true
}

func (l *ledger) trim(before uint64) {
	l.entries = slices.DeleteFunc(l.entries, func(e ledgerEntry) bool { return e.number < before && e.number < l.last })
}

// read reads the log, again and again until the registry answers.
func (m *mind) read(a strategy.Read) {
	l := &m.p.w.ledger
	var found []ledgerEntry
	last := uint64(0)
	m.p.w.reg.ask(m.p, 50, func() {
		i, _ := slices.BinarySearchFunc(l.entries, a.After+1, func(e ledgerEntry,
			n uint64) int {
			return cmp.Compare(e.number, n)
		})
		found, last = slices.Clone(l.entries[i:]), l.last
	}, func(ok bool) {
		if !ok {
			m.p.w.k.within(m.p, m.p.w.k.about(500*time.Millisecond), func() { m.read(a) })
			return
		}
		for _, e := range found {
			m.tell(strategy.Logged{Number: e.number, Data: e.data})
		}
		m.tell(strategy.AtEnd{Last: last})
	})
}

// handOver has hosts move to which no request is under way: at once, or when it has ended.
func (m *mind) handOver(a strategy.HandOver) {
	p := m.p
	var quiet []string
	for _, host := range a.Hosts {
		one := []string{host}
		if i := slices.IndexFunc(p.visits, func(v *visit) bool { return v.site().name == host }); i >= 0 {
			p.visits[i].then = append(p.visits[i].then, func() { p.tell(member.HandOver{Hosts: one, To: a.To}) })
		} else {
			quiet = append(quiet, host)
		}
	}
	if len(quiet) > 0 {
		p.tell(member.HandOver{Hosts: quiet, To: a.To})
	}
}

func (m *mind) survey() {
	p := m.p
	if p.machine.Exporting() {
		p.w.k.within(p, 50*time.Millisecond, m.survey)
		return
	}
	var found []string
	for _, h := range p.state.order() {
		if name := p.w.web.hosts[h].name; !p.view.Ours(name) && p.state.kept(h) {
			found = append(found, name)
		}
	}
	m.tell(strategy.Held{Hosts: found})
	m.tell(strategy.Surveyed{})
}

// spare tells which hosts have the longest queues.
func (m *mind) spare(most int) {
	var all []strategy.Queue
	for _, n := range m.p.state.order() {
		if h := m.p.state.hosts[n]; h.waiting != 0 {
			all = append(all, strategy.Queue{Host: m.p.w.web.hosts[n].name, Waiting: bits.OnesCount64(h.waiting)})
		}
	}
	slices.SortStableFunc(all, func(a, b strategy.Queue) int { return cmp.Compare(b.Waiting, a.Waiting) })
	m.tell(strategy.Spared{Queues: all[:min(len(all), most)]})
}

// probe tries to reach a host. Some pairs of machines and hosts never do.
func (m *mind) probe(a strategy.Probe) {
	p := m.p
	host, ok := p.w.web.byName[a.Host]
	took := p.w.connect(p.m.index, host)
	e := strategy.Reached{Host: a.Host, OK: ok && took <= a.Timeout, Connect: min(took, a.Timeout)}
	p.w.k.within(p, e.Connect, func() { m.tell(e) })
}

// connect is how long a machine takes to reach a host; forever if it never does.
func (w *world) connect(machine int, host int32) time.Duration {
	h := hash(w.web.seed, 5, uint64(host), uint64(machine))
	if float64(h%1000)/1000 < w.cfg.Apart {
		return forever
	}
	if w.cfg.Alike {
		return 20 * time.Millisecond
	}
	return 5*time.Millisecond + time.Duration(h>>10%uint64(400*time.Millisecond))
}

// want notes hosts whose owner is not known, or refuses; they are asked for together.
func (m *mind) want(host string) {
	m.asked[host] = true
	if m.trying {
		return
	}
	m.trying = true
	m.p.w.k.within(m.p, 20*time.Millisecond, func() {
		m.trying = false
		hosts := slices.Sorted(maps.Keys(m.asked))
		clear(m.asked)
		m.tell(strategy.Wanted{Hosts: hosts})
	})
}

// weigh says, as often as a node's lease tells it to others, how much the node has to do.
func (m *mind) weigh() {
	p := m.p
	p.w.k.within(p, p.w.cfg.Timing.Beat/2, func() {
		m.rate += (float64(p.fetched)/(p.w.cfg.Timing.Beat/2).Seconds() - m.rate) / 4
		p.fetched = 0
		e := strategy.Load{Node: p.node, Rate: m.rate, Busy: float64(p.busy) / float64(p.w.cfg.Workers)}
		for _, h := range p.state.hosts {
			if h.waiting != 0 || h.visiting {
				e.Hosts++
				e.Waiting += int64(bits.OnesCount64(h.waiting))
			}
		}
		m.tell(e)
		m.weigh()
	})
}

// arrived tells of the hosts of a transfer that came whole.
func (m *mind) arrived(hosts []int32) {
	e := strategy.Held{}
	for _, h := range hosts {
		e.Hosts = append(e.Hosts, m.p.w.web.hosts[h].name)
	}
	m.tell(e)
}
