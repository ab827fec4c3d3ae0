package mesh

import (
	"slices"

	"kumo/internal/cluster/strategy"
)

// A disclosure decides which nodes may learn that URLs are done, after too few nodes were known.
//
// While fewer nodes are known than a host has backups, claimed links are on few disks. Nodes that join then first
// receive the open URLs, and only then the done ones. Otherwise they would not fetch a page again whose links are on
// these disks alone, and the links would be lost with the disks.
//
// Invariant: a node that was absent while there were too few nodes learns that URLs are done only after the backups of
// all hosts have the URLs that were open then.
type disclosure struct {
	core      *core
	place     *place
	lookups   finder
	transfers sender
	hosts     *openHosts
	disclosed func() // called when all nodes may learn everything

	tooFew   bool                   // fewer nodes were known than a host has backups
	informed []strategy.Node        // the other nodes known then, which have received everything
	hidden   map[string]*hiddenHost // hosts whose open URLs other nodes do not have; nil: no other node has joined
	round    disclosureRound
}

// A hiddenHost is a host whose open URLs other nodes do not have.
type hiddenHost struct {
	has   []strategy.Node // nodes that have them by now
	done  bool            // all backups that were known then have them
	again bool            // a node has not answered, or is no backup: look the backups up again
}

// A disclosureRound sends the open URLs of the hidden hosts.
type disclosureRound struct {
	queue   []string
	sending int
	failed  bool
	resting bool
}

// maxDisclosing is the number of hosts whose open URLs are sent at once.
const maxDisclosing = 256

// mayLearn reports whether a node may learn that URLs are done.
func (d *disclosure) mayLearn(n strategy.Node) bool {
	return !d.tooFew || n == d.core.self || slices.Contains(d.informed, n)
}

// mustKeep reports whether a finder must keep links that are done. While no other node has joined, none must: a leaving
// node is no longer among the known ones.
func (d *disclosure) mustKeep(finder strategy.Node) bool {
	return d.hidden != nil && !d.mayLearn(finder)
}

// pending reports whether other nodes have joined that may not learn everything yet.
func (d *disclosure) pending() bool { return d.hidden != nil }

// update records the known nodes.
func (d *disclosure) update() {
	others := d.place.overlay.Neighbors()
	if !d.tooFew {
		d.reset(others)
		return
	}
	d.informed = slices.DeleteFunc(d.informed, func(n strategy.Node) bool { return !slices.Contains(others, n) })
	if d.hidden != nil || len(d.informed) >= len(others) {
		return
	}
	names := d.hosts.names()
	d.hidden = make(map[string]*hiddenHost, len(names))
	for _, host := range names {
		d.hidden[host] = &hiddenHost{}
	}
	d.send()
}

// reset allows all known nodes to learn everything.
func (d *disclosure) reset(known []strategy.Node) {
	if d.tooFew = len(known)+1 < d.place.backups; d.tooFew {
		d.informed = slices.Clone(known)
	}
}

// gone records that a node no longer answers: it learns nothing until it is back.
func (d *disclosure) gone(n strategy.Node) {
	is := func(o strategy.Node) bool { return o == n }
	d.informed = slices.DeleteFunc(d.informed, is)
	for _, h := range d.hidden {
		h.has = slices.DeleteFunc(h.has, is)
	}
}

// addOpen records that a node has sent URLs of a host that other nodes may not have.
func (d *disclosure) addOpen(host string, from strategy.Node) {
	if d.hidden != nil && d.mayLearn(from) {
		d.hidden[host] = &hiddenHost{}
	}
}

// send sends the open URLs of the hidden hosts, in rounds, until all backups have them.
func (d *disclosure) send() {
	r := &d.round
	if d.hidden == nil || r.resting {
		return
	}
	if len(r.queue) == 0 && r.sending == 0 {
		if r.queue = d.incomplete(); len(r.queue) == 0 || len(d.informed) >= len(d.place.overlay.Neighbors()) {
			d.end()
			return
		}
		if r.failed {
			r.failed, r.resting = false, true
			d.core.after(pause, func() {
				r.resting = false
				d.send()
			})
			return
		}
	}
	for len(r.queue) > 0 && r.sending < maxDisclosing {
		host := r.queue[0]
		r.queue = r.queue[1:]
		if h := d.hidden[host]; h != nil {
			r.sending++
			d.sendHost(host, h, func(done bool) {
				r.sending--
				r.failed = r.failed || !done
				d.send()
			})
		}
	}
}

// incomplete returns the hosts whose backups lack open URLs.
func (d *disclosure) incomplete() (hosts []string) {
	for _, host := range sortedKeys(d.hidden) {
		h := d.hidden[host]
		nodes, exact := d.place.nearBackups(host)
		switch {
		case d.hosts.openURLs(host) == 0:
			delete(d.hidden, host)
		case !h.done || exact && len(d.lacking(h, nodes)) > 0:
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// lacking returns the nodes that may lack open URLs of a host.
func (d *disclosure) lacking(h *hiddenHost, nodes []strategy.Node) []strategy.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool {
		return d.mayLearn(n) || slices.Contains(h.has, n)
	})
}

// sendHost sends the open URLs of a host to its backups.
func (d *disclosure) sendHost(host string, h *hiddenHost, over func(done bool)) {
	d.lookups.find(d.place.backupID(host), h.again, func(nodes []strategy.Node) {
		lacking := d.lacking(h, nodes)
		d.transfers.sendOpen(host, lacking, func(stored []strategy.Node) {
			h.has = append(h.has, stored...)
			h.done = len(nodes) > 0 && len(stored) == len(lacking)
			h.again = !h.done
			over(h.done)
		})
	})
}

// end allows all known nodes to learn everything.
func (d *disclosure) end() {
	d.informed, d.hidden, d.round = nil, nil, disclosureRound{}
	d.reset(d.place.overlay.Neighbors())
	d.disclosed()
}

// redact returns the states that a node may learn. For done URLs it returns withheld, so the node must ask again.
func (d *disclosure) redact(to strategy.Node, states []State) []State {
	if d.mayLearn(to) || !slices.Contains(states, Done) {
		return states
	}
	states = slices.Clone(states)
	for i, s := range states {
		if s == Done {
			states[i] = withheld
		}
	}
	return states
}
