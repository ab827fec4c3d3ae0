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
	web     *seenWeb
	set     Setting
	agenda  queue.Agenda[happening]
	now     time.Duration
	pipes   []*pipe
	nodes   []*spiderNode
	parties []*party // of the nodes, and last the control unit's
	index   map[strategy.Node]int
	hosts   map[string]int32
	message time.Duration // that one takes
	persist time.Duration
	fetched []uint8 // how often each file was, up to 255
	sum     tally
	log     [][]byte
	member  membership
	ended   time.Duration // when something was last fetched, or could not be
}

// A tally counts as a run goes.
type tally struct {
	downloads, distinct, links, probes int
	hostRequests                       int
	units                              float64
	connecting, moving, timedOut       time.Duration // of all places
}

// A party is a strategy and what waits to be told to it.
type party struct {
	strategy strategy.Strategy
	events   []strategy.Event
	actions  []strategy.Action
}

// A happening is something that is due.
type happening struct {
	what  uint8
	party int32
	place int32
	host  int32
	event strategy.Event
}

const (
	hTold      uint8 = iota // event is told to party
	hConnected              // place has a connection
	hTimedOut               // place has none
	hLink                   // a link to host comes to a node from another
	hMoved                  // a host comes to a node from the one that place says
)

var errTooLong = errors.New("it does not come to an end")

// longest is later than a sensible run ends.
const longest = 100_000_000 * tick

func newSpiderWorld(d *DSpider, s Setting, web *seenWeb) *spiderWorld {
	net := d.net(s.Place)
	w := &spiderWorld{web: web, set: s, message: ticks(net.Message), persist: ticks(d.Persist),
		fetched: make([]uint8, len(web.size)),
		index:   map[strategy.Node]int{}, hosts: make(map[string]int32, len(web.names))}
	for h, name := range web.names {
		w.hosts[name] = int32(h)
	}
	var names []strategy.Node
	for i := range s.Nodes {
		names = append(names, nodeName(i))
		w.nodes = append(w.nodes, newSpiderNode(i, d.places(s.Loading), d.Turns, len(web.names)))
	}
	w.layPipes(net, s, d.OwnPart)
	w.member = newMembership(names)
	for i, decider := range d.deciders(s, names, controlName) {
		w.parties = append(w.parties, &party{strategy: decider})
		w.index[w.name(i)] = i
		w.tell(i, w.member.event())
	}
	return w
}

func (w *spiderWorld) layPipes(net Net, s Setting, own bool) {
	switch {
	case s.Place == LAN && !own:
		w.pipes = []*pipe{newPipe(net.Bandwidth)}
	case s.Place == LAN:
		net.Bandwidth /= float64(s.Nodes)
		fallthrough
	default:
		for range s.Nodes {
			w.pipes = append(w.pipes, newPipe(net.Bandwidth))
		}
	}
}

func (w *spiderWorld) pipe(node int) *pipe { return w.pipes[node%len(w.pipes)] }

// run lets the nodes begin, and time pass until all is fetched or nobody does anything any more.
func (w *spiderWorld) run(ctx context.Context) error {
	for _, n := range w.nodes {
		for _, h := range w.web.begins[n.id] {
			w.meet(n, h)
		}
		w.decide(n.id)
		w.fetch(n)
	}
	for i := 0; w.sum.distinct < len(w.web.size) && w.next(); i++ {
		if i%65536 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.now > longest {
			return errTooLong
		}
	}
	return nil
}

func (w *spiderWorld) next() bool {
	first, pipe := w.agenda.Next(), -1
	for i, p := range w.pipes {
		if p.ends < first {
			first, pipe = p.ends, i
		}
	}
	if first == forever {
		return false
	}
	w.now = first
	if pipe >= 0 {
		place := int(w.pipes[pipe].finish())
		n := w.nodes[place>>16]
		w.downloaded(n, place&0xffff)
		return true
	}
	w.happen(w.agenda.Take())
	return true
}

func (w *spiderWorld) happen(h happening) {
	switch h.what {
	case hTold:
		w.tell(int(h.party), h.event)
		w.decide(int(h.party))
	case hConnected:
		n := w.nodes[h.party]
		f := &n.places[h.place]
		f.since = w.now
		w.sum.connecting += ticks(float64(w.web.delay[n.id][f.host]))
		w.pipe(n.id).begin(w.now, float64(w.web.size[f.file]), h.party<<16|h.place)
	case hTimedOut:
		w.timedOut(w.nodes[h.party], int(h.place))
	case hLink:
		n := w.nodes[h.party]
		w.meet(n, h.host)
		w.decide(n.id)
		w.fetch(n)
	case hMoved:
		w.moved(w.nodes[h.place], w.nodes[h.party], h.host)
	}
}

func (w *spiderWorld) after(d time.Duration, h happening) { w.agenda.Put(w.now+d, h) }

func (w *spiderWorld) tell(to int, e strategy.Event) {
	w.parties[to].events = append(w.parties[to].events, e)
}

// decide lets a strategy step over what it was told, and does what it wants done.
func (w *spiderWorld) decide(who int) {
	p := w.parties[who]
	for len(p.events) > 0 {
		p.actions = p.strategy.Step(time.Unix(0, int64(w.now)), p.events, p.actions[:0])
		p.events = p.events[:0]
		for _, a := range p.actions {
			w.do(who, a)
		}
	}
}

func (w *spiderWorld) do(who int, a strategy.Action) {
	switch a := a.(type) {
	case strategy.Send:
		w.sum.hostRequests++
		w.after(w.message, happening{what: hTold, party: int32(w.index[a.To]), event: strategy.Message{From: w.name(who),
			Data: a.Data}})
	case strategy.Probe:
		w.probe(who, a)
	case strategy.Persist:
		w.write(who, a)
	case strategy.Read:
		w.read(who, a.After)
	case strategy.Survey:
		w.tell(who, strategy.Surveyed{})
	case strategy.HandOver:
		w.handOver(who, a)
	case strategy.Acknowledged:
		w.booking(a.Epoch)
	case strategy.Timer:
		at := max(0, time.Duration(a.At.UnixNano())-w.now)
		w.after(at, happening{what: hTold, party: int32(who), event: strategy.Fired{Timer: a.Timer}})
	case strategy.ViewChanged:
		if who < len(w.nodes) {
			w.changed(w.nodes[who])
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
	if w.set.Mode == AsPaper {
		n.met[h] = true
		n.enlist(h)
		w.fetch(n)
		return
	}
	w.sum.probes++
	delay := ticks(float64(w.web.delay[n.id][h]))
	ok := delay <= a.Timeout
	n.reached[h] = n.reached[h] || ok
	delay = min(delay, a.Timeout)
	w.after(delay, happening{what: hTold, party: int32(who), event: strategy.ProbeResult{Host: a.Host, OK: ok,
		Connect: delay}})
}
