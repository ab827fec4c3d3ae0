package mesh

import (
	"time"

	"kumo/internal/cluster/strategy"
)

// reviews repair differences between the histories of a host's backups.
//
// A backup that is not the first may miss that a URL is done. Only some of the backups may have an open URL, if nodes
// joined and died at the same time. So each backup regularly reviews the hosts that have as many open URLs as at the
// last review: it compares their number with the other backups' (itemOpen), the first backup with all, the others with
// the first. If it differs, the two exchange the open URLs (itemStore).
type reviews struct {
	core    *core
	place   *place
	mail    poster
	history store
	hosts   reviewedHosts
	engine  func() (idle bool, activity uint64)

	activity uint64 // at the last run
	last     time.Time
}

// reviewedHosts is the reviews' view of the hosts with open URLs.
type reviewedHosts interface {
	// names returns the names of all hosts, sorted.
	names() []string
	// openURLs returns how many URLs of a host are open.
	openURLs(host string) int
	// unchanged reports whether as many URLs are open as at the last call.
	unchanged(host string) bool
	// review dispatches the open URLs of a host again, if this node is the first backup and nothing is in progress for
	// them. openURLs keeps its last result when the host has no open URLs left.
	review(host string) (openURLs func() int, first bool)
}

const (
	reviewEvery = 30 * time.Second
	reviewQuiet = 10 * time.Second // interval while there is no other activity
	maxReviewed = 256              // hosts per run
)

// run reviews hosts regularly, and sooner while the engine is idle and there was no activity since the last call: the
// crawl's end may depend on it.
func (v *reviews) run() {
	v.core.after(reviewQuiet, v.run)
	idle, activity := v.engine()
	quiet := idle && activity == v.activity
	if v.activity = activity; quiet || v.core.now.Sub(v.last) >= reviewEvery {
		v.review()
	}
}

func (v *reviews) review() {
	v.last = v.core.now
	if v.place.leaving || !v.place.isFresh() {
		return
	}
	asked := 0
	for _, host := range v.hosts.names() {
		if !v.hosts.unchanged(host) || asked == maxReviewed {
			continue
		}
		openURLs, first := v.hosts.review(host)
		asked++
		peers, _ := v.place.otherBackups(host)
		for _, to := range peers {
			v.mail.post(to, item{kind: itemOpen, host: host}, func(to strategy.Node, r *reply) {
				if r != nil && r.code == replyYes && r.number != int64(openURLs()) {
					v.compare(host, to, "")
				}
			})
			if !first {
				break
			}
		}
	}
}

func (v *reviews) count(_ strategy.Node, it item) reply {
	if _, is := v.place.otherBackups(it.host); !is {
		return reply{code: replyNo}
	}
	return reply{code: replyYes, number: int64(v.hosts.openURLs(it.host))}
}

// compare has another backup of a host record the URLs that are open here, from a position on, and records here which
// of them are done there.
func (v *reviews) compare(host string, other strategy.Node, from string) {
	v.history.read(host, from, false, func(k Known) {
		if len(k.Links) == 0 {
			return
		}
		v.mail.post(other, item{kind: itemStore, host: host, links: k.Links}, func(_ strategy.Node, r *reply) {
			if r == nil || r.code != replyYes {
				return
			}
			if done := doneOf(k.Links, r); len(done) > 0 {
				v.history.record(host, done, func(Recorded, []Link) {})
			}
			if k.Next != "" {
				v.compare(host, other, k.Next)
			}
		})
	})
}
