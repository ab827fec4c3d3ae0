package member

import (
	"slices"
	"strings"
)

// maxUnrouted bounds the hosts that are collected between two calls of Unrouted.
const maxUnrouted = 10_000

// Unrouted returns the hosts of links that had no owner, or were refused, since the last call, so that the caller can
// find their owners. links are the numbers of deferred links to each host, without filtered ones; 1 if there are none,
// as another node has some.
//
// It returns at most 10,000 hosts, each once. Links to further hosts are the first to be routed again. Links that were
// deferred before the first call are found when they are routed again.
func (o *Outbox) Unrouted() (hosts []string, links []int) {
	if !o.unrouted.enabled {
		o.unrouted.enable(o.deferred)
	}
	hosts = o.unrouted.removeAll()
	for _, host := range hosts {
		n, rests := o.unrouted.deferred[host]
		if !rests {
			n.links = 1
		}
		links = append(links, n.links-n.filtered)
	}
	return hosts, links
}

// Deferred returns the number of deferred links to a host. It is counted from the first call of Unrouted on.
func (o *Outbox) Deferred(host string) int { return o.unrouted.deferred[host].links }

// SetFiltered records that a rule excludes the URL of a link that was just put.
func (o *Outbox) SetFiltered(number uint64) {
	if k := o.links[number]; k != nil {
		k.filtered = true
	}
}

// AddUnrouted has Unrouted return a host that another node takes for this node's, while this node does not know its
// owner.
func (o *Outbox) AddUnrouted(host string) { o.unrouted.addHosts([]*link{{host: host}}) }

// RetryDeferred has deferred links routed at once: those to the given hosts, or, if hosts is nil, at the next Batches,
// all whose owner is no longer the node that refused them. It visits all deferred links, so one call for many hosts is
// better than many calls.
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

// unrouted collects hosts whose owners are unknown, once it is enabled.
type unrouted struct {
	enabled  bool
	has      map[string]bool
	hosts    []string                 // the same hosts, in the order in which they were added
	deferred map[string]deferredCount // by host
}

// A deferredCount counts the deferred links to one host, and those of them that are filtered.
type deferredCount struct{ links, filtered int }

func (r deferredCount) add(k *link, by int) deferredCount {
	if r.links += by; k.filtered {
		r.filtered += by
	}
	return r
}

// enable starts to collect hosts and counts the links that are deferred already.
func (w *unrouted) enable(resting []deferredLinks) {
	w.enabled, w.has, w.deferred = true, map[string]bool{}, map[string]deferredCount{}
	for _, r := range resting {
		w.add(r.links)
	}
}

// add counts deferred links, and remove a link that is no longer deferred.
func (w *unrouted) add(links []*link) {
	for _, k := range links {
		if n, known := w.deferred[k.host]; known {
			w.deferred[k.host] = n.add(k, 1)
		} else {
			w.deferred[strings.Clone(k.host)] = n.add(k, 1) // the host is a substring of the link's data
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

func (w *unrouted) removeAll() (hosts []string) {
	hosts, w.hosts = w.hosts, nil
	clear(w.has)
	return hosts
}

// addHosts adds the hosts of links that are about to be deferred. If there is no room for all, it moves the remaining
// links to the front.
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
		last = strings.Clone(k.host) // the host is a substring of the link's data
		w.has[last] = true
		w.hosts = append(w.hosts, last)
	}
}
