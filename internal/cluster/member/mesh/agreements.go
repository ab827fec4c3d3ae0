package mesh

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// An agreement records whether the other backups of a host have received all URLs that are open here, except for those
// that are being claimed. It does not hold when this node has just become the first backup: it may be the only one to
// have some URLs, and the others may have recorded some as done.
type agreement struct {
	host  string
	holds bool
	// the backups of the agreement; a backup that has joined since receives everything by a sweep
	backups []strategy.Node
	pass    *pass // the pass that establishes the agreement; nil if none is running
	waiting []func(holds bool)
}

// A pass goes over all open URLs of a host.
type pass struct {
	failed bool // not all backups have answered
	again  bool // it has already gone over all of them once
}

// agreements establish agreements at the first backup of a host.
//
// It sends the open URLs to the other backups (itemStore), a piece at a time, records those that one of them has as
// done, and has the rest dispatched.
//
// Invariant: each waiting function is called once: with true when the agreement holds or no URL is open, with false
// when this node is no longer the first backup.
type agreements struct {
	core     *core
	place    *place
	mail     poster
	history  store
	absences *absences
	hosts    agreementHosts
}

// agreementHosts is what agreements need of the hosts with open URLs.
type agreementHosts interface {
	// dispatchConfirmed dispatches URLs that no backup has as done.
	dispatchConfirmed(host string, links []Link)
	setTargetIfUnknown(host string, target strategy.Node)
}

// passAgain is the wait before a failed pass is repeated.
const passAgain = 10 * time.Second

// set records that an agreement holds with the backups of a host.
func (s *agreements) set(a *agreement) {
	a.holds = true
	a.backups, _ = s.place.otherBackups(a.host)
}

// retainBackups removes nodes from an agreement that are no longer backups: they have dropped the host.
func (s *agreements) retainBackups(a *agreement) {
	peers, _ := s.place.otherBackups(a.host)
	a.backups = slices.DeleteFunc(a.backups, func(n strategy.Node) bool { return !slices.Contains(peers, n) })
}

// establish starts a pass, unless the agreement holds or a pass is running.
func (s *agreements) establish(a *agreement) {
	if a.holds || a.pass != nil {
		return
	}
	a.pass = &pass{}
	s.run(a, a.pass, "")
}

// run continues a pass from a position on.
func (s *agreements) run(a *agreement, p *pass, from string) {
	s.history.read(a.host, from, false, func(k Known) {
		s.confirm(a.host, k.Links, func(left []Link, by []strategy.Node) {
			if a.pass != p {
				return
			}
			if !p.again {
				s.hosts.dispatchConfirmed(a.host, left)
			}
			p.failed = p.failed || !s.absences.complete(a.host, by)
			switch {
			case k.Next != "":
				s.run(a, p, k.Next)
			case !p.failed:
				a.backups, _ = s.place.otherBackups(a.host)
				a.end(true)
			default:
				p.failed, p.again = false, true
				s.core.after(passAgain, func() {
					if a.pass == p {
						s.run(a, p, "")
					}
				})
			}
		})
	})
}

// confirm queries the other backups for the states of some open URLs, and has them record the URLs. It calls f with
// those that are not done, and with the backups that have answered.
func (s *agreements) confirm(host string, links []Link, f func(left []Link, by []strategy.Node)) {
	left := slices.Clone(links)
	var done []Link
	var by []strategy.Node
	peers, _ := s.place.otherBackups(host)
	waits := 1
	over := func() {
		if waits--; waits > 0 {
			return
		}
		if len(done) == 0 {
			f(left, by)
			return
		}
		s.history.record(host, done, func(_ Recorded, fresh []Link) { f(append(left, fresh...), by) })
	}
	for _, to := range peers {
		if len(links) == 0 {
			by = append(by, to)
			continue
		}
		waits++
		s.mail.post(to, item{kind: itemStore, host: host, links: links}, func(_ strategy.Node, r *reply) {
			if s.absences.applyWait(r); r != nil && r.code == replyYes {
				s.hosts.setTargetIfUnknown(host, r.node)
				more, later := withState(links, r.states, Done), withState(links, r.states, withheld)
				if left = without(left, later); len(later) == 0 {
					by = append(by, to)
				}
				done, left = append(done, doneOf(links, r)...), without(left, more)
			}
			over()
		})
	}
	over()
}

// end ends the pass, and calls the waiting functions.
func (a *agreement) end(holds bool) {
	waiting := a.waiting
	a.holds, a.pass, a.waiting = holds, nil, nil
	for _, f := range waiting {
		f(holds)
	}
}
