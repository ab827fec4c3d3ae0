package experiments

import (
	"context"
	"errors"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/sim/queue"
)

// A spiderWorld is one run: nodes that fetch, in virtual time, and do for their strategies what these ask for.
type spiderWorld struct {
	web          *settingWeb
	setting      Setting
	agenda       queue.Agenda[spiderEvent]
	now          time.Duration
	links        []*sharedLink
	nodes        []*spiderNode
	participants []*participant // of the nodes, and last the control unit's
	index        map[strategy.Node]int
	hosts        map[string]int32
	message      time.Duration // that one takes
	persist      time.Duration
	fetched      []uint8 // how often each file was, up to 255
	sum          counters
	log          [][]byte
	member       membership
	lastActivity time.Duration // when something was last fetched, or could not be
}

// A tally counts as a run goes.
type counters struct {
	downloads, distinct, links, probes int
	hostRequests                       int
	units                              float64
	connecting, moving, timedOut       time.Duration // of all places
}

// A party is a strategy and what waits to be told to it.
type participant struct {
	strategy strategy.Strategy
	events   []strategy.Event
	actions  []strategy.Action
}

// A happening is something that is due.
type spiderEvent struct {
	kind  uint8
	party int32
	place int32
	host  int32
	event strategy.Event
}

const (
	hDeliver   uint8 = iota // event is told to party
	hConnected              // place has a connection
	hTimedOut               // place has none
	hLink                   // a link to host comes to a node from another
	hMoved                  // a host comes to a node from the one that place says
)

var errTooLong = errors.New("it does not come to an end")

// maxTime is later than a sensible run ends.
const maxTime = 100_000_000 * tick

func newSpiderWorld(d *DSpider, s Setting, web *settingWeb) *spiderWorld {
	net := d.net(s.Network)
	w := &spiderWorld{web: web, setting: s, message: ticks(net.Message), persist: ticks(d.Persist),
		fetched: make([]uint8, len(web.size)),
		index:   map[strategy.Node]int{}, hosts: make(map[string]int32, len(web.names))}
	for h, name := range web.names {
		w.hosts[name] = int32(h)
	}
	var names []strategy.Node
	for i := range s.Nodes {
		names = append(names, nodeName(i))
		w.nodes = append(w.nodes, newSpiderNode(i, d.places(s.Loading), d.RoundRobin, len(web.names)))
	}
	w.addLinks(net, s, d.FixedShare)
	w.member = newMembership(names)
	for i, decider := range d.deciders(s, names, controlName) {
		w.participants = append(w.participants, &participant{strategy: decider})
		w.index[w.name(i)] = i
		w.deliver(i, w.member.event())
	}
	return w
}

func (w *spiderWorld) addLinks(net Net, s Setting, own bool) {
	switch {
	case s.Network == LAN && !own:
		w.links = []*sharedLink{newSharedLink(net.Bandwidth)}
	case s.Network == LAN:
		net.Bandwidth /= float64(s.Nodes)
		fallthrough
	default:
		for range s.Nodes {
			w.links = append(w.links, newSharedLink(net.Bandwidth))
		}
	}
}

func (w *spiderWorld) linkOf(node int) *sharedLink { return w.links[node%len(w.links)] }

// run lets the nodes begin, and time pass until all is fetched or nobody does anything any more.
func (w *spiderWorld) run(ctx context.Context) error {
	for _, n := range w.nodes {
		for _, h := range w.web.startHosts[n.id] {
			w.addHost(n, h)
		}
		w.step(n.id)
		w.fetch(n)
	}
	for i := 0; w.sum.distinct < len(w.web.size) && w.next(); i++ {
		if i%65536 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.now > maxTime {
			return errTooLong
		}
	}
	return nil
}

func (w *spiderWorld) next() bool {
	first, pipe := w.agenda.Next(), -1
	for i, p := range w.links {
		if p.nextEnd < first {
			first, pipe = p.nextEnd, i
		}
	}
	if first == forever {
		return false
	}
	w.now = first
	if pipe >= 0 {
		place := int(w.links[pipe].finish())
		n := w.nodes[place>>16]
		w.downloaded(n, place&0xffff)
		return true
	}
	w.handle(w.agenda.Take())
	return true
}

func (w *spiderWorld) handle(h spiderEvent) {
	switch h.kind {
	case hDeliver:
		w.deliver(int(h.party), h.event)
		w.step(int(h.party))
	case hConnected:
		n := w.nodes[h.party]
		f := &n.places[h.place]
		f.transferStart = w.now
		w.sum.connecting += ticks(float64(w.web.delay[n.id][f.host]))
		w.linkOf(n.id).begin(w.now, float64(w.web.size[f.file]), h.party<<16|h.place)
	case hTimedOut:
		w.timedOut(w.nodes[h.party], int(h.place))
	case hLink:
		n := w.nodes[h.party]
		w.addHost(n, h.host)
		w.step(n.id)
		w.fetch(n)
	case hMoved:
		w.moved(w.nodes[h.place], w.nodes[h.party], h.host)
	}
}

func (w *spiderWorld) after(d time.Duration, h spiderEvent) { w.agenda.Put(w.now+d, h) }

func (w *spiderWorld) deliver(to int, e strategy.Event) {
	w.participants[to].events = append(w.participants[to].events, e)
}

// step lets a strategy step over what it was told, and does what it wants done.
func (w *spiderWorld) step(who int) {
	p := w.participants[who]
	for len(p.events) > 0 {
		p.actions = p.strategy.Step(time.Unix(0, int64(w.now)), p.events, p.actions[:0])
		p.events = p.events[:0]
		for _, a := range p.actions {
			w.execute(who, a)
		}
	}
}

func (w *spiderWorld) execute(who int, a strategy.Action) {
	switch a := a.(type) {
	case strategy.Send:
		w.sum.hostRequests++
		w.after(w.message, spiderEvent{kind: hDeliver, party: int32(w.index[a.To]), event: strategy.Message{From: w.name(who),
			Data: a.Data}})
	case strategy.Probe:
		w.probe(who, a)
	case strategy.Persist:
		w.write(who, a)
	case strategy.Read:
		w.read(who, a.After)
	case strategy.Survey:
		w.deliver(who, strategy.Surveyed{})
	case strategy.HandOver:
		w.handOver(who, a)
	case strategy.Acknowledged:
		w.acknowledge(a.Epoch)
	case strategy.Timer:
		at := max(0, time.Duration(a.At.UnixNano())-w.now)
		w.after(at, spiderEvent{kind: hDeliver, party: int32(who), event: strategy.Fired{Timer: a.Timer}})
	case strategy.ViewChanged:
		if who < len(w.nodes) {
			w.retryWaiting(w.nodes[who])
		}
	}
}

func (w *spiderWorld) name(who int) strategy.Node {
	if who == len(w.nodes) {
		return controlName
	}
	return w.member.members[who].Node
}

// probe opens a connection and closes it, beside what the node fetches. In the paper's mode a node learns whether it
// reaches a host by fetching, when the host's turn has come.
func (w *spiderWorld) probe(who int, a strategy.Probe) {
	n, h := w.nodes[who], w.hosts[a.Host]
	if w.setting.Mode == AsPaper {
		n.known[h] = true
		n.enqueue(h)
		w.fetch(n)
		return
	}
	w.sum.probes++
	delay := ticks(float64(w.web.delay[n.id][h]))
	ok := delay <= a.Timeout
	n.reached[h] = n.reached[h] || ok
	delay = min(delay, a.Timeout)
	w.after(delay, spiderEvent{kind: hDeliver, party: int32(who), event: strategy.ProbeResult{Host: a.Host, OK: ok,
		Connect: delay}})
}
