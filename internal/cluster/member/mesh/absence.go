package mesh

import (
	"time"
)

// A part of a network that is cut off, or whose other nodes sleep, may have fewer nodes than a host has backups. What
// is claimed there lies on fewer disks: the loss of one could lose it. So the claim waits until the others are back,
// and the page that has the link is not done until then. Nodes that stay away for Config.Absent count as lost, with
// their disks, as a crawl must go on without those at some time.

// absence is until when nodes that do not answer are waited for.
type absence struct {
	met   time.Time // whom an earlier process knew: it may take so long to find them
	own   time.Time // by what this node has seen
	heard time.Time // by what other backups have: this node may have come to them later
	died  recent    // or they sleep: then what one is told may lie at its machine until it wakes
}

func (a *absence) waits(now time.Time) bool { return now.Before(a.own) || now.Before(a.heard) }

// bereft reports whether others are waited for by what this node has seen: it may see but a part of the network.
func (a *absence) bereft(now time.Time) bool { return now.Before(a.own) || now.Before(a.met) }

// left is how long they are waited for, in milliseconds, by what this node has seen.
func (a *absence) left(now time.Time) int64 { return max(int64(a.own.Sub(now)/time.Millisecond), 0) }

// Awaited is until when nodes that have died are waited for, as they may be back; a zero time if none has.
func (m *Machine) Awaited() time.Time { return m.absent.own }

// hear takes in how long another backup waits for nodes that do not answer.
func (m *Machine) hear(r *reply) {
	if r != nil && r.number > 0 {
		wait := min(time.Duration(r.number)*time.Millisecond, m.cfg.Absent)
		if until := m.now.Add(wait); until.After(m.absent.heard) {
			m.absent.heard = until
		}
	}
}
