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

// A Checker can check whether hosts can be reached. A [visit.Fetcher] that is none is never considered offline.
type Checker interface {
	// CheckHost connects to a host as a visit does, and sends nothing.
	CheckHost(ctx context.Context, url string) error
	CheckName(ctx context.Context, hostname string) error
	Route(url string) (looksUp, proxied bool)
	IsNameCached(hostname string) bool      // without a look-up
	LastFound() time.Time                   // when a look-up last found a name
	ForgetFailures()                        // forget what an outage has left
	Exhaustion() (times int64, last string) // how often this machine had no socket for an attempt
}

// ErrOffline is why a run ends that was cut off from the web for longer than Config.OutageWait. The rest waits for the
// next run.
var ErrOffline = errors.New("cut off from the web for too long")

// ErrNoProxy is why a run ends whose proxy cannot be reached, and could not be since it began: none of its hosts is to
// blame, and nothing was fetched through it.
var ErrNoProxy = errors.New("the proxy cannot be reached")

// noProxy is ErrNoProxy of an attempt.
func noProxy(err error) error {
	p, is := errors.AsType[*fetch.ProxyError](err)
	if !is {
		return fmt.Errorf("%w: %w", ErrNoProxy, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoProxy, p.Proxy, p.Err)
}

// An Outage is what there is to be said of the line at one time.
type Outage struct {
	Offline bool      // from the web: nothing is fetched
	Since   time.Time // then
	Why     string
	Times   int64         // that it was so in this run, this one included
	Total   time.Duration // for which it was
	Scarce  int64         // attempts for which this machine had no socket
}

// A line is the node's connection to the web, as far as its state is known.
type outageMonitor struct {
	cfg      *Config
	listener Listener
	stopper  *stopper

	check  Checker       // nil: it always works
	gate   valve         // shut while no host at all is to be visited
	down   atomic.Bool   // hosts that depend on what is down are not to be visited
	probes atomic.Int32  // visits that are made although it is down, as any answer ends that
	wake   chan struct{} // wakes keepChecking

	mu                sync.Mutex // guards below
	detector          outage.Detector
	times             int64
	total             time.Duration
	reportedAt        time.Time          // when it was last reported that the crawl is offline
	socketsReportedAt time.Time          // when it was last reported that this machine has no sockets
	ended             []time.Duration    // outages that an answer has ended, not reported yet
	forgetLookups     bool               // a doubt has ended: what failed look-ups have left is to be forgotten
	abort             context.CancelFunc // ends the check under way; nil if there is none
}

// probeVisits are made after each check that reached nothing.
const probeVisits = 3

func newOutageMonitor(cfg *Config, f visit.Fetcher, l Listener, stop *stopper) *outageMonitor {
	check, _ := f.(Checker)
	return &outageMonitor{cfg: cfg, listener: l, stopper: stop, check: check, wake: make(chan struct{}, 1),
		detector: outage.Detector{MaxOutage: cfg.OutageWait}}
}

// update follows the detector's state. The line's lock is held.
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

// origin is a URL's origin as the detector knows it.
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

// worked records an answer that came at a time.
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

// result records when a name was last found. The line's lock is held.
func (l *outageMonitor) found() {
	at := l.check.LastFound()
	l.record(at, func() outage.Event { return l.detector.Resolved(at) })
}

// record records evidence, which may end a doubt or an outage. The line's lock is held.
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

// failed reports whether a miss does not count, because the crawl may be offline, and how long its URL waits then.
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

// isHostFault reports whether the line has worked since a host's failure before this one, so that the host is at fault.
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

// suspected reports whether the crawl may be offline, and how long a visit is to wait then.
func (l *outageMonitor) suspected() (wait time.Duration, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.detector.RetryAfter(), l.detector.State != outage.Up
}

// shut reports whether no visit at all is to be made.
func (l *outageMonitor) shut() bool { return l.gate.shut() && l.probes.Load() <= 0 }

// awaitRoom waits until a visit may be made, or the context ends.
func (l *outageMonitor) await(ctx context.Context) { l.gate.awaitWhile(ctx, l.shut) }

// blocks reports whether a visit is not to be made now because its host depends on what is down, and when to try
// again. A scout is let through.
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
		!l.gate.shut() && (!l.detector.Affects(to) || l.detector.Layer == outage.LayerDNS && !l.detector.ProxyFailed && known),
		l.probes.Add(-1) >= 0:
		return 0, false
	case l.gate.shut():
		return 0, true // all wait at the gate
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
	case outage.Recovered, outage.SitesGone: // when it has taken too long, it lasts
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

const outageReportInterval = time.Minute // that the crawl is cut off, or that this machine has no sockets

const (
	firstProbed = 12          // hosts that are tried at once
	headStart   = time.Second // that they have before the others are tried, too
)

// reachAny tries hosts, until one is reached. Where the proxy is in doubt, it is enough that this is.
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
			one = nil // nothing is known against the line
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

// Outage is what is known of the node's connection to the web.
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
