package experiments

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// kumo's rules in their plainest form, as two strategies: nobody fetches a host before it is granted. What a real
// control unit has to do besides, to fail, to be replaced and to lose messages, has no place in this world.

// Kinds of messages besides those of the paper.
const (
	reqWant byte = 'w' // to the control unit: links to this host wait
	reqLong byte = 'l' // to a node: probe this, and wait longer; the node's field says how long
)

// An plainNode asks whose a host is, and probes where it is asked to.
type plainNode struct {
	knownOwners
	self, control strategy.Node
}

func (a *plainNode) Step(_ time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	changed := false
	for _, e := range in {
		switch e := e.(type) {
		case strategy.OwnersNeeded:
			for _, h := range e.Hosts {
				out = append(out, hostRequest{kind: reqWant, host: h}.to(a.control))
			}
		case strategy.Message:
			r := readRequest(e.Data)
			if r.kind == reqOwner {
				a.knownOwners[r.host] = r.node
				changed = true
				continue
			}
			timeout, err := time.ParseDuration(string(r.node))
			if err == nil {
				out = append(out, strategy.Probe{Host: r.host, Timeout: timeout})
			}
		case strategy.ProbeResult:
			kind := reqClaim
			if !e.OK {
				kind = reqFailed
			}
			out = append(out, hostRequest{kind: kind, host: e.Host}.to(a.control))
		}
	}
	if changed {
		out = append(out, strategy.ViewChanged{})
	}
	return out
}

// An plainControl is the control unit: it asks one node after another to probe a host, beginning with the one that
// found it. Nothing in this world tells which of the others is near, so that they are asked in the order of what they
// own, the least first. When all have failed the host is parked, and all are asked again with a longer timeout.
type plainControl struct {
	knownOwners
	nodes    []strategy.Node
	timeout  time.Duration
	open     map[string]*openHost
	hostByID map[uint64]string // what timers and entries of the log are about
	last     uint64
	entries  uint64 // of the log
	owns     map[strategy.Node]int
}

// An openHost is a host without an owner.
type openHost struct {
	waiting  []strategy.Node // who waits for the answer
	untried  []strategy.Node // who has not been asked in this round
	claimant strategy.Node   // who reached it
	timeout  time.Duration
	round    uint
}

func newPlainControl(nodes []strategy.Node, timeout time.Duration) *plainControl {
	return &plainControl{knownOwners{}, nodes, timeout, map[string]*openHost{}, map[uint64]string{}, 0, 0,
		map[strategy.Node]int{}}
}

func (a *plainControl) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	for _, e := range in {
		switch e := e.(type) {
		case strategy.Message:
			out = a.receive(now, e.From, readRequest(e.Data), out)
		case strategy.Persisted:
			out = a.grant(a.hostByID[e.ID], out)
		case strategy.Fired:
			h := a.hostByID[e.Timer]
			a.open[h].untried = slices.Clone(a.nodes)
			out = a.askNext(now, h, out)
		}
	}
	return out
}

func (a *plainControl) receive(now time.Time, from strategy.Node, r hostRequest,
	out []strategy.Action) []strategy.Action {
	if owner := a.knownOwners[r.host]; owner != "" {
		return append(out, hostRequest{reqOwner, r.host, owner}.to(from))
	}
	o := a.open[r.host]
	switch {
	case r.kind == reqWant && o == nil:
		o = &openHost{waiting: []strategy.Node{from}, timeout: a.timeout, untried: slices.Clone(a.nodes)}
		a.open[r.host] = o
		return a.askNode(from, r.host, o, out)
	case r.kind == reqWant:
		o.waiting = append(o.waiting, from)
		return out
	case r.kind == reqFailed:
		return a.askNext(now, r.host, out)
	}
	o.claimant = from
	a.entries++
	return append(out, strategy.Persist{ID: a.newID(r.host), After: a.entries - 1})
}

// newID makes a number for what is to come back about a host.
func (a *plainControl) newID(host string) uint64 {
	a.last++
	a.hostByID[a.last] = host
	return a.last
}

// askNext asks the next node, or parks the host.
func (a *plainControl) askNext(now time.Time, host string, out []strategy.Action) []strategy.Action {
	o := a.open[host]
	if len(o.untried) > 0 {
		least := slices.MinFunc(o.untried, func(m, n strategy.Node) int { return a.owns[m] - a.owns[n] })
		return a.askNode(least, host, o, out)
	}
	wait := 2 * o.timeout << min(o.round, 6)
	o.round++
	o.timeout += o.timeout / 2
	return append(out, strategy.Timer{Timer: a.newID(host), At: now.Add(wait)})
}

func (a *plainControl) askNode(n strategy.Node, host string, o *openHost, out []strategy.Action) []strategy.Action {
	o.untried = slices.DeleteFunc(o.untried, func(l strategy.Node) bool { return l == n })
	return append(out, hostRequest{reqLong, host, strategy.Node(o.timeout.String())}.to(n))
}

// grant gives a host to the node that reached it, and tells all who asked.
func (a *plainControl) grant(host string, out []strategy.Action) []strategy.Action {
	o := a.open[host]
	delete(a.open, host)
	a.knownOwners[host] = o.claimant
	a.owns[o.claimant]++
	r := hostRequest{reqOwner, host, o.claimant}
	out = append(out, r.to(o.claimant))
	for _, n := range o.waiting {
		if n != o.claimant {
			out = append(out, r.to(n))
		}
	}
	return out
}
