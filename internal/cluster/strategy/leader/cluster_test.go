package leader_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// tick is the duration of everything that is not delayed.
const tick = 20 * time.Millisecond

// A cluster has tallies, the network between them, and their log.
type cluster struct {
	t     *testing.T
	rng   *rand.Rand
	now   time.Time
	nodes map[strategy.Node]*tally
	inbox map[strategy.Node][]strategy.Event
	later []later
	cut   map[strategy.Node]bool // nodes without messages and log
	epoch uint64
	all   []strategy.Member

	faults  float64                 // share of messages and requests that are lost, late or duplicated
	persist func(f fate) fate       // changes the outcome of a Persist that random faults have not changed; may be nil
	log     []strategy.LogEntry     // without trimmed entries
	last    uint64                  // number of its last entry
	begun   map[uint64]leader.Entry // by term
	added   map[string]int          // how often each name is in the log, including trimmed entries
	asked   int                     // names
}

// A later is a future event.
type later struct {
	at time.Time
	do func()
}

// A fate is the outcome of a Persist.
type fate struct {
	written time.Duration // time until it reaches the log; negative: never
	told    time.Duration // time until the writer gets the outcome; beyond persistPatience it is in doubt
}

const persistPatience = 2 * time.Second

func newCluster(t *testing.T, seed uint64, nodes ...strategy.Node) *cluster {
	t.Logf("seed %d", seed)
	c := &cluster{t: t, rng: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1e9, 0), nodes: map[strategy.Node]*tally{},
		inbox: map[strategy.Node][]strategy.Event{}, cut: map[strategy.Node]bool{}, begun: map[uint64]leader.Entry{},
		added: map[string]int{}}
	c.members(nodes...)
	for _, n := range nodes {
		c.start(n)
	}
	return c
}

// start starts a node's process, possibly again.
func (c *cluster) start(n strategy.Node) {
	var wants map[string]bool
	if was := c.nodes[n]; was != nil {
		wants = was.wants
	}
	c.nodes[n] = newTally(n)
	maps.Copy(c.nodes[n].wants, wants)
	c.inbox[n] = []strategy.Event{strategy.Members{Epoch: c.epoch, Members: c.all}}
}

// members starts an epoch. Nodes learn of it at once or, with faults, late.
func (c *cluster) members(nodes ...strategy.Node) {
	c.epoch++
	c.all = nil
	for _, n := range slices.Sorted(slices.Values(nodes)) {
		c.all = append(c.all, strategy.Member{Node: n})
	}
	e := strategy.Members{Epoch: c.epoch, Members: c.all}
	for _, n := range c.names() {
		c.after(c.delay(5*time.Second), func() {
			if c.epoch == e.Epoch {
				c.tell(n, e)
			}
		})
	}
}

func (c *cluster) names() []strategy.Node { return slices.Sorted(maps.Keys(c.nodes)) }

func (c *cluster) chance() bool { return c.faults > 0 && c.rng.Float64() < c.faults }

// delay usually returns a tick.
func (c *cluster) delay(most time.Duration) time.Duration {
	if !c.chance() {
		return tick
	}
	return tick + time.Duration(c.rng.Int64N(int64(most)))
}

func (c *cluster) after(d time.Duration, do func()) {
	c.later = append(c.later, later{c.now.Add(d), do})
}

func (c *cluster) tell(n strategy.Node, e strategy.Event) {
	if c.nodes[n] != nil {
		c.inbox[n] = append(c.inbox[n], e)
	}
}

// tellLater sends an event to a node's current process.
func (c *cluster) tellLater(d time.Duration, n strategy.Node, e strategy.Event) {
	process := c.nodes[n]
	c.after(d, func() {
		if c.nodes[n] == process {
			c.tell(n, e)
		}
	})
}

func (c *cluster) run(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(tick) {
		var due []later
		c.later = slices.DeleteFunc(c.later, func(l later) bool {
			is := !l.at.After(c.now)
			if is {
				due = append(due, l)
			}
			return is
		})
		for _, l := range due {
			l.do()
		}
		for _, n := range c.names() {
			node, in := c.nodes[n], c.inbox[n]
			if at := node.due(); len(in) == 0 && (at.IsZero() || at.After(c.now)) {
				continue
			}
			c.inbox[n] = nil
			asked := slices.Collect(maps.Keys(node.wants))
			for _, a := range node.step(c.now, in) {
				c.carryOut(n, a)
			}
			for _, name := range asked {
				if !node.wants[name] && c.added[name] == 0 {
					c.t.Fatalf("%s is told that %q was added, and it is not in the log", n, name)
				}
			}
		}
	}
}

func (c *cluster) carryOut(n strategy.Node, a strategy.Action) {
	switch a := a.(type) {
	case strategy.Send:
		copies := 1
		if c.chance() {
			copies = 2 * c.rng.IntN(2)
		}
		for range copies {
			if n == a.To || !c.cut[n] && !c.cut[a.To] {
				c.tellLater(c.delay(time.Second), a.To, strategy.Message{From: n, Data: a.Data})
			}
		}
	case strategy.Persist:
		c.append(n, a)
	case strategy.Read:
		c.read(n, a)
	case strategy.Trim:
		c.log = slices.DeleteFunc(c.log, func(e strategy.LogEntry) bool { return e.Number < a.Before })
	}
}

func (c *cluster) append(n strategy.Node, a strategy.Persist) {
	f := fate{tick, 2 * tick}
	switch {
	case c.cut[n]:
		f = fate{-1, time.Hour}
	case c.chance(): // it is lost, its answer is lost, or it is delayed
		f = []fate{{-1, time.Hour}, {tick, time.Hour}, {3 * time.Second, time.Hour}}[c.rng.IntN(3)]
	case c.persist != nil:
		f = c.persist(f)
	}
	e := strategy.Persisted{ID: a.ID, State: strategy.InDoubt}
	if f.written >= 0 {
		c.after(f.written, func() {
			w := strategy.Persisted{ID: a.ID, State: strategy.Stale}
			if a.After == c.last {
				c.last++
				w.State, w.Number = strategy.Durable, c.last
				c.log = append(c.log, strategy.LogEntry{Number: c.last, Data: a.Data})
				c.wrote(n, a.Data)
			}
			if f.told <= persistPatience {
				c.tellLater(f.told-f.written, n, w)
			}
		})
	}
	if f.told > persistPatience {
		c.tellLater(persistPatience, n, e)
	}
}

// wrote checks an entry: terms increase, and each belongs to one node.
func (c *cluster) wrote(n strategy.Node, data []byte) {
	e, err := leader.ParseEntry(data)
	if err != nil {
		c.t.Fatal(err)
	}
	first, begun := c.begun[e.Term]
	if !begun {
		c.begun[e.Term] = e
		first = e
	}
	if first.By != n || e.By != n {
		c.t.Fatalf("%s writes as %s in the term of %s", n, e.By, first.By)
	}
	for term := range c.begun {
		if term > e.Term {
			c.t.Fatalf("an entry of term %d behind one of term %d", e.Term, term)
		}
	}
	names, err := namesIn(e.Changes)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range names {
		if c.added[name]++; c.added[name] > 1 {
			c.t.Fatalf("%q was added twice", name)
		}
	}
}

func (c *cluster) read(n strategy.Node, a strategy.Read) {
	process := c.nodes[n]
	c.after(c.delay(time.Second), func() {
		switch {
		case c.nodes[n] != process:
		case c.cut[n]:
			c.read(n, a)
		default:
			for _, e := range c.log {
				if e.Number > a.After {
					c.tell(n, e)
				}
			}
			c.tell(n, strategy.LogEnd{Last: c.last})
		}
	})
}

// ask makes a node request the addition of more names.
func (c *cluster) ask(names int) {
	for range names {
		by := c.names()[c.asked%len(c.names())]
		c.nodes[by].wants[fmt.Sprintf("name %d", c.asked)] = true
		c.asked++
	}
}

// leaders returns the nodes that consider themselves the leader.
func (c *cluster) leaders() (all []strategy.Node) {
	for _, n := range c.names() {
		if c.nodes[n].elector.Leads() {
			all = append(all, n)
		}
	}
	return all
}

func (c *cluster) leads(want ...strategy.Node) {
	c.t.Helper()
	if got := c.leaders(); !slices.Equal(got, want) {
		c.t.Fatalf("%v lead, not %v", got, want)
	}
}

// settled checks that all requests are answered, and that each name was added once, on all candidates and in the rest
// of the log.
func (c *cluster) settled() {
	c.t.Helper()
	var fresh times
	for _, l := range c.log {
		e, err := leader.ParseEntry(l.Data)
		if err == nil {
			err = e.Load(&fresh)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	has := map[string]*times{"the log": &fresh}
	for _, n := range c.names() {
		if node := c.nodes[n]; len(node.wants) > 0 {
			c.t.Errorf("%s has no answer to %d questions: %v", n, len(node.wants), node.elector)
		} else if node.replica != nil {
			has[string(n)] = &node.replica.times
		}
	}
	for who, times := range has {
		for i := range c.asked {
			if name := fmt.Sprintf("name %d", i); times[partOf(name)][name] != 1 {
				c.t.Fatalf("%s has %q %d times: %v", who, name, times[partOf(name)][name], c)
			}
		}
	}
}

func (c *cluster) String() string {
	var all []string
	for _, n := range c.names() {
		all = append(all, fmt.Sprintf("%s: %v", n, c.nodes[n].elector))
	}
	return strings.Join(append(all, fmt.Sprintf("the log ends with %d", c.last)), "\n")
}
