package fetch

import "net/netip"

// An idle connection is in up to three lists at a time. Each list is ordered by idle time, longest first.
const (
	ofAll = iota
	ofDomain
	ofAddr
	idleLists
)

// maxIdlePer limits the idle connections per registered domain and per server address. Otherwise the generated
// subdomains of one domain could occupy the pool.
const maxIdlePer = 256

type idleList struct {
	kind           int
	oldest, newest *conn
	n              int
}

// neighbours are the adjacent connections in one list.
type neighbours struct{ prev, next *conn }

func (l *idleList) push(c *conn) {
	at := &c.links[l.kind]
	*at = neighbours{prev: l.newest}
	if l.newest != nil {
		l.newest.links[l.kind].next = c
	} else {
		l.oldest = c
	}
	l.newest = c
	l.n++
}

func (l *idleList) remove(c *conn) {
	at := &c.links[l.kind]
	if at.prev != nil {
		at.prev.links[l.kind].next = at.next
	} else {
		l.oldest = at.next
	}
	if at.next != nil {
		at.next.links[l.kind].prev = at.prev
	} else {
		l.newest = at.prev
	}
	*at = neighbours{}
	l.n--
}

// idleGroups are the idle connections by registered domain or by server address.
type idleGroups[K comparable] struct {
	kind  int
	lists map[K]*idleList
	spare *idleList // an empty list to reuse, so that the only connection of a host costs no allocation
}

func newIdleGroups[K comparable](which int) idleGroups[K] {
	return idleGroups[K]{kind: which, lists: make(map[K]*idleList)}
}

func (cs *idleGroups[K]) add(k K, c *conn) *idleList {
	l := cs.lists[k]
	if l == nil {
		if l = cs.spare; l == nil {
			l = &idleList{kind: cs.kind}
		}
		cs.spare = nil
		cs.lists[k] = l
	}
	l.push(c)
	return l
}

func (cs *idleGroups[K]) remove(k K, c *conn) {
	l := cs.lists[k]
	if l.remove(c); l.n == 0 {
		delete(cs.lists, k)
		cs.spare = l
	}
}

// server returns the server address under which the connection is counted.
func (c *conn) server() netip.Addr { return c.wire.addr.Addr() }
