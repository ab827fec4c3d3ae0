package experiments

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// This file has kumo's rules in their simplest form, as two strategies: a node fetches a host only after the control
// unit has granted it. Failures and replacement of the control unit, and lost messages, are not simulated.

// Kinds of messages beyond the paper's.
const (
	reqWant byte = 'w' // to the control unit: this node has links to the host
	reqLong byte = 'l' // to a node: probe the host with the timeout in the node field
)

// A plainNode asks the control unit for owners, and probes hosts on request.
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

// A plainControl is the control unit. It asks one node after another to probe a host: first the node that found it,
// then, as it does not know which are near, those that own the fewest hosts. When all have failed, it parks the host
// and retries with a longer timeout.
type plainControl struct {
	knownOwners
	nodes    []strategy.Node
	timeout  time.Duration
	open     map[string]*openHost
	hostByID map[uint64]string // host of each timer and log entry
	last     uint64
	entries  uint64 // entries of the log
	owns     map[strategy.Node]int
}

// An openHost is a host without an owner.
type openHost struct {
	waiting  []strategy.Node // nodes that wait for the owner
	untried  []strategy.Node // nodes not asked in this round
	claimant strategy.Node   // node that reached it
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
			out = a.probeNext(now, h, out)
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
		return a.probeNode(from, r.host, o, out)
	case r.kind == reqWant:
		o.waiting = append(o.waiting, from)
		return out
	case r.kind == reqFailed:
		return a.probeNext(now, r.host, out)
	}
	o.claimant = from
	a.entries++
	return append(out, strategy.Persist{ID: a.newID(r.host), After: a.entries - 1})
}

// newID returns an identifier for a timer or log entry of a host.
func (a *plainControl) newID(host string) uint64 {
	a.last++
	a.hostByID[a.last] = host
	return a.last
}

// probeNext asks the next node, or parks the host.
func (a *plainControl) probeNext(now time.Time, host string, out []strategy.Action) []strategy.Action {
	o := a.open[host]
	if len(o.untried) > 0 {
		least := slices.MinFunc(o.untried, func(m, n strategy.Node) int { return a.owns[m] - a.owns[n] })
		return a.probeNode(least, host, o, out)
	}
	wait := 2 * o.timeout << min(o.round, 6)
	o.round++
	o.timeout += o.timeout / 2
	return append(out, strategy.Timer{Timer: a.newID(host), At: now.Add(wait)})
}

func (a *plainControl) probeNode(n strategy.Node, host string, o *openHost, out []strategy.Action) []strategy.Action {
	o.untried = slices.DeleteFunc(o.untried, func(l strategy.Node) bool { return l == n })
	return append(out, hostRequest{reqLong, host, strategy.Node(o.timeout.String())}.to(n))
}

// grant gives a host to the node that reached it, and informs the nodes that wait for the owner.
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
