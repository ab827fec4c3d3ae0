// Package outage decides whether the crawl's own connection is down, or only some hosts are.
//
// When hosts that have answered fail together, the cause may be this machine's router, name server or proxy. A
// [Detector] is a state machine that distinguishes this from hosts that are down. Its inputs are the results of visits
// and of checks, which are attempts to reach seeds and hosts that have answered.
//
//	up      → doubted  when three hosts that had answered fail in a row and nothing answers in between; when a host is
//	                   about to be abandoned and nothing has answered since its failure before; or when the proxy
//	                   cannot be reached. Hosts are still visited, and failures are not counted
//	doubted → up       when any host answers a visit or is reached by a check: the failed hosts are down by themselves
//	doubted → down     when for a second no check has reached any host and no visit was answered
//	down    → up       when any host answers or is reached; checks are made at growing intervals
//	down    → the end  when it lasts too long: a few seconds if nothing was ever fetched through the proxy. If all hosts
//	                   that have answered belong to one or two registered domains, these may be gone: they are
//	                   forgotten, the crawl resumes, and they are judged like any host
//
// Names, TLS, connections and proxies can fail separately. A failure suspends only hosts that depend on the failed
// part. Only an answer that depends on that part is evidence that it works; see Affects. The influence of a site's
// owner is bounded: a registered domain has few of the remembered hosts, and others never displace seeds or the domains
// that answered first.
//
// The package uses no clock and no network.
package outage

import (
	"slices"
	"strings"
	"time"

	"kumo/internal/base/page"
)

// An Origin is a scheme and host, with the services needed to reach it.
type Origin struct {
	URL     string // without a path
	Hash    uint64
	LooksUp bool // this machine resolves its name
	Proxied bool
}

// A Detector distinguishes an outage from hosts that are down; see the package comment.
type Detector struct {
	MaxOutage time.Duration // longest outage before the run ends; 0: no limit

	State        Phase
	Layer        Layer
	ProxyFailed  bool      // the proxy cannot be reached
	suspect      Origin    // the origin that failed; checked if nothing has answered yet
	Since        time.Time // start of the doubt, which an outage includes
	Why          string
	next         time.Time     // time of the next check
	pause        time.Duration // between the last check and the next
	lastDoubtEnd time.Time     // end of the last doubt
	doubts       int           // number of doubts so far

	layers    [numLayers]layerRecord
	memory    memory
	ever      bool      // a host has answered at least once
	answered  time.Time // last answer of any host
	nextCheck int       // index of the next host to be checked
}

// A Phase is the assumed state of the crawl's connection.
type Phase uint8

// Phases.
const (
	Up Phase = iota
	Doubted
	Down
)

// A Layer is a service needed to reach hosts. One layer may be down while others work.
type Layer uint8

// Layers.
const (
	LayerDNS Layer = iota // name servers
	layerTLS
	LayerConnection
	numLayers
)

// LayerOf returns the layer that a failure casts doubt on.
func LayerOf(f page.Failure) (Layer, bool) {
	switch f {
	case page.DNS:
		return LayerDNS, true
	case page.TLS:
		return layerTLS, true
	case page.Connect, page.Refused, page.Proxy, page.Reset, page.Timeout:
		return LayerConnection, true
	}
	return 0, false
}

// A layerRecord is the recent history of a layer.
type layerRecord struct {
	worked  time.Time // last success
	failed  time.Time // last failure
	failing []uint64  // hosts that had answered before and have failed since, each once
	// hosts that had failed when the layer was found to work. The next failure of each is counted as its own, so that a
	// hanging page ends, and does not cause the same doubt forever
	cleared []uint64
}

const (
	minFailing = 3 // hosts that must fail together
	maxCleared = 16
	minSites   = 3 // registered domains that do not all disappear at once
	checkHosts = 3 // origins per check during an outage; during a doubt, all remembered hosts

	firstPause    = time.Second // between checks; it grows by half with each
	lastPause     = 30 * time.Second
	leastDoubt    = time.Second     // before an outage is declared, so that visits can complete
	doubtCooldown = 5 * time.Second // from the end of a doubt to the next
	// of all hosts, after which hosts that do not depend on the failed layer are suspended, too
	silence = 5 * time.Minute

	siteWait  = 5 * time.Minute // for one or two sites that may be gone
	proxyWait = 3 * time.Second // for a proxy that never worked, because its address is wrong or it is still starting
)

// An Event is a change of state that the crawl must handle.
type Event uint8

// Events.
const (
	noEvent          Event = iota
	WentDown               // an outage is declared
	StillDown              // the outage continues
	Recovered              // the outage has ended
	SitesGone              // one or two sites do not come back: resume without them
	OutageTooLong          // the outage was too long: end the run
	ProxyUnreachable       // the proxy cannot be reached, and never could: end the run
	doubtEnded             // a doubt has ended without an outage
)

// Answered records a response received at a time. It returns Recovered if this ends an outage.
func (o *Detector) Answered(at time.Time, origin Origin) Event {
	o.ever = true
	o.answered = later(o.answered, at)
	for i := range o.layers {
		if w := &o.layers[i]; len(w.cleared) > 0 {
			w.cleared = slices.DeleteFunc(w.cleared, func(h uint64) bool { return h == origin.Hash })
		}
	}
	for way := layerTLS; way < numLayers; way++ {
		if w := &o.layers[way]; affects(way, false, origin) {
			w.worked = later(w.worked, at)
		}
	}
	o.memory.add(at, origin)
	if o.State == Up || !at.After(o.Since) || o.Layer == LayerDNS || !o.Affects(origin) {
		return noEvent
	}
	return o.end(at)
}

// AddSeed adds an origin named by the user to those that are checked. Only the first few are kept.
func (o *Detector) AddSeed(origin Origin) { o.memory.addSeed(origin) }

// Resolved records the time at which a name was resolved. It returns Recovered if this ends an outage.
func (o *Detector) Resolved(at time.Time) Event {
	w := &o.layers[LayerDNS]
	w.worked = later(w.worked, at)
	if o.State == Up || o.ProxyFailed || o.Layer != LayerDNS || !at.After(o.Since) {
		return noEvent
	}
	return o.end(at)
}

// Forget forgets an abandoned origin, which proves nothing any more.
func (o *Detector) Forget(hash uint64) { o.memory.remove(hash) }

// A FailedVisit is a visit that did not reach its host.
type FailedVisit struct {
	At             time.Time
	Origin         Origin
	Layer          Layer
	ProxyFailed    bool // the proxy was not reached
	AnsweredBefore bool // the origin had answered before
	Why            string
}

// Failed records a failed visit. It reports whether the crawl may be offline, so that the failure does not count.
func (o *Detector) Failed(m *FailedVisit) bool {
	if o.State != Up {
		return true
	}
	if m.ProxyFailed {
		return o.doubt(m)
	}
	w := &o.layers[m.Layer]
	if w.worked.After(w.failed) {
		w.failing = w.failing[:0]
	}
	w.failed = m.At
	if i := slices.Index(w.cleared, m.Origin.Hash); i >= 0 {
		w.cleared = slices.Delete(w.cleared, i, i+1)
		return false
	}
	if m.AnsweredBefore && len(w.failing) < minFailing && !slices.Contains(w.failing, m.Origin.Hash) {
		w.failing = append(w.failing, m.Origin.Hash)
	}
	if len(w.failing) < min(minFailing, o.candidates(m.Layer)) {
		return false
	}
	// Just after a doubt no new one starts. Failures of that many hosts must not use up attempts until it does.
	return o.doubt(m) || len(w.failing) == minFailing && o.coolingDown(m.At)
}

// HostAtFault reports whether the layer of a failed visit has worked since a time. Then the host, which has failed
// since, is itself at fault. Otherwise it starts a doubt.
func (o *Detector) HostAtFault(m *FailedVisit, since time.Time) bool {
	if o.State == Up && (!o.layers[m.Layer].worked.Before(since) || o.candidates(m.Layer) == 0) {
		return true
	}
	o.doubt(m)
	return false
}

// doubt starts a doubt, unless one has just ended. It reports whether there is a doubt or an outage.
func (o *Detector) doubt(m *FailedVisit) bool {
	if o.State != Up {
		return true
	}
	if !m.ProxyFailed && o.candidates(m.Layer) == 0 || o.coolingDown(m.At) {
		return false
	}
	o.State, o.Layer, o.ProxyFailed, o.Since, o.Why = Doubted, m.Layer, m.ProxyFailed, m.At, m.Why
	o.suspect = m.Origin
	o.suspect.URL = strings.Clone(m.Origin.URL)
	o.next, o.pause = m.At, 0
	o.doubts++
	return true
}

// coolingDown reports whether a doubt has ended so recently that no new one starts.
func (o *Detector) coolingDown(at time.Time) bool { return at.Sub(o.lastDoubtEnd) < doubtCooldown }

// end ends a doubt or an outage, because its layer works.
func (o *Detector) end(at time.Time) Event {
	was := o.State
	o.State, o.lastDoubtEnd = Up, at
	w := &o.layers[o.Layer]
	w.cleared = append(w.cleared[max(0, len(w.cleared)+len(w.failing)-maxCleared):], w.failing...)
	w.failing, w.worked = w.failing[:0], later(w.worked, at)
	if was != Down {
		return doubtEnded
	}
	w.cleared = w.cleared[:0]
	o.lastDoubtEnd = time.Time{} // the next failures may be the next outage
	if o.proxyNeverWorked() {
		return doubtEnded // no outage was reported
	}
	return Recovered
}

// candidates returns the number of hosts that have answered and depend on a layer.
func (o *Detector) candidates(by Layer) (n int) {
	for i := range o.memory.hosts {
		if affects(by, false, o.memory.hosts[i].Origin) {
			n++
		}
	}
	return n
}

// Affects reports whether an origin depends on the layer in doubt or down.
func (o *Detector) Affects(origin Origin) bool { return affects(o.Layer, o.ProxyFailed, origin) }

func affects(by Layer, own bool, origin Origin) bool {
	switch {
	case own:
		return origin.Proxied
	case by == layerTLS:
		return strings.HasPrefix(origin.URL, "https:")
	case by == LayerDNS:
		return origin.LooksUp
	}
	return true
}

// BlocksAll reports whether no host may be visited. Hosts that do not depend on the failed layer may be, until all have
// been silent for some minutes.
func (o *Detector) BlocksAll(now time.Time) bool {
	return o.State == Down &&
		(o.Layer == LayerConnection && !o.ProxyFailed || now.Sub(later(o.answered, o.Since)) >= silence)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// RetryAfter returns the wait of a host that failed, or was not visited, because of a doubt or an outage.
func (o *Detector) RetryAfter() time.Duration { return max(o.pause, firstPause) }

// Due returns the time of the next check, if there is one.
func (o *Detector) Due() (time.Time, bool) { return o.next, o.State != Up }

// A Check is an attempt to reach one of several origins, the most promising first.
type Check struct {
	Origins     []string
	Layer       Layer
	ProxyFailed bool
	doubt       int
}

// Check returns the check to make now: during a doubt, all origins that can disprove it; during an outage a few,
// different ones each time.
func (o *Detector) Check() Check {
	c := Check{Layer: o.Layer, ProxyFailed: o.ProxyFailed, doubt: o.doubts}
	all := o.memory.targets(o.Affects, o.layers[o.Layer].failing)
	switch {
	case len(all) == 0:
		c.Origins = []string{o.suspect.URL}
	case o.State == Down && len(all) > checkHosts:
		for range checkHosts {
			c.Origins = append(c.Origins, all[o.nextCheck%len(all)])
			o.nextCheck++
		}
	default:
		c.Origins = all
	}
	return c
}

// Checked records the result of a check: whether a host was reached, and if not, why.
func (o *Detector) Checked(now time.Time, c *Check, reached bool, why string) Event {
	if o.State == Up || c.doubt != o.doubts { // a response has ended that doubt
		return noEvent
	}
	if reached {
		return o.end(now)
	}
	o.pause = min(max(o.pause+o.pause/2, firstPause), lastPause)
	o.next = now.Add(o.pause)
	o.Why = why
	if o.State == Doubted {
		if now.Sub(o.Since) < leastDoubt {
			return noEvent
		}
		if o.State = Down; o.proxyNeverWorked() {
			return noEvent // ProxyUnreachable follows soon
		}
		return WentDown
	}
	switch limit, last := o.limit(); {
	case limit == 0 || now.Sub(o.Since) < limit:
		if o.proxyNeverWorked() {
			return noEvent
		}
		return StillDown
	case o.proxyNeverWorked():
		return ProxyUnreachable
	case last:
		return OutageTooLong
	}
	o.State = Up
	o.memory.forget()
	return SitesGone
}

// proxyNeverWorked reports whether the proxy cannot be reached, and nothing was ever fetched through it.
func (o *Detector) proxyNeverWorked() bool { return o.ProxyFailed && !o.ever }

// limit returns the maximum duration of the outage, 0 for no limit, and whether the run ends then.
func (o *Detector) limit() (limit time.Duration, last bool) {
	few := time.Duration(0)
	switch {
	case o.proxyNeverWorked():
		few, last = proxyWait, true
	case o.ProxyFailed || o.memory.domains() >= minSites:
		return o.MaxOutage, true
	default:
		few = siteWait
	}
	if o.MaxOutage > 0 && o.MaxOutage < few {
		return o.MaxOutage, last
	}
	return few, last
}
