package member

import (
	"slices"
	"strings"
)

// maxWanted is how many hosts are kept from one call of Wanted to the next.
const maxWanted = 10_000

// Wanted are the hosts, each once, of links that found no owner since the last call, or were refused: those of which
// somebody is to find out whose they are. There are 10,000 at most; links to more hosts go first when they are routed
// anew. What rests when it is called for the first time is found when that is routed anew. links
// are how many wait for each, without those that are Idle; 1 where none does, as somebody else has some.
func (o *Outbox) Wanted() (hosts []string, links []int) {
	if !o.wanted.asked {
		o.wanted.ask(o.resting)
	}
	hosts = o.wanted.take()
	for _, host := range hosts {
		n, rests := o.wanted.rest[host]
		if !rests {
			n.links = 1
		}
		links = append(links, n.links-n.idle)
	}
	return hosts, links
}

// Waiting is how many links to a host rest, from the first call of Wanted on.
func (o *Outbox) Waiting(host string) int { return o.wanted.rest[host].links }

// Idle notes that there is nothing to fetch at a link, which was just put: a rule leaves it out.
func (o *Outbox) Idle(number uint64) {
	if k := o.links[number]; k != nil {
		k.idle = true
	}
}

// Want has Wanted name a host. It is for hosts that another node takes for this one's, which does not know that they
// are.
func (o *Outbox) Want(host string) { o.wanted.note([]*link{{host: host}}) }

// Wake lets links that rest be routed at once: those to some hosts, or, with nil, at the next Batches, all whose hosts
// have other owners by then than who refused them. It goes through all that rest, so that it is better called for many
// hosts than often.
func (o *Outbox) Wake(hosts []string) {
	if hosts == nil {
		o.woken = true
		return
	}
	known := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		known[host] = true
	}
	o.wake(func(k *link) bool { return known[k.host] })
}

func (o *Outbox) wake(wakes func(*link) bool) {
	for i := range o.resting {
		r := &o.resting[i]
		r.links = slices.DeleteFunc(r.links, func(k *link) bool {
			if !wakes(k) {
				return false
			}
			k.tries = 0
			o.wanted.woke(k)
			o.fresh = append(o.fresh, k)
			return true
		})
	}
	o.resting = slices.DeleteFunc(o.resting, func(r rest) bool { return len(r.links) == 0 })
}

// wanted are hosts whose owners are to be found out. Before anybody asks for them, none are kept.
type wanted struct {
	asked bool
	has   map[string]bool
	hosts []string             // the same, in the order in which they were met
	rest  map[string]restCount // by host
}

// A restCount is how many links to one host rest, and how many of these are idle.
type restCount struct{ links, idle int }

func (r restCount) add(k *link, by int) restCount {
	if r.links += by; k.idle {
		r.idle += by
	}
	return r
}

// ask begins to keep them.
func (w *wanted) ask(resting []rest) {
	w.asked, w.has, w.rest = true, map[string]bool{}, map[string]restCount{}
	for _, r := range resting {
		w.count(r.links)
	}
}

// count notes that links rest, and woke that one does not any more.
func (w *wanted) count(links []*link) {
	for _, k := range links {
		if n, known := w.rest[k.host]; known {
			w.rest[k.host] = n.add(k, 1)
		} else {
			w.rest[strings.Clone(k.host)] = n.add(k, 1) // which is part of the link's data
		}
	}
}

func (w *wanted) woke(k *link) {
	if n := w.rest[k.host]; n.links > 1 {
		w.rest[k.host] = n.add(k, -1)
	} else {
		delete(w.rest, k.host)
	}
}

func (w *wanted) take() (hosts []string) {
	hosts, w.hosts = w.hosts, nil
	clear(w.has)
	return hosts
}

// note adds the hosts of links that are about to rest. Where there is no room for all of them, the others' links come
// to be the first.
func (w *wanted) note(links []*link) {
	if !w.asked {
		return
	}
	last := ""
	for i, k := range links {
		if k.host == last || w.has[k.host] {
			continue
		}
		if len(w.hosts) == maxWanted {
			copy(links, slices.Concat(links[i:], links[:i]))
			return
		}
		last = strings.Clone(k.host) // which is part of the link's data
		w.has[last] = true
		w.hosts = append(w.hosts, last)
	}
}
