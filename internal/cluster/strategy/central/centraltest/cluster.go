// Package centraltest simulates clusters with a central strategy in virtual time.
package centraltest

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// A Cluster simulates nodes and a log; messages arrive at once unless Delay is set. Its fields may be changed between
// calls.
type Cluster struct {
	Now    time.Time
	Nodes  map[strategy.Node]*central.Strategy
	Inbox  map[strategy.Node][]strategy.Event
	Log    [][]byte
	Base   int                                              // number of the entry before Log[0]
	Reach  func(n strategy.Node, host string) time.Duration // connection time to a host; 0: it fails
	Queues func(n strategy.Node) []strategy.Queue           // a node's queues; nil: all are empty
	Moves  []Move                                           // requested by HandOver
	Probes []strategy.Probe                                 // requested by nodes
	Delay  func(from, to strategy.Node) time.Duration       // of messages; nil: none
	later  []message
	fresh  func(n strategy.Node) *central.Strategy
	wake   map[strategy.Node]map[uint64]time.Time
}

// A Move is a HandOver action with the node that requested it.
type Move struct {
	strategy.HandOver
	From strategy.Node
}

// A message is a message in transit.
type message struct {
	at   time.Time
	to   strategy.Node
	said strategy.Message
}

// New returns a cluster in which all nodes are members and reach every host in 10 ms.
func New(fresh func(n strategy.Node) *central.Strategy, nodes ...strategy.Node) *Cluster {
	c := &Cluster{Now: time.Unix(1e9, 0), Nodes: map[strategy.Node]*central.Strategy{},
		Inbox: map[strategy.Node][]strategy.Event{}, fresh: fresh, wake: map[strategy.Node]map[uint64]time.Time{},
		Reach: func(strategy.Node, string) time.Duration { return 10 * time.Millisecond }}
	for _, n := range nodes {
		c.Add(n)
	}
	c.Members(1, 1)
	return c
}

// Add adds a node without sending it any events.
func (c *Cluster) Add(n strategy.Node) {
	c.Nodes[n] = c.fresh(n)
	c.wake[n] = map[uint64]time.Time{}
}

// Names returns the nodes, sorted.
func (c *Cluster) Names() []strategy.Node { return slices.Sorted(maps.Keys(c.Nodes)) }

// Members sends all nodes a member list with all of them.
func (c *Cluster) Members(epoch, settled uint64, moves ...strategy.Move) {
	e := strategy.Members{Epoch: epoch, Settled: settled, Moves: moves}
	for _, n := range c.Names() {
		e.Members = append(e.Members, strategy.Member{Node: n})
	}
	for _, n := range c.Names() {
		c.Post(n, e)
	}
}

// Post queues an event for a node's next step.
func (c *Cluster) Post(n strategy.Node, e strategy.Event) { c.Inbox[n] = append(c.Inbox[n], e) }

// RequestOwners sends a node an event that its links need owners for these hosts.
func (c *Cluster) RequestOwners(n strategy.Node, hosts ...string) {
	c.Post(n, strategy.OwnersNeeded{Hosts: hosts})
}

// Settle runs the cluster for a minute.
func (c *Cluster) Settle() { c.Run(time.Minute) }

// Run advances the time by d in steps of 20 ms.
func (c *Cluster) Run(d time.Duration) {
	for end := c.Now.Add(d); c.Now.Before(end); c.Now = c.Now.Add(20 * time.Millisecond) {
		c.deliver()
		for again := true; again; {
			again = false
			for _, n := range c.Names() {
				again = c.Step(n) || again
			}
		}
	}
}

// deliver delivers the messages that are due.
func (c *Cluster) deliver() {
	c.later = slices.DeleteFunc(c.later, func(l message) bool {
		if l.at.After(c.Now) {
			return false
		}
		if c.Nodes[l.to] != nil {
			c.Post(l.to, l.said)
		}
		return true
	})
}

// Step applies a node's queued events, and reports whether there were any.
func (c *Cluster) Step(n strategy.Node) bool {
	in := c.Inbox[n]
	for _, timer := range slices.Sorted(maps.Keys(c.wake[n])) {
		if !c.wake[n][timer].After(c.Now) {
			in = append(in, strategy.Fired{Timer: timer})
			delete(c.wake[n], timer)
		}
	}
	if len(in) == 0 {
		return false
	}
	c.Inbox[n] = nil
	for _, a := range c.Nodes[n].Step(c.Now, in, nil) {
		c.Execute(n, a)
	}
	return true
}

// Execute executes an action of a node.
func (c *Cluster) Execute(n strategy.Node, a strategy.Action) {
	switch a := a.(type) {
	case strategy.Send:
		switch m := (strategy.Message{From: n, Data: a.Data}); {
		case c.Delay != nil && c.Delay(n, a.To) > 0:
			c.later = append(c.later, message{c.Now.Add(c.Delay(n, a.To)), a.To, m})
		case c.Nodes[a.To] != nil:
			c.Post(a.To, m)
		}
	case strategy.Persist:
		last := c.Base + len(c.Log)
		if a.After != uint64(last) {
			c.Post(n, strategy.Persisted{ID: a.ID, State: strategy.Stale})
			return
		}
		c.Log = append(c.Log, a.Data)
		c.Post(n, strategy.Persisted{ID: a.ID, Number: uint64(last + 1)})
	case strategy.Read:
		_ = c.Read(func(number uint64, data []byte) error {
			if number > a.After {
				c.Post(n, strategy.LogEntry{Number: number, Data: data})
			}
			return nil
		})
		c.Post(n, strategy.LogEnd{Last: uint64(c.Base + len(c.Log))})
	case strategy.Trim:
		if drop := int(a.Before) - c.Base - 1; drop > 0 {
			c.Log, c.Base = c.Log[drop:], c.Base+drop
		}
	case strategy.Probe:
		c.Probes = append(c.Probes, a)
		took := c.Reach(n, a.Host)
		c.Post(n, strategy.ProbeResult{Host: a.Host, OK: took > 0 && took <= a.Timeout, Connect: took})
	case strategy.HandOver:
		c.Moves = append(c.Moves, Move{a, n})
	case strategy.Survey:
		c.Post(n, strategy.Surveyed{})
	case strategy.ListQueues:
		var queues []strategy.Queue
		if c.Queues != nil {
			queues = c.Queues(n)
		}
		c.Post(n, strategy.QueueList{Queues: queues})
	case strategy.Timer:
		c.wake[n][a.Timer] = a.At
	}
}

// Owners returns the nodes that consider themselves the owner of a host.
func (c *Cluster) Owners(host string) (owners []strategy.Node) {
	for _, n := range c.Names() {
		if o, s := c.Nodes[n].View().Owner(host); s != strategy.Unknown && o == n {
			owners = append(owners, n)
		}
	}
	return owners
}

// Leader returns the first node that considers itself the leader; "" if none does.
func (c *Cluster) Leader() strategy.Node {
	for _, n := range c.Names() {
		if c.Nodes[n].Status().Leads {
			return n
		}
	}
	return ""
}

// Read calls f with each entry of the log.
func (c *Cluster) Read(f func(number uint64, data []byte) error) error {
	for i, data := range c.Log {
		if err := f(uint64(c.Base+i+1), data); err != nil {
			return err
		}
	}
	return nil
}
