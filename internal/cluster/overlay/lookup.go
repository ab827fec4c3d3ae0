package overlay

import (
	"bytes"
	"slices"

	"kumo/internal/base/xor"
)

// A lookUp finds the live nodes closest to an id.
type lookUp struct {
	id             xor.ID
	want           int
	purpose        purpose
	tag            uint64
	list           []candidate // sorted by distance; without the node itself, which would report nothing new
	under          int         // queries in progress
	asked          int         // queries in total
	missed         int         // queries without an answer
	reported       []Contact   // the result, if another node has reported it
	acceptReported bool        // a node that knows all of them may report the result
	over           bool
}

// A purpose is the user of a lookup.
type purpose uint8

const (
	forCaller purpose = iota
	forSelf
	forBucket
)

// A candidate is a node that may be in the result.
type candidate struct {
	Contact
	state       state
	tries       uint8  // failed queries
	badReports  uint8  // nodes that it reported and that did not answer
	goodReports uint8  // nodes that it reported and that answered
	reporter    uint64 // short id of the first node that reported it; 0: it was in the table
	exactWithin xor.ID // its answer contained all nodes within this distance of the id
	hasExact    bool   // exactWithin is set
	hops        uint8  // 1 if it was in the table, else one more than its reporter
}

type state uint8

const (
	waiting state = iota
	underWay
	answered
	failing
)

// farthest is the greatest distance.
var farthest = xor.ID(bytes.Repeat([]byte{0xff}, xor.Size))

// breadth returns how many contacts each queried node should return.
func (l *lookUp) breadth(cfg *Config) int {
	if l.purpose != forCaller {
		return cfg.breadth()
	}
	if l.acceptReported {
		return cfg.Neighbors // all that the last queried node knows for certain, to serve lookups of nearby ids
	}
	return min(max(l.want+4, 8), cfg.K)
}

// setExact records how many of the contacts in a candidate's answer are exact: no other nodes are as close to the id.
func (c *candidate) setExact(id xor.ID, exact, count int, named func(int) xor.ID) {
	switch {
	case exact > count:
		c.hasExact, c.exactWithin = true, farthest
	case exact > 0:
		c.hasExact = true
		c.exactWithin = named(exact - 1).Distance(id)
	}
}

// add adds a node to the list, unless it is already there or too far away.
func (l *lookUp) add(c Contact, reporter uint64, cfg *Config) {
	at, there := l.at(c.ID)
	if there {
		return
	}
	hops := uint8(1)
	if t := l.reporter(reporter); t != nil {
		hops += t.hops
	}
	l.list = slices.Insert(l.list, at, candidate{Contact: c, reporter: reporter, hops: hops})
	if l.crowded(cfg) {
		l.list = slices.Delete(l.list, len(l.list)-1, len(l.list))
	}
}

// at returns the index of an id in the list.
func (l *lookUp) at(id xor.ID) (int, bool) {
	return slices.BinarySearchFunc(l.list, id, func(c candidate, id xor.ID) int {
		return xor.Compare(c.ID, id, l.id)
	})
}

func (l *lookUp) of(id xor.ID) *candidate {
	if i, there := l.at(id); there {
		return &l.list[i]
	}
	return nil
}

// crowded reports whether the list has more nodes than the lookup will query.
func (l *lookUp) crowded(cfg *Config) bool {
	if len(l.list) <= 4*cfg.breadth() {
		return false
	}
	n := 0
	for i := range l.list {
		if l.list[i].state != failing {
			n++
		}
	}
	return n > 4*cfg.breadth()
}

// goal returns how many of the closest nodes have to answer. It is the number of wanted nodes if an answer shows that
// no other node is as close (sure), or if any contacts will do; else at least K.
func (l *lookUp) goal(cfg *Config) (n int, sure bool) {
	var best xor.ID
	var last *candidate
	for i := range l.list {
		c := &l.list[i]
		if c.state == failing {
			continue
		}
		if c.state == answered && c.hasExact && best.Less(c.exactWithin) {
			best = c.exactWithin
		}
		last = c
		if n++; n == l.want {
			break
		}
	}
	if best == farthest || n == l.want && !best.Less(last.ID.Distance(l.id)) {
		return l.want, true
	}
	if l.purpose != forCaller {
		return l.want, false
	}
	return max(cfg.K, l.want), false
}

// next returns the node to query next: of the first goal nodes that have not failed for good, the closest one without a
// query, or else one with fewest failures. done reports that all of these have answered.
func (l *lookUp) next(goal int) (c *candidate, done bool) {
	done = true
	for i := range l.list {
		switch e := &l.list[i]; e.state {
		case failing:
			continue
		case waiting:
			done = false
			if c == nil || e.tries < c.tries {
				c = e
			}
		case underWay:
			done = false
		}
		if goal--; goal == 0 {
			break
		}
	}
	return c, done
}

// atOnce returns the maximum number of concurrent queries.
func (l *lookUp) atOnce(cfg *Config) int {
	if l.acceptReported {
		return min(1+l.missed, cfg.Alpha)
	}
	return cfg.Alpha
}

// reporter returns the candidate with a short id; nil if there is none.
func (l *lookUp) reporter(id uint64) *candidate {
	i := slices.IndexFunc(l.list, func(t candidate) bool { return short(t.ID) == id })
	if i < 0 {
		return nil
	}
	return &l.list[i]
}

// dropReported drops the nodes that a node has reported and that were not queried yet.
func (l *lookUp) dropReported(reporter uint64) {
	l.list = slices.DeleteFunc(l.list, func(c candidate) bool { return c.reporter == reporter && c.state == waiting })
}
