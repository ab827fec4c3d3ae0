package member

import (
	"slices"
	"strings"
)

// maxUnrouted is how many hosts are kept from one call of Wanted to the next.
const maxUnrouted = 10_000

// Unrouted are the hosts, each once, of links that found no owner since the last call, or were refused: those of which
// somebody is to find out whose they are. There are 10,000 at most; links to more hosts go first when they are routed
// anew. What rests when it is called for the first time is found when that is routed anew. links
// are how many wait for each, without those that are Idle; 1 where none does, as somebody else has some.
func (o *Outbox) Unrouted() (hosts []string, links []int) {
	if !o.unrouted.enabled {
		o.unrouted.enable(o.deferred)
	}
	hosts = o.unrouted.take()
	for _, host := range hosts {
		n, rests := o.unrouted.deferred[host]
		if !rests {
			n.links = 1
		}
		links = append(links, n.links-n.filtered)
	}
	return hosts, links
}

// Deferred is how many links to a host rest, from the first call of Wanted on.
func (o *Outbox) Deferred(host string) int { return o.unrouted.deferred[host].links }

// SetFiltered notes that there is nothing to fetch at a link, which was just put: a rule leaves it out.
func (o *Outbox) SetFiltered(number uint64) {
	if k := o.links[number]; k != nil {
		k.filtered = true
	}
}

// AddUnrouted has Wanted name a host. It is for hosts that another node takes for this one's, which does not know that they
// are.
func (o *Outbox) AddUnrouted(host string) { o.unrouted.addHosts([]*link{{host: host}}) }

// RetryDeferred lets links that rest be routed at once: those to some hosts, or, with nil, at the next Batches, all whose hosts
// have other owners by then than who refused them. It goes through all that rest, so that it is better called for many
// hosts than often.
func (o *Outbox) RetryDeferred(hosts []string) {
	if hosts == nil {
		o.retryAll = true
		return
	}
	known := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		known[host] = true
	}
	o.retry(func(k *link) bool { return known[k.host] })
}

func (o *Outbox) retry(wakes func(*link) bool) {
	for i := range o.deferred {
		r := &o.deferred[i]
		r.links = slices.DeleteFunc(r.links, func(k *link) bool {
			if !wakes(k) {
				return false
			}
			k.tries = 0
			o.unrouted.remove(k)
			o.fresh = append(o.fresh, k)
			return true
		})
	}
	o.deferred = slices.DeleteFunc(o.deferred, func(r deferredLinks) bool { return len(r.links) == 0 })
}

// unrouted are hosts whose owners are to be found out. Before anybody asks for them, none are kept.
type unrouted struct {
	enabled  bool
	has      map[string]bool
	hosts    []string                 // the same, in the order in which they were met
	deferred map[string]deferredCount // by host
}

// A deferredCount is how many links to one host rest, and how many of these are idle.
type deferredCount struct{ links, filtered int }

func (r deferredCount) add(k *link, by int) deferredCount {
	if r.links += by; k.filtered {
		r.filtered += by
	}
	return r
}

// enable begins to keep them.
func (w *unrouted) enable(resting []deferredLinks) {
	w.enabled, w.has, w.deferred = true, map[string]bool{}, map[string]deferredCount{}
	for _, r := range resting {
		w.add(r.links)
	}
}

// add notes that links rest, and woke that one does not any more.
func (w *unrouted) add(links []*link) {
	for _, k := range links {
		if n, known := w.deferred[k.host]; known {
			w.deferred[k.host] = n.add(k, 1)
		} else {
			w.deferred[strings.Clone(k.host)] = n.add(k, 1) // which is part of the link's data
		}
	}
}

func (w *unrouted) remove(k *link) {
	if n := w.deferred[k.host]; n.links > 1 {
		w.deferred[k.host] = n.add(k, -1)
	} else {
		delete(w.deferred, k.host)
	}
}

func (w *unrouted) take() (hosts []string) {
	hosts, w.hosts = w.hosts, nil
	clear(w.has)
	return hosts
}

// addHosts adds the hosts of links that are about to rest. Where there is no room for all of them, the others' links come
// to be the first.
func (w *unrouted) addHosts(links []*link) {
	if !w.enabled {
		return
	}
	last := ""
	for i, k := range links {
		if k.host == last || w.has[k.host] {
			continue
		}
		if len(w.hosts) == maxUnrouted {
			copy(links, slices.Concat(links[i:], links[:i]))
			return
		}
		last = strings.Clone(k.host) // which is part of the link's data
		w.has[last] = true
		w.hosts = append(w.hosts, last)
	}
}
