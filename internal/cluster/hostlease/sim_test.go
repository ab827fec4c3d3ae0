package hostlease

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/lab/testmain"
)

// A world simulates processes, two registries and a network in virtual time. Writes may take long, fail with an unknown
// result, or take effect after they were reported as failed; messages may be lost, duplicated or reordered; processes
// may crash, and be cut off for longer than their lease.
type world struct {
	t     *testing.T
	seed  uint64
	rand  *rand.Rand
	now   time.Time
	queue timeline
	order int

	faults    bool
	entries   map[string]stored[Entry]
	history   []EntrySeen
	records   map[string]stored[Record]
	revs      [2]uint64
	processes []*simProcess
	hosts     []string
	crawls    []*simCrawl
	visits    map[string]*lastVisit
	started   map[string]int // visits by crawl and host
	lives     int
}

type stored[T any] struct {
	value T
	rev   uint64
}

type simProcess struct {
	w     *world
	m     *Machine
	id    string
	life  int // closures of earlier lives do nothing
	shown int // of history
	cut   bool
	dead  bool
	until time.Time // a cut-off process has lost its part of the crawls after this time
}

type simCrawl struct {
	name   string
	delay  time.Duration
	active bool
	owners map[string]*simProcess // of hosts
	next   map[string]time.Time   // the frontier's clock
}

// lastVisit is the last visit to a host.
type lastVisit struct {
	crawl  string
	ended  time.Time
	wait   time.Duration
	active int
}

type event struct {
	at    time.Time
	order int
	f     func()
}

type timeline []event

func (q timeline) Len() int { return len(q) }
func (q timeline) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].order < q[j].order
}
func (q timeline) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *timeline) Push(x any)   { *q = append(*q, x.(event)) }
func (q *timeline) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func newWorld(t *testing.T, seed uint64, processes, hosts int) *world {
	w := &world{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1e9, 0), faults: true,
		entries: map[string]stored[Entry]{}, records: map[string]stored[Record]{}, visits: map[string]*lastVisit{},
		started: map[string]int{}}
	for i := range hosts {
		name := fmt.Sprint("h", i)
		w.hosts = append(w.hosts, name)
		w.visits[name] = &lastVisit{}
	}
	for range processes {
		w.start()
	}
	return w
}

func (w *world) after(d time.Duration, f func()) {
	w.order++
	heap.Push(&w.queue, event{w.now.Add(d), w.order, f})
}

func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.queue) > 0 && !w.queue[0].at.After(end) && !w.t.Failed() {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.f()
	}
	w.now = end
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d, %v: "+format, append([]any{w.seed, w.now.Sub(time.Unix(1e9, 0))}, args...)...)
}

func (w *world) chance(percent int) bool { return w.faults && w.rand.IntN(100) < percent }

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rand.Int64N(int64(most-least)))
}

func simTiming() Timing {
	return NewTiming(2*time.Second, 14*time.Second, 2*time.Second, 500*time.Millisecond)
}

func (w *world) start() *simProcess {
	p := &simProcess{w: w}
	w.lives++
	p.id = fmt.Sprintf("p%d~%d", len(w.processes), w.lives)
	p.m = New(p.id, simTiming())
	w.processes = append(w.processes, p)
	p.watch()
	p.tick()
	return p
}

func (p *simProcess) step(e Event) {
	if p.dead {
		return
	}
	p.m.Step(p.w.now, e)
	p.flush()
}

func (p *simProcess) flush() {
	for _, a := range p.m.Actions() {
		p.do(a)
	}
	if p.m.Lost() {
		p.w.lives++
		p.life++
		p.id, p.shown = fmt.Sprintf("%s+%d", p.id, p.w.lives), 0
		p.m.Restart(p.id)
	}
}

func (p *simProcess) tick() {
	if p.dead {
		return
	}
	p.step(Tick{})
	p.w.after(100*time.Millisecond, p.tick)
}

// watch shows the process the next entries, some time after they were written.
func (p *simProcess) watch() {
	if p.dead {
		return
	}
	for !p.cut && p.shown < len(p.w.history) && !p.w.chance(20) {
		e := p.w.history[p.shown]
		p.shown++
		p.step(e)
	}
	if !p.cut && p.shown == len(p.w.history) {
		p.step(EntrySeen{})
	}
	p.w.after(p.w.between(time.Millisecond, 60*time.Millisecond), p.watch)
}

// request executes f at the registry, and passes its result to the process, or an error that leaves the result open.
func (p *simProcess) request(f func() error, done func(error)) {
	w, life := p.w, p.life
	answer := func(err error) {
		if !p.dead && p.life == life {
			done(err)
		}
	}
	unknown := errors.New("unknown")
	switch {
	case p.cut || w.chance(2): // it may take effect late, or never
		if w.chance(50) {
			w.after(w.between(0, 20*time.Second), func() { _ = f() })
		}
		w.after(w.between(time.Second, 5*time.Second), func() { answer(unknown) })
	default:
		w.after(w.between(time.Millisecond, 40*time.Millisecond), func() {
			err := f()
			back := w.between(time.Millisecond, 40*time.Millisecond)
			if w.chance(2) {
				err, back = unknown, 5*time.Second
			}
			w.after(back, func() { answer(err) })
		})
	}
}

func (p *simProcess) do(a Action) {
	w := p.w
	switch a := a.(type) {
	case PutEntry:
		var rev uint64
		id := p.id
		p.request(func() (err error) { rev, err = w.putEntry(id, &a.Entry, a.Rev); return err },
			func(err error) { p.step(PutEntryDone{rev, err}) })
	case DeleteEntry:
		p.request(func() (err error) { _, err = w.putEntry(a.Process, nil, a.Rev); return err }, func(error) {})
	case ReadRecord:
		var s stored[Record]
		p.request(func() error { s = w.records[a.Host]; return nil },
			func(err error) { p.step(ReadRecordDone{a.Host, s.value, s.rev, err}) })
	case CheckEntry:
		exists := false
		p.request(func() error { _, exists = w.entries[a.Process]; return nil },
			func(err error) { p.step(CheckEntryDone{a.Host, exists, err}) })
	case PutRecord:
		var rev uint64
		p.request(func() error {
			if w.records[a.Record.Host].rev != a.Rev {
				return ErrStale
			}
			w.revs[1]++
			rev = w.revs[1]
			w.records[a.Record.Host] = stored[Record]{a.Record, rev}
			return nil
		}, func(err error) { p.step(PutRecordDone{a.Record, rev, err}) })
	case Send:
		times := 1
		if p.cut || w.chance(5) {
			times = 0
		} else if w.chance(5) {
			times = 2
		}
		from := p.id
		for range times {
			most := 50 * time.Millisecond
			if w.chance(3) {
				most = 20 * time.Second
			}
			w.after(w.between(time.Millisecond, most), func() {
				for _, q := range w.processes {
					if q.id == a.To && !q.cut {
						q.step(Received{from, a.Message})
					}
				}
			})
		}
	}
}

func (w *world) putEntry(id string, e *Entry, rev uint64) (uint64, error) {
	if w.entries[id].rev != rev {
		return 0, ErrStale
	}
	w.revs[0]++
	if e == nil {
		delete(w.entries, id)
	} else {
		w.entries[id] = stored[Entry]{*e, w.revs[0]}
	}
	w.history = append(w.history, EntrySeen{id, e, w.revs[0]})
	return w.revs[0], nil
}

// begin starts a crawl on all processes.
func (w *world) begin(name string, delay time.Duration) *simCrawl {
	c := &simCrawl{name: name, delay: delay, active: true, owners: map[string]*simProcess{}, next: map[string]time.Time{}}
	w.crawls = append(w.crawls, c)
	for _, p := range w.processes {
		if !p.dead {
			p.m.Activate(w.now, name)
			p.flush()
		}
	}
	for i, h := range w.hosts {
		if c.owners[h] = w.processes[(i+len(w.crawls))%len(w.processes)]; c.owners[h].dead || c.owners[h].cut {
			w.own(c, h)
		}
		w.work(c, h)
	}
	return c
}

func (w *world) end(c *simCrawl) {
	c.active = false
	w.after(2*time.Second, func() { // visits under way are over
		for _, p := range w.processes {
			if !p.dead {
				p.m.Deactivate(w.now, c.name)
				p.flush()
			}
		}
	})
}

// own chooses an owner for a host of a crawl.
func (w *world) own(c *simCrawl, host string) {
	for {
		p := w.processes[w.rand.IntN(len(w.processes))]
		if !p.dead && !p.cut {
			c.owners[host] = p
			return
		}
	}
}

// work visits a host for a crawl whenever its frontier permits it.
func (w *world) work(c *simCrawl, host string) {
	if !c.active {
		return
	}
	p := c.owners[host]
	again := func(d time.Duration) { w.after(d, func() { w.work(c, host) }) }
	if p.dead || p.cut && w.now.After(p.until) {
		again(100 * time.Millisecond)
		return
	}
	if at := c.next[host]; w.now.Before(at) {
		again(at.Sub(w.now))
		return
	}
	l, retry := p.m.Acquire(w.now, c.name, host, c.delay)
	p.flush()
	if !l.OK() {
		again(retry)
		return
	}
	w.visit(c, host)
	wait, requested := c.delay, !w.chance(3)
	if w.chance(2) {
		wait = 12 * time.Second // as requested by the server
	}
	if !requested {
		wait = 0
	}
	w.after(w.between(time.Millisecond, 900*time.Millisecond), func() {
		v := w.visits[host]
		v.active--
		v.ended, v.wait = w.now, wait
		if p.dead || p.cut { // it cannot record a wait beyond the delay before its lease ends
			v.wait = min(wait, c.delay)
		}
		if !p.dead {
			p.m.End(w.now, l, wait, requested)
			p.flush()
		}
		c.next[host] = w.now.Add(wait)
		again(0)
	})
}

// visit checks that a visit may begin.
func (w *world) visit(c *simCrawl, host string) {
	v := w.visits[host]
	if v.active > 0 {
		w.fatalf("%s visits %s during a visit of %s", c.name, host, v.crawl)
	}
	if v.crawl != "" && v.crawl != c.name {
		if gap, least := w.now.Sub(v.ended), max(v.wait, c.delay); gap < least && v.wait > 0 {
			w.fatalf("%s visits %s %v after %s, want %v", c.name, host, gap, v.crawl, least)
		}
	}
	v.active++
	v.crawl = c.name
	w.started[c.name+" "+host]++
}

// kill crashes a process. Its hosts move when its lease has ended.
func (w *world) kill(p *simProcess) {
	p.dead = true
	w.after(17*time.Second, func() { w.moveAway(p) })
}

func (w *world) moveAway(p *simProcess) {
	for _, c := range w.crawls {
		for _, h := range w.hosts {
			if c.owners[h] == p {
				w.own(c, h)
			}
		}
	}
}

// cutOff separates a process from the registries and the others for longer than its lease.
func (w *world) cutOff(p *simProcess) {
	p.cut, p.until = true, w.now.Add(11*time.Second)
	w.after(17*time.Second, func() { w.moveAway(p) })
	w.after(w.between(18*time.Second, 40*time.Second), func() { p.cut = false })
}

// counts returns the visits of a crawl by host since the last call.
func (w *world) counts(c *simCrawl) (least int) {
	least = 1 << 30
	for _, h := range w.hosts {
		key := c.name + " " + h
		least = min(least, w.started[key])
		delete(w.started, key)
	}
	return least
}

// Whatever happens, no host is visited by two crawls at once, or by one too soon after another, and all crawls go on.
func TestCrawlsTakeTurns(t *testing.T) {
	t.Parallel()
	first, end := testmain.Seeds(12, 300)
	for seed := first; seed < end; seed++ {
		w := newWorld(t, seed, 4, 6)
		w.run(w.between(0, 2*time.Second))
		a := w.begin("a", time.Second)
		w.run(20 * time.Second)
		b := w.begin("b", w.between(200*time.Millisecond, 3*time.Second))
		w.run(30 * time.Second)
		w.kill(w.processes[w.rand.IntN(4)])
		w.run(w.between(0, 30*time.Second))
		late := w.start()
		for _, c := range w.crawls {
			late.m.Activate(w.now, c.name)
		}
		for _, p := range w.processes {
			if !p.dead && p != late {
				w.cutOff(p)
				break
			}
		}
		w.run(60 * time.Second)
		w.end(a)
		w.run(20 * time.Second)
		d := w.begin("d", 500*time.Millisecond)
		w.run(30 * time.Second)
		w.faults = false
		w.run(40 * time.Second)
		w.counts(b)
		w.counts(d)
		w.run(100 * time.Second)
		for _, c := range []*simCrawl{b, d} {
			if n := w.counts(c); n < 4 {
				w.fatalf("%s has visited a host only %d times in 100 s", c.name, n)
			}
		}
		w.end(b)
		w.end(d)
		w.run(3 * time.Minute)
		for _, p := range w.processes {
			if !p.dead && len(p.m.hosts) > 0 {
				w.fatalf("%s still has %d hosts after the last crawl", p.id, len(p.m.hosts))
			}
		}
	}
}

// A crawl whose delay is longer than a burst makes progress beside one with a short delay, whether the same process
// visits a host for both or not. Its turn ends if it has no more URLs, even if it has visited nothing.
func TestUnequalDelays(t *testing.T) {
	t.Parallel()
	first, end := testmain.Seeds(6, 100)
	for seed := first; seed < end; seed++ {
		w := newWorld(t, seed, 3, 4)
		w.run(w.between(0, 2*time.Second))
		a := w.begin("a", time.Second)
		w.run(20 * time.Second)
		b := w.begin("b", 15*time.Second)
		b.owners["h0"] = a.owners["h0"]
		w.run(w.between(60*time.Second, 100*time.Second))
		w.faults = false
		w.run(60 * time.Second)
		w.counts(a)
		w.counts(b)
		w.run(300 * time.Second)
		if na, nb := w.counts(a), w.counts(b); na < 20 || nb < 4 {
			w.fatalf("visits to a host in 300 s: %d with a delay of 1 s, %d with 15 s", na, nb)
		}
		b.active = false // without the end of its part in the processes
		w.run(60 * time.Second)
		w.counts(a)
		w.run(30 * time.Second)
		if na := w.counts(a); na < 12 {
			w.fatalf("only %d visits in 30 s beside a crawl without URLs", na)
		}
	}
}

// While one crawl is active, nothing is read, written or sent for hosts, whatever the number of processes.
func TestOneCrawlNeedsNoLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 3, 6)
	w.faults = false
	w.run(time.Second)
	a := w.begin("a", 200*time.Millisecond)
	w.run(30 * time.Second)
	check := func(when string) {
		t.Helper()
		for _, p := range w.processes {
			if c := p.m.Counters(); c.Reads+c.Writes+c.Messages+c.Visits > 0 || c.Open == 0 {
				t.Errorf("%s: %+v", when, c)
			}
		}
	}
	check("from the start")
	b := w.begin("b", 200*time.Millisecond)
	w.run(30 * time.Second)
	if n := w.counts(b); n < 10 {
		t.Errorf("the second crawl has visited a host only %d times", n)
	}
	w.end(b)
	w.run(15 * time.Second) // open again
	before := make([]Counters, 3)
	for i, p := range w.processes {
		before[i] = p.m.Counters()
	}
	w.run(30 * time.Second)
	for i, p := range w.processes {
		was, is := before[i], p.m.Counters()
		was.Open, is.Open = 0, 0
		if was != is {
			t.Errorf("after the second crawl: %+v, was %+v", is, was)
		}
	}
	_ = a
}

// Two crawls share a host evenly, at a bounded number of messages and writes a visit.
func TestCostOfTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 2, 1)
	w.faults = false
	w.run(time.Second)
	a, b := w.begin("a", 300*time.Millisecond), w.begin("b", 300*time.Millisecond)
	a.owners["h0"], b.owners["h0"] = w.processes[0], w.processes[1]
	w.run(5 * time.Minute)
	na, nb := w.counts(a), w.counts(b)
	var cost Counters
	for _, p := range w.processes {
		c := p.m.Counters()
		cost.Reads, cost.Writes, cost.Messages = cost.Reads+c.Reads, cost.Writes+c.Writes, cost.Messages+c.Messages
	}
	each := float64(cost.Reads+cost.Writes+cost.Messages) / float64(na+nb)
	t.Logf("%d and %d visits, %+v: %.2f a visit", na, nb, cost, each)
	if slices.Min([]int{na, nb}) < 100 || max(na, nb) > 2*min(na, nb) || each > 0.5 {
		t.Errorf("%d and %d visits, %+v: %.2f a visit", na, nb, cost, each)
	}
}
