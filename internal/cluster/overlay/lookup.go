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
	list           []candidate // sorted by distance; the node itself is none, because it has nothing new to tell
	under          int         // questions under way
	asked          int         // questions in all
	missed         int         // of these, such that were not answered
	reported       []Contact   // the result, if another node has reported it
	acceptReported bool        // a node that knows them all may report the result
	over           bool
}

// A purpose is the user of a look-up.
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
	tries       uint8  // questions that failed
	badReports  uint8  // nodes that it has reported that did not answer
	goodReports uint8  // and that did
	reporter    uint64 // short id of the node that reported it first; 0: it was in the table
	exactWithin xor.ID // all nodes as close to the id as this were in its answer
	hasExact    bool   // sure means something
	hops        uint8  // 1 if it was in the table, one more than its teller else
}

type state uint8

const (
	waiting state = iota
	underWay
	answered // has answered
	failing
)

// farthest is the greatest distance.
var farthest = xor.ID(bytes.Repeat([]byte{0xff}, xor.Size))

// breadth returns how many contacts each node is asked for.
func (l *lookUp) breadth(cfg *Config) int {
	if l.purpose != forCaller {
		return cfg.breadth()
	}
	if l.acceptReported {
		return cfg.Neighbors // all that the last node that is asked knows for certain, for the ids beside this one
	}
	return min(max(l.want+4, 8), cfg.K)
}

// setExact applies how many of the contacts in a candidate's answer are all there are so close to the id.
func (c *candidate) setExact(id xor.ID, exact, count int, named func(int) xor.ID) {
	switch {
	case exact > count:
		c.hasExact, c.exactWithin = true, farthest
	case exact > 0:
		c.hasExact = true
		c.exactWithin = named(exact - 1).Distance(id)
	}
}

// add puts a node into the list, unless it is there or too far away.
func (l *lookUp) add(c Contact, teller uint64, cfg *Config) {
	at, there := l.at(c.ID)
	if there {
		return
	}
	hops := uint8(1)
	if t := l.reporter(teller); t != nil {
		hops += t.hops
	}
	l.list = slices.Insert(l.list, at, candidate{Contact: c, reporter: teller, hops: hops})
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

// crowded reports whether the list has more nodes than will be asked.
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

// goal returns how many of the closest nodes have to answer: the wanted ones if one of them is sure that no other is as
// close, or if any contacts will do; else K. sure reports whether one is.
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

// next returns the node to ask next: the closest that was not asked, then one that has failed once, out of the first
// goal nodes that have not failed for good. done reports that all those have answered.
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

// atOnce returns how many questions may be under way.
func (l *lookUp) atOnce(cfg *Config) int {
	if l.acceptReported {
		return min(1+l.missed, cfg.Alpha)
	}
	return cfg.Alpha
}

// reporter returns the candidate with a short id; nil: none.
func (l *lookUp) reporter(id uint64) *candidate {
	i := slices.IndexFunc(l.list, func(t candidate) bool { return short(t.ID) == id })
	if i < 0 {
		return nil
	}
	return &l.list[i]
}

// dropReported abandons the nodes that one has reported and that were not asked yet.
func (l *lookUp) dropReported(teller uint64) {
	l.list = slices.DeleteFunc(l.list, func(c candidate) bool { return c.reporter == teller && c.state == waiting })
}
