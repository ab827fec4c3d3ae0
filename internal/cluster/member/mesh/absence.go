package mesh

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// absences record which nodes have gone lately, and how long to wait for missing ones.
//
// In a part of a network that is cut off, or whose other nodes sleep, there may be fewer nodes than a host has backups.
// A link that is claimed there is on fewer disks, and could be lost with one of them. So the claim waits until the
// other nodes are back, and the page with the link is not done before that. Nodes that stay away for Config.AbsentWait
// count as lost with their disks, since a crawl must continue without them eventually.
type absences struct {
	core  *core
	place *place
	wait  time.Duration // Config.AbsentWait
	// an earlier process has met other nodes
	metEarlier bool

	// end of the wait for nodes that an earlier process has met: finding them may take that long
	untilEarlier  time.Time
	untilSeen     time.Time // end of the wait for nodes that this process has seen die
	untilDied     time.Time // the same, without the wait for nodes of an earlier process
	untilReported time.Time // end of the wait reported by other backups: this node may have joined later
	died          recent    // they may also be asleep: their machines may hold messages until they wake
	left          recent    // nodes that have announced their leave, and may still be fetching
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

// foundOpen restarts that wait when an open URL of the earlier process is found: its nodes may still come back.
func (a *absences) foundOpen() {
	if a.metEarlier {
		a.missed()
	}
}

// missed starts the wait for a nearby node that no longer answers.
func (a *absences) missed() { a.untilSeen = a.core.now.Add(a.wait) }

// sawDeath is missed for a node that this process has known.
func (a *absences) sawDeath() {
	a.missed()
	a.untilDied = a.untilSeen
}

// applyWait processes another backup's wait for missing nodes.
func (a *absences) applyWait(r *reply) {
	if r != nil && r.number > 0 {
		wait := min(time.Duration(r.number)*time.Millisecond, a.wait)
		if until := a.core.now.Add(wait); until.After(a.untilReported) {
			a.untilReported = until
		}
	}
}

// remaining returns the rest of this node's own wait for missing nodes, in milliseconds.
func (a *absences) remaining() int64 {
	return max(int64(a.untilSeen.Sub(a.core.now)/time.Millisecond), 0)
}

// partial reports whether this node waits for nodes that it has met: it may see only a part of the network.
func (a *absences) partial() bool {
	return a.core.now.Before(a.untilSeen) || a.core.now.Before(a.untilEarlier)
}

// tooFew reports whether n nodes are fewer than a host has backups, while missing ones are waited for.
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
