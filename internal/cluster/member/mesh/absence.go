package mesh

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// Absences know which nodes have gone lately, and for how long missing ones are waited for.
//
// A part of a network that is cut off, or whose other nodes sleep, may have fewer nodes than a host has backups. A link
// that is claimed there is on fewer disks, and could be lost with one of them. So the claim waits until the others are
// back, and the page that has the link is not done before that. Nodes that stay away for Config.Absent count as lost
// with their disks, since a crawl must continue without them at some time.
type absences struct {
	core  *core
	place *place
	wait  time.Duration // Config.Absent
	// an earlier process has met other nodes
	metEarlier bool

	untilEarlier  time.Time // the end of the wait for nodes that an earlier process knew: finding them may take so long
	untilSeen     time.Time // the end of the wait for nodes that this one has seen die
	untilReported time.Time // the end of the wait by what other backups have reported: this node may have joined later
	died          recent    // or they sleep: messages to them may wait at their machines until these wake
	left          recent    // nodes that have said farewell, and may not have stopped fetching yet
}

func newAbsences(c *core, p *place, wait time.Duration, earlier bool) *absences {
	return &absences{core: c, place: p, wait: wait, metEarlier: earlier, died: recent{lasts: 2 * time.Minute, most: 16},
		left: recent{lasts: time.Minute, most: 64}}
}

// start waits for the nodes that an earlier process has met.
func (a *absences) start() {
	if a.metEarlier {
		a.untilEarlier = a.core.now.Add(a.wait)
	}
}

// foundOpen waits for them again when an open URL of that process is found: they may be yet to come back, too.
func (a *absences) foundOpen() {
	if a.metEarlier {
		a.missed()
	}
}

// missed waits for a node near this one that does not answer any more.
func (a *absences) missed() { a.untilSeen = a.core.now.Add(a.wait) }

// applyWait processes how long another backup waits for missing nodes.
func (a *absences) applyWait(r *reply) {
	if r != nil && r.number > 0 {
		wait := min(time.Duration(r.number)*time.Millisecond, a.wait)
		if until := a.core.now.Add(wait); until.After(a.untilReported) {
			a.untilReported = until
		}
	}
}

// remaining returns how long this node waits for missing ones that it has seen itself, in milliseconds.
func (a *absences) remaining() int64 {
	return max(int64(a.untilSeen.Sub(a.core.now)/time.Millisecond), 0)
}

// partial reports whether this node waits for nodes that it has met: it may see only a part of the network.
func (a *absences) partial() bool {
	return a.core.now.Before(a.untilSeen) || a.core.now.Before(a.untilEarlier)
}

// tooFew reports whether n are fewer nodes than a host has backups, and missing ones are waited for.
func (a *absences) tooFew(n int) bool {
	return n < a.place.backups && (a.core.now.Before(a.untilSeen) || a.core.now.Before(a.untilReported))
}

// complete reports whether some nodes and this one are all backups of a host, and no missing one is waited for.
func (a *absences) complete(host string, nodes []strategy.Node) bool {
	peers, is := a.place.otherBackups(host)
	n := len(peers)
	if is {
		n++
	}
	if a.tooFew(n) {
		return false
	}
	return !slices.ContainsFunc(peers, func(p strategy.Node) bool { return !slices.Contains(nodes, p) })
}

// mayBeGone reports whether a node has died or left lately.
func (a *absences) mayBeGone(n strategy.Node) bool {
	return a.died.has(n, a.core.now) || a.left.has(n, a.core.now)
}
