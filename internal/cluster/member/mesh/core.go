package mesh

import (
	"cmp"
	"container/heap"
	"log/slog"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A core is shared by all parts of a [Machine]: the time of the current step, the actions that the step has collected,
// the timers, and a counter for numbers that identify requests.
type core struct {
	self strategy.Node
	log  *slog.Logger
	now  time.Time
	out  []Action
	// the last number; the first one is random, so that replies to an earlier process do not match
	last     uint64
	activity uint64 // events that may have given this node something to do
	timers   timers
	armed    time.Time // the time of the last Wake
}

// begin starts a step, or the machine.
func (c *core) begin(now time.Time, out []Action) { c.now, c.out = now, out }

// end returns the step's actions, with a Wake if the time of the first timer has changed.
func (c *core) end() (out []Action) {
	if at, ok := c.timers.next(); ok && !at.Equal(c.armed) {
		c.armed = at
		c.do(Wake{At: at})
	}
	out, c.out = c.out, nil
	return out
}

func (c *core) do(a Action) { c.out = append(c.out, a) }

// number returns a number that this process has not used.
func (c *core) number() uint64 {
	c.last++
	return c.last
}

// at calls f at a time, unless over is set by then. over may be nil.
func (c *core) at(at time.Time, over *bool, f func()) {
	heap.Push(&c.timers, timer{at, c.number(), f, over})
}

func (c *core) after(d time.Duration, f func()) { c.at(c.now.Add(d), nil, f) }

// timers is a queue of functions, ordered by the times of their calls.
type timers struct{ all []timer }

type timer struct {
	at   time.Time
	seq  uint64 // order of timers of the same time
	f    func()
	over *bool // cancels the timer when set; may be nil
}

func (t *timers) fire(now time.Time) {
	for len(t.all) > 0 && !t.all[0].at.After(now) {
		if first := heap.Pop(t).(timer); first.over == nil || !*first.over {
			first.f()
		}
	}
}

// next returns the time of the first timer.
func (t *timers) next() (at time.Time, ok bool) {
	for len(t.all) > 0 {
		if first := &t.all[0]; first.over == nil || !*first.over {
			return first.at, true
		}
		heap.Pop(t)
	}
	return time.Time{}, false
}

func (t *timers) Len() int { return len(t.all) }

func (t *timers) Less(i, j int) bool {
	return cmp.Or(t.all[i].at.Compare(t.all[j].at), cmp.Compare(t.all[i].seq, t.all[j].seq)) < 0
}

func (t *timers) Swap(i, j int) { t.all[i], t.all[j] = t.all[j], t.all[i] }

func (t *timers) Push(x any) { t.all = append(t.all, x.(timer)) }

func (t *timers) Pop() any {
	last := t.all[len(t.all)-1]
	t.all[len(t.all)-1] = timer{}
	t.all = t.all[:len(t.all)-1]
	return last
}

// A poster sends an item to a node reliably: see mail.
type poster interface {
	post(to strategy.Node, it item, done func(to strategy.Node, r *reply))
}

// A sender sends a host's whole history to nodes, or its open URLs: see transfers.
type sender interface {
	sendAll(host string, to []strategy.Node, over func(stored []strategy.Node))
	sendOpen(host string, to []strategy.Node, over func(stored []strategy.Node))
}

// A finder finds the live nodes closest to an id: see lookups.
type finder interface {
	find(id xor.ID, again bool, f func([]strategy.Node))
}

// A store records and reads which URLs are known: see history.
type store interface {
	record(host string, links []Link, f func(r Recorded, fresh []Link))
	read(host, from string, all bool, f func(Known))
	readURLs(host string, links []Link, f func(Known))
}
