package member

import (
	"slices"
	"strings"
)

// maxWanted is how many hosts are kept from one call of Wanted to the next.
const maxWanted = 10_000

// Wanted are the hosts, each once, of links that found no owner since the last call, or were refused: those of which
// somebody is to find out whose they are. There are 10,000 at most; links to more hosts go first when they are routed
// anew. What rests when it is called for the first time is found when that is routed anew.
func (o *Outbox) Wanted() []string { return o.wanted.take() }

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
	hosts []string // the same, in the order in which they were met
}

func (w *wanted) take() (hosts []string) {
	if !w.asked {
		w.asked, w.has = true, map[string]bool{}
	}
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
