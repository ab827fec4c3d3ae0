package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/visit"
	"kumo/internal/state/outage"
)

// A Checker checks whether hosts are reachable. With a [visit.Fetcher] that is no Checker, the crawl is never
// considered offline.
type Checker interface {
	// CheckHost connects to a host as a visit does, and sends nothing.
	CheckHost(ctx context.Context, url string) error
	CheckName(ctx context.Context, hostname string) error
	Route(url string) (looksUp, proxied bool)
	IsNameCached(hostname string) bool      // without a look-up
	LastFound() time.Time                   // time of the last successful look-up
	ForgetFailures()                        // discards failed look-ups after an outage
	Exhaustion() (times int64, last string) // how often this machine had no socket for an attempt
}

// ErrOffline is returned by a run that was offline for longer than Config.OutageWait. Pending URLs are left for the
// next run.
var ErrOffline = errors.New("offline for too long")

// ErrNoProxy is returned by a run whose proxy cannot be reached and could not be since the run began: no host is at
// fault, and nothing was fetched through it.
var ErrNoProxy = errors.New("the proxy cannot be reached")

// noProxy returns ErrNoProxy with the cause of an attempt's error.
func noProxy(err error) error {
	p, is := errors.AsType[*fetch.ProxyError](err)
	if !is {
		return fmt.Errorf("%w: %w", ErrNoProxy, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoProxy, p.Proxy, p.Err)
}

// An Outage is the state of the node's connection to the web.
type Outage struct {
	Offline bool      // nothing is fetched
	Since   time.Time // start of the outage
	Why     string
	Times   int64         // outages in this run, this one included
	Total   time.Duration // their total duration
	Scarce  int64         // attempts for which this machine had no socket
}

// An outageMonitor tracks whether the node is connected to the web.
type outageMonitor struct {
	cfg      *Config
	listener Listener
	stopper  *stopper

	check  Checker       // nil: the connection is taken to work
	gate   valve         // shut while no host at all may be visited
	down   atomic.Bool   // hosts that depend on the failed part are not to be visited
	probes atomic.Int32  // visits still allowed during an outage, as any answer ends it
	wake   chan struct{} // wakes keepChecking

	mu                sync.Mutex // guards the fields below
	detector          outage.Detector
	times             int64
	total             time.Duration
	reportedAt        time.Time          // when the outage was last reported
	socketsReportedAt time.Time          // when the lack of sockets was last reported
	ended             []time.Duration    // outages that an answer has ended, to be reported
	forgetLookups     bool               // failed look-ups are to be discarded
	abort             context.CancelFunc // cancels the check under way; nil if there is none
}

// probeVisits is how many visits are allowed after each check that reached nothing.
const probeVisits = 3

func newOutageMonitor(cfg *Config, f visit.Fetcher, l Listener, stop *stopper) *outageMonitor {
	check, _ := f.(Checker)
	return &outageMonitor{cfg: cfg, listener: l, stopper: stop, check: check, wake: make(chan struct{}, 1),
		detector: outage.Detector{MaxOutage: cfg.OutageWait}}
}

// update applies the detector's state. The caller holds mu.
func (l *outageMonitor) update(now time.Time) {
	l.down.Store(l.detector.State == outage.Down)
	if l.detector.State != outage.Down {
		l.probes.Store(0)
	}
	l.gate.set(l.detector.BlocksAll(now))
	if l.detector.State == outage.Up && l.abort != nil {
		l.abort()
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// origin returns the origin in the detector's form.
func (l *outageMonitor) origin(origin string, hash uint64) outage.Origin {
	o := outage.Origin{URL: origin, Hash: hash}
	if l.check != nil {
		o.LooksUp, o.Proxied = l.check.Route(origin)
	}
	return o
}

func (l *outageMonitor) addSeed(origin string, hash uint64) {
	seed := l.origin(origin, hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.detector.AddSeed(seed)
}

// worked records an answer.
func (l *outageMonitor) worked(at time.Time, origin string, hash uint64) {
	if l.check == nil {
		return
	}
	from := l.origin(origin, hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record(at, func() outage.Event { return l.detector.Answered(at, from) })
	l.found()
}

// found records when a name was last looked up successfully. The caller holds mu.
func (l *outageMonitor) found() {
	at := l.check.LastFound()
	l.record(at, func() outage.Event { return l.detector.Resolved(at) })
}

// record records evidence, which may end a suspicion or an outage. The caller holds mu.
func (l *outageMonitor) record(at time.Time, evidence func() outage.Event) {
	was, since := l.detector.State, l.detector.Since
	ev := evidence()
	if l.detector.State == was {
		return
	}
	l.forgetLookups = was == outage.Down || l.detector.Layer == outage.LayerDNS
	if ev == outage.Recovered {
		l.total += at.Sub(since)
		l.ended = append(l.ended, at.Sub(since))
	}
	l.update(at)
}

func (l *outageMonitor) abandoned(hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.detector.Forget(hash)
}

// failed reports whether a failure does not count, because the crawl may be offline, and for how long its URL is
// postponed then.
func (l *outageMonitor) failed(m *outage.FailedVisit) (wait time.Duration, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check == nil {
		return 0, false
	}
	l.found()
	up := l.detector.State == outage.Up
	off = l.detector.Failed(m)
	if up && off {
		l.update(m.At)
	}
	return l.detector.RetryAfter(), off
}

// isHostFault reports whether the connection has worked since the host's previous failure, so that the host is at
// fault.
func (l *outageMonitor) isHostFault(m *outage.FailedVisit, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check == nil {
		return true
	}
	l.found()
	proven := l.detector.HostAtFault(m, since)
	if !proven && l.detector.State != outage.Up {
		l.update(m.At)
	}
	return proven
}

// suspected reports whether the crawl may be offline, and for how long a visit is postponed then.
func (l *outageMonitor) suspected() (wait time.Duration, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.detector.RetryAfter(), l.detector.State != outage.Up
}

// shut reports whether no visit at all may be made.
func (l *outageMonitor) shut() bool { return l.gate.shut() && l.probes.Load() <= 0 }

// await waits until a visit may be made, or the context ends.
func (l *outageMonitor) await(ctx context.Context) { l.gate.awaitWhile(ctx, l.shut) }

// blocks reports whether a visit may not be made now because its host depends on the failed part, and when to retry.
// Probing visits are let through.
func (l *outageMonitor) blocks(url string) (wait time.Duration, held bool) {
	if !l.down.Load() {
		return 0, false
	}
	origin := item.OriginOf(url)
	to := l.origin(origin, 0)
	known := to.LooksUp && l.check.IsNameCached(item.HostnameOf(item.HostOf(origin)))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.detector.State != outage.Down,
		!l.gate.shut() && (!l.detector.Affects(to) ||
			l.detector.Layer == outage.LayerDNS && !l.detector.ProxyFailed && known),
		l.probes.Add(-1) >= 0:
		return 0, false
	case l.gate.shut():
		return 0, true // all workers wait at the gate
	}
	return l.detector.RetryAfter(), true
}

// keepChecking makes the checks that are due, until the context ends.
func (l *outageMonitor) keepChecking(ctx context.Context) error {
	if l.check == nil {
		return nil
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at, due := l.due()
		if due {
			timer.Reset(at.Sub(l.cfg.Now()))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
			l.reportEnded()
		case <-timer.C:
			if due {
				l.runCheck(ctx)
			}
		}
	}
}

func (l *outageMonitor) due() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.detector.Due()
}

// reportEnded reports outages that an answer has ended.
func (l *outageMonitor) reportEnded() {
	l.mu.Lock()
	back, stale := l.ended, l.forgetLookups
	l.ended, l.forgetLookups = nil, false
	l.mu.Unlock()
	if stale {
		l.check.ForgetFailures()
	}
	for _, lasted := range back {
		l.listener.Online(lasted, true)
	}
}

// runCheck makes one check, and acts on its result.
func (l *outageMonitor) runCheck(ctx context.Context) {
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	if l.detector.State == outage.Up {
		l.mu.Unlock()
		return
	}
	c := l.detector.Check()
	l.abort = cancel
	l.mu.Unlock()
	err := l.reachAny(checking, c.Origins, c.Layer, c.ProxyFailed)
	if ctx.Err() != nil {
		return
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	now := l.cfg.Now()
	l.mu.Lock()
	l.abort = nil
	l.found()
	was, since := l.detector.State, l.detector.Since
	ev := l.detector.Checked(now, &c, err == nil, why)
	say := ev == outage.WentDown || ev == outage.StillDown && now.Sub(l.reportedAt) >= outageReportInterval
	switch ev {
	case outage.WentDown:
		l.times++
	case outage.Recovered, outage.SitesGone: // SitesGone: the crawl resumes without the missing sites
		l.total += now.Sub(since)
	}
	if say {
		l.reportedAt = now
	}
	if l.detector.State == outage.Down {
		l.probes.Store(probeVisits)
		l.gate.pulse()
	}
	recovered := err == nil && was != outage.Up && (was == outage.Down || c.Layer == outage.LayerDNS)
	l.update(now)
	l.mu.Unlock()
	if recovered {
		l.check.ForgetFailures()
	}
	switch {
	case say:
		l.listener.Offline(since, why)
	case ev == outage.Recovered:
		l.listener.Online(now.Sub(since), true)
	case ev == outage.SitesGone:
		l.listener.Online(now.Sub(since), false)
	case ev == outage.OutageTooLong:
		l.stopper.stop(fmt.Errorf("%w: %s", ErrOffline, why))
	case ev == outage.ProxyUnreachable:
		l.stopper.stop(noProxy(err))
	}
}

const outageReportInterval = time.Minute // for outages and for the lack of sockets

const (
	firstProbed = 12          // hosts tried at once
	headStart   = time.Second // then the others are tried, too
)

// reachAny tries hosts until one is reached. If the proxy is suspected (own), reaching the proxy is enough.
func (l *outageMonitor) reachAny(ctx context.Context, targets []string, by outage.Layer, own bool) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(targets))
	tried := 0
	try := func(upTo int) {
		for ; tried < min(upTo, len(targets)); tried++ {
			t := targets[tried]
			go func() { results <- l.reach(ctx, t, by) }()
		}
	}
	try(firstProbed)
	others := time.NewTimer(headStart)
	defer others.Stop()
	for failed := 0; failed < len(targets); {
		var one error
		select {
		case <-others.C:
			try(len(targets))
			continue
		case one = <-results:
		}
		if fe, ok := errors.AsType[*fetch.Error](one); ok && (fe.Failure == page.Local || own && !fe.IsLocal()) {
			one = nil // no evidence against the connection
		}
		if one == nil {
			cancel()
			return nil
		}
		if err == nil {
			err = one
		}
		if failed++; failed == tried {
			try(len(targets))
		}
	}
	return err
}

func (l *outageMonitor) reach(ctx context.Context, origin string, by outage.Layer) error {
	if by == outage.LayerDNS {
		return l.check.CheckName(ctx, item.HostnameOf(item.HostOf(origin)))
	}
	return l.check.CheckHost(ctx, origin+"/")
}

// reportScarce reports, once a minute at most, that this machine has no sockets.
func (l *outageMonitor) reportScarce(why string) {
	now := l.cfg.Now()
	l.mu.Lock()
	say := now.Sub(l.socketsReportedAt) >= outageReportInterval
	if say {
		l.socketsReportedAt = now
	}
	l.mu.Unlock()
	if say {
		l.listener.NoSockets(why)
	}
}

// Outage returns the state of the node's connection to the web.
func (e *Engine) Outage() Outage { return e.outages.outage() }

func (l *outageMonitor) outage() Outage {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := Outage{Offline: l.detector.State == outage.Down, Times: l.times, Total: l.total}
	if now.Offline {
		now.Since, now.Why = l.detector.Since, l.detector.Why
		now.Total += l.cfg.Now().Sub(l.detector.Since)
	}
	if l.check != nil {
		now.Scarce, _ = l.check.Exhaustion()
	}
	return now
}
