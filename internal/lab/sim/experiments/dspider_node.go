package experiments

import (
	"time"

	"kumo/internal/cluster/strategy"
)

// A spiderNode is what fetches at one node: its hosts in the order in which their turn comes, and its places.
type spiderNode struct {
	id      int
	list    hostList
	turns   bool
	known   []bool  // hosts that it knows the names of
	listed  []bool  // hosts that are in the list, or were until all was fetched
	reached []bool  // hosts that it had a connection to
	taken   []int32 // that it took of each host
	waiting []int32 // hosts that nobody is known to own
	places  []fetchSlot
	idle    []int
}

// fetchSlot is what a place is at.
type fetchSlot struct {
	host, file    int32
	transferStart time.Duration // that the file comes
}

func newSpiderNode(id, places int, turns bool, hosts int) *spiderNode {
	n := &spiderNode{id: id, turns: turns, known: make([]bool, hosts), listed: make([]bool, hosts),
		reached: make([]bool, hosts),
		taken:   make([]int32, hosts), places: make([]fetchSlot, places)}
	for i := range places {
		n.idle = append(n.idle, places-1-i)
	}
	return n
}

// A hostList is a queue that hosts can also be put in front of which came from it.
type hostList struct {
	hosts []int32
	head  int
}

func (l *hostList) push(h int32) { l.hosts = append(l.hosts, h) }
func (l *hostList) empty() bool  { return l.head == len(l.hosts) }

func (l *hostList) pop() int32 {
	l.head++
	return l.hosts[l.head-1]
}

func (l *hostList) unpop(h int32) {
	l.head--
	l.hosts[l.head] = h
}

func (w *spiderWorld) addHost(n *spiderNode, h int32) {
	if n.known[h] {
		return
	}
	n.known[h] = true
	if !w.route(n, h) {
		n.waiting = append(n.waiting, h)
		w.deliver(n.id, strategy.OwnersNeeded{Hosts: []string{w.web.names[h]}})
	}
}

// enqueue puts a host in turn, unless it is: what comes to a node that has it is a stray copy.
func (n *spiderNode) enqueue(h int32) {
	if !n.listed[h] {
		n.listed[h] = true
		n.list.push(h)
	}
}

// route gives a host to its owner, if it is known who that is.
func (w *spiderWorld) route(n *spiderNode, h int32) bool {
	owner, state := w.participants[n.id].strategy.View().Owner(w.web.names[h])
	to := w.index[owner]
	if state == strategy.Unknown || state == strategy.Parked && to == n.id {
		return false
	}
	if to == n.id {
		n.enqueue(h)
	} else if w.setting.Mode == AsKumo {
		w.sum.links++
		w.after(w.message, spiderEvent{kind: hLink, party: int32(to), host: h})
	}
	return true
}

func (w *spiderWorld) retryWaiting(n *spiderNode) {
	if w.setting.Mode == AsPaper { // what it may take it was told to probe
		n.waiting = n.waiting[:0]
		return
	}
	kept := n.waiting[:0]
	for _, h := range n.waiting {
		if !w.route(n, h) {
			kept = append(kept, h)
		}
	}
	n.waiting = kept
	w.fetch(n)
}

func (w *spiderWorld) fetch(n *spiderNode) {
	for len(n.idle) > 0 {
		f, ok := w.nextFile(n)
		if !ok {
			return
		}
		place := n.idle[len(n.idle)-1]
		n.idle = n.idle[:len(n.idle)-1]
		n.places[place] = f
		w.connect(n, place)
	}
}

// nextFile takes the next file of the host whose turn it is. What a host has besides its first file that one tells.
func (w *spiderWorld) nextFile(n *spiderNode) (f fetchSlot, ok bool) {
	for !n.list.empty() {
		h := n.list.pop()
		if !w.mine(n, h) {
			w.release(n, h)
			continue
		}
		f = fetchSlot{host: h, file: w.web.first[h] + n.taken[h]}
		n.taken[h]++
		if n.taken[h] > 1 {
			w.requeue(n, h)
		}
		return f, true
	}
	return f, false
}

// release has a host that is not the node's any more wait to be handed over. In the paper's mode what is left of it is
// dropped.
func (w *spiderWorld) release(n *spiderNode, h int32) {
	n.listed[h] = false
	if w.setting.Mode == AsKumo {
		n.waiting = append(n.waiting, h)
		w.deliver(n.id, strategy.Held{Hosts: []string{w.web.names[h]}})
	}
}

func (w *spiderWorld) mine(n *spiderNode, h int32) bool {
	owner, state := w.participants[n.id].strategy.View().Owner(w.web.names[h])
	return state == strategy.Owned && w.index[owner] == n.id
}

// again has a host that has more files stay in turn.
func (w *spiderWorld) requeue(n *spiderNode, h int32) {
	switch {
	case w.web.first[h]+n.taken[h] == w.web.first[h+1]:
	case n.turns:
		n.list.push(h)
	default:
		n.list.unpop(h)
	}
}

func (w *spiderWorld) connect(n *spiderNode, place int) {
	h := n.places[place].host
	delay, limit := ticks(float64(w.web.delay[n.id][h])), ticks(w.setting.Timeout)
	next := spiderEvent{kind: hConnected, party: int32(n.id), place: int32(place)}
	if delay > limit && !n.reached[h] && w.setting.Mode == AsPaper {
		delay, next.kind = limit, hTimedOut
	}
	w.after(delay, next)
}

func (w *spiderWorld) downloaded(n *spiderNode, place int) {
	f := n.places[place]
	w.lastActivity = w.now
	w.sum.downloads++
	w.sum.moving += w.now - f.transferStart
	w.sum.units += float64(w.web.size[f.file])
	if w.fetched[f.file] == 0 {
		w.sum.distinct++
	}
	w.fetched[f.file] = min(w.fetched[f.file], 254) + 1
	if f.file == w.web.first[f.host] {
		w.requeue(n, f.host)
	}
	if !n.reached[f.host] {
		n.reached[f.host] = true
		w.deliver(n.id, strategy.ProbeResult{Host: w.web.names[f.host], OK: true,
			Connect: ticks(float64(w.web.delay[n.id][f.host]))})
	}
	if to := w.web.link[f.file]; to >= 0 {
		w.addHost(n, to)
	}
	w.free(n, place)
}

func (w *spiderWorld) timedOut(n *spiderNode, place int) {
	limit := ticks(w.setting.Timeout)
	w.sum.timedOut += limit
	w.lastActivity = w.now
	w.deliver(n.id, strategy.ProbeResult{Host: w.web.names[n.places[place].host], Connect: limit})
	w.free(n, place)
}

func (w *spiderWorld) free(n *spiderNode, place int) {
	n.idle = append(n.idle, place)
	w.step(n.id)
	w.fetch(n)
}
