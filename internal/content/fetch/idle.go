package fetch

import "net/netip"

// Idle connections are in up to three lists at once, each from the one that has been idle longest to the newest.
const (
	ofAll = iota
	ofDomain
	ofAddr
	idleLists
)

// maxIdlePer bounds the idle connections to all hosts of one registered domain, and to one server's address: made-up
// subdomains of one domain, as many as somebody likes, take no more.
const maxIdlePer = 256

type idleList struct {
	kind           int
	oldest, newest *conn
	n              int
}

// neighbours are those of a connection in one list.
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

// idleGroups are the idle connections of each registered domain, or server's address.
type idleGroups[K comparable] struct {
	kind  int
	lists map[K]*idleList
	spare *idleList // an empty one, so that a host's only connection costs no allocation
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

// server is the address by which a connection is counted.
func (c *conn) server() netip.Addr { return c.wire.addr.Addr() }
