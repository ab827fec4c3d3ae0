package strategytest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// steps is the number of steps of a test run.
const steps = 40

// maxMembers is the maximum number of nodes, for which strategies under test must have room.
const maxMembers = 8

// hosts are the hosts in events.
var hosts = func() (all []string) {
	for i := range 200 {
		all = append(all, fmt.Sprintf("www%d.example.com", i),
			fmt.Sprintf("a.host.with.quite.a.long.name-%d.example.co.uk:8080", i))
	}
	return append(all, "", "192.0.2.1", "[2001:db8::1]:81", "localhost")
}()

// A driver sends a strategy events generated from a seed, and executes its actions: timers fire, and log entries become
// durable. Messages are lost.
type driver struct {
	t         *testing.T
	s         strategy.Strategy
	rng       *rand.PCG
	now       time.Time
	epoch     uint64
	members   []strategy.Member
	answers   []strategy.Event
	timers    map[uint64]time.Time
	overwrite bool // overwrite slices after each step
}

func newDriver(t *testing.T, s strategy.Strategy) *driver {
	t.Helper()
	const seed = 1
	t.Logf("seed %d", seed)
	return &driver{t: t, s: s, rng: rand.NewPCG(seed, 0), now: time.Unix(1e9, 0), timers: map[uint64]time.Time{}}
}

// step sends the events of a second, and returns the strategy's actions.
func (d *driver) step() []strategy.Action {
	d.now = d.now.Add(time.Second)
	in := d.due()
	rng := rand.New(d.rng)
	for range rng.IntN(4) {
		in = append(in, d.event(rng))
	}
	return d.deliver(in)
}

func (d *driver) event(rng *rand.Rand) strategy.Event {
	host := hosts[rng.IntN(len(hosts))]
	switch rng.IntN(5) {
	case 0:
		return strategy.OwnersNeeded{Hosts: []string{host, hosts[rng.IntN(len(hosts))]}}
	case 1:
		return strategy.ProbeResult{Host: host, OK: rng.IntN(4) > 0, Connect: time.Duration(rng.Int64N(int64(time.Second)))}
	case 2:
		return strategy.Load{Node: node(rng.IntN(maxMembers)), Pending: rng.Int64N(1e6), Rate: 100 * rng.Float64(),
			Busy: rng.Float64()}
	}
	d.members = change(rng, d.members)
	d.epoch++
	return strategy.Members{Epoch: d.epoch, Members: slices.Clone(d.members)}
}

// change makes a node join or leave.
func change(rng *rand.Rand, members []strategy.Member) []strategy.Member {
	n := rng.IntN(maxMembers)
	at, there := slices.BinarySearchFunc(members, node(n), func(m strategy.Member, n strategy.Node) int {
		return strings.Compare(string(m.Node), string(n))
	})
	if there {
		return slices.Delete(slices.Clone(members), at, at+1)
	}
	return slices.Insert(slices.Clone(members), at, strategy.Member{Node: node(n), Slot: slot(n)})
}

func node(i int) strategy.Node { return strategy.Node(fmt.Sprintf("n%d~1", i)) }

// slot returns the slot of node i; slots and names have different orders.
func slot(i int) int { return (i*5 + 3) % maxMembers }

// repeatMembers sends the members again, as to a new process.
func (d *driver) repeatMembers() {
	d.epoch++
	d.deliver([]strategy.Event{strategy.Members{Epoch: d.epoch, Members: slices.Clone(d.members)}})
}

// due returns the timers that expire, by number, and pending answers.
func (d *driver) due() []strategy.Event {
	in := d.answers
	d.answers = nil
	for timer, at := range d.timers {
		if !at.After(d.now) {
			in = append(in, strategy.Fired{Timer: timer})
			delete(d.timers, timer)
		}
	}
	slices.SortStableFunc(in, func(a, b strategy.Event) int {
		x, isTimer := a.(strategy.Fired)
		y, areTimers := b.(strategy.Fired)
		if !isTimer || !areTimers {
			return 0
		}
		return int(x.Timer) - int(y.Timer)
	})
	return in
}

// deliver runs a step with events, and checks that it appends to existing actions.
func (d *driver) deliver(in []strategy.Event) []strategy.Action {
	d.t.Helper()
	mark := strategy.Send{To: "mark"}
	out := d.s.Step(d.now, in, append(make([]strategy.Action, 0, 8), mark))
	if first, ok := out[0].(strategy.Send); !ok || first.To != mark.To {
		d.t.Fatalf("Step overwrote an action in out: %v", out[0])
	}
	actions := clone(out[1:])
	d.execute(actions)
	if d.overwrite {
		clear(in)
		clear(out)
	}
	return actions
}

func (d *driver) execute(actions []strategy.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case strategy.Persist:
			d.answers = append(d.answers, strategy.Persisted{ID: a.ID})
		case strategy.Timer:
			d.timers[a.Timer] = a.At
		}
	}
}

// clone returns a deep copy of actions.
func clone(actions []strategy.Action) []strategy.Action {
	all := make([]strategy.Action, len(actions))
	for i, a := range actions {
		switch s := a.(type) {
		case strategy.Send:
			a = strategy.Send{To: s.To, Data: bytes.Clone(s.Data)}
		case strategy.Persist:
			a = strategy.Persist{ID: s.ID, Data: bytes.Clone(s.Data)}
		case strategy.HandOver:
			a = strategy.HandOver{Hosts: slices.Clone(s.Hosts), To: s.To}
		}
		all[i] = a
	}
	return all
}
