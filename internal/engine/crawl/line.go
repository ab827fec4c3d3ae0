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
	// Check connects to a host as a visit does, and sends nothing.
	Check(ctx context.Context, url string) error
	CheckName(ctx context.Context, hostname string) error
	Route(url string) (looksUp, proxied bool)
	Known(hostname string) bool         // without a look-up
	Found() time.Time                   // when a look-up last found a name
	Recover()                           // forget what an outage has left
	Scarce() (times int64, last string) // how often this machine had no socket for an attempt
}

// ErrCutOff is why a run ends that was cut off from the web for longer than Config.OutageWait. The rest waits for the
// next run.
var ErrCutOff = errors.New("cut off from the web for too long")

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
	CutOff bool      // from the web: nothing is fetched
	Since  time.Time // then
	Why    string
	Times  int64         // that it was so in this run, this one included
	Total  time.Duration // for which it was
	Scarce int64         // attempts for which this machine had no socket
}

// A line is the node's connection to the web, as far as its state is known.
type line struct {
	cfg      *Config
	listener Listener
	stopper  *stopper

	check  Checker       // nil: it always works
	gate   valve         // shut while no host at all is to be visited
	down   atomic.Bool   // hosts that depend on what is down are not to be visited
	scouts atomic.Int32  // visits that are made although it is down, as any answer ends that
	wake   chan struct{} // wakes keepLine

	mu     sync.Mutex // guards below
	o      outage.Detector
	times  int64
	total  time.Duration
	said   time.Time          // when it was last reported that the crawl is offline
	scarce time.Time          // when it was last reported that this machine has no sockets
	back   []time.Duration    // outages that an answer has ended, not reported yet
	stale  bool               // a doubt has ended: what failed look-ups have left is to be forgotten
	abort  context.CancelFunc // ends the check under way; nil if there is none
}

// scoutVisits are made after each check that reached nothing.
const scoutVisits = 3

func newLine(cfg *Config, f visit.Fetcher, l Listener, stop *stopper) *line {
	check, _ := f.(Checker)
	return &line{cfg: cfg, listener: l, stopper: stop, check: check, wake: make(chan struct{}, 1),
		o: outage.Detector{Wait: cfg.OutageWait}}
}

// update follows the detector's state. The line's lock is held.
func (l *line) update(now time.Time) {
	l.down.Store(l.o.State == outage.Down)
	if l.o.State != outage.Down {
		l.scouts.Store(0)
	}
	l.gate.set(l.o.Shut(now))
	if l.o.State == outage.Up && l.abort != nil {
		l.abort()
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// origin is a URL's origin as the detector knows it.
func (l *line) origin(origin string, hash uint64) outage.Origin {
	o := outage.Origin{URL: origin, Hash: hash}
	if l.check != nil {
		o.LooksUp, o.Proxied = l.check.Route(origin)
	}
	return o
}

func (l *line) addSeed(origin string, hash uint64) {
	seed := l.origin(origin, hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.o.AddSeed(seed)
}

// worked records an answer that came at a time.
func (l *line) worked(at time.Time, origin string, hash uint64) {
	if l.check == nil {
		return
	}
	from := l.origin(origin, hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record(at, func() outage.Event { return l.o.Worked(at, from) })
	l.found()
}

// found records when a name was last found. The line's lock is held.
func (l *line) found() {
	at := l.check.Found()
	l.record(at, func() outage.Event { return l.o.Found(at) })
}

// record records evidence, which may end a doubt or an outage. The line's lock is held.
func (l *line) record(at time.Time, evidence func() outage.Event) {
	was, since := l.o.State, l.o.Since
	ev := evidence()
	if l.o.State == was {
		return
	}
	l.stale = was == outage.Down || l.o.Way == outage.ByName
	if ev == outage.BackAgain {
		l.total += at.Sub(since)
		l.back = append(l.back, at.Sub(since))
	}
	l.update(at)
}

func (l *line) gone(hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.o.Gone(hash)
}

// failed reports whether a miss does not count, because the crawl may be offline, and how long its URL waits then.
func (l *line) failed(m *outage.Miss) (wait time.Duration, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check == nil {
		return 0, false
	}
	l.found()
	up := l.o.State == outage.Up
	off = l.o.Failed(m)
	if up && off {
		l.update(m.At)
	}
	return l.o.RetryAfter(), off
}

// proven reports whether the line has worked since a host's failure before this one, so that the host is at fault.
func (l *line) proven(m *outage.Miss, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check == nil {
		return true
	}
	l.found()
	proven := l.o.Proven(m, since)
	if !proven && l.o.State != outage.Up {
		l.update(m.At)
	}
	return proven
}

// doubted reports whether the crawl may be offline, and how long a visit is to wait then.
func (l *line) doubted() (wait time.Duration, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o.RetryAfter(), l.o.State != outage.Up
}

// shut reports whether no visit at all is to be made.
func (l *line) shut() bool { return l.gate.shut() && l.scouts.Load() <= 0 }

// await waits until a visit may be made, or the context ends.
func (l *line) await(ctx context.Context) { l.gate.awaitWhile(ctx, l.shut) }

// holdsBack reports whether a visit is not to be made now because its host depends on what is down, and when to try
// again. A scout is let through.
func (l *line) holdsBack(url string) (wait time.Duration, held bool) {
	if !l.down.Load() {
		return 0, false
	}
	origin := item.OriginOf(url)
	to := l.origin(origin, 0)
	known := to.LooksUp && l.check.Known(item.HostnameOf(item.HostOf(origin)))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.o.State != outage.Down,
		!l.gate.shut() && (!l.o.Affects(to) || l.o.Way == outage.ByName && !l.o.Own && known),
		l.scouts.Add(-1) >= 0:
		return 0, false
	case l.gate.shut():
		return 0, true // all wait at the gate
	}
	return l.o.RetryAfter(), true
}

// keepLine makes the checks that are due, until the context ends.
func (l *line) keepLine(ctx context.Context) error {
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
			l.reportBack()
		case <-timer.C:
			if due {
				l.checkLine(ctx)
			}
		}
	}
}

func (l *line) due() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o.Due()
}

// reportBack reports outages that an answer has ended.
func (l *line) reportBack() {
	l.mu.Lock()
	back, stale := l.back, l.stale
	l.back, l.stale = nil, false
	l.mu.Unlock()
	if stale {
		l.check.Recover()
	}
	for _, lasted := range back {
		l.listener.Back(lasted, true)
	}
}

// checkLine makes one check, and acts on its result.
func (l *line) checkLine(ctx context.Context) {
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	if l.o.State == outage.Up {
		l.mu.Unlock()
		return
	}
	c := l.o.Check()
	l.abort = cancel
	l.mu.Unlock()
	err := l.reachAny(checking, c.Origins, c.Way, c.Own)
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
	was, since := l.o.State, l.o.Since
	ev := l.o.Checked(now, &c, err == nil, why)
	say := ev == outage.CutOffNow || ev == outage.StillOff && now.Sub(l.said) >= sayOffAgain
	switch ev {
	case outage.CutOffNow:
		l.times++
	case outage.BackAgain, outage.Resigned: // when it has taken too long, it lasts
		l.total += now.Sub(since)
	}
	if say {
		l.said = now
	}
	if l.o.State == outage.Down {
		l.scouts.Store(scoutVisits)
		l.gate.pulse()
	}
	recovered := err == nil && was != outage.Up && (was == outage.Down || c.Way == outage.ByName)
	l.update(now)
	l.mu.Unlock()
	if recovered {
		l.check.Recover()
	}
	switch {
	case say:
		l.listener.CutOff(since, why)
	case ev == outage.BackAgain:
		l.listener.Back(now.Sub(since), true)
	case ev == outage.Resigned:
		l.listener.Back(now.Sub(since), false)
	case ev == outage.TooLong:
		l.stopper.stop(fmt.Errorf("%w: %s", ErrCutOff, why))
	case ev == outage.NoProxy:
		l.stopper.stop(noProxy(err))
	}
}

const sayOffAgain = time.Minute // that the crawl is cut off, or that this machine has no sockets

const (
	firstTried = 12          // hosts that are tried at once
	headStart  = time.Second // that they have before the others are tried, too
)

// reachAny tries hosts, until one is reached. Where the proxy is in doubt, it is enough that this is.
func (l *line) reachAny(ctx context.Context, targets []string, by outage.Way, own bool) (err error) {
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
	try(firstTried)
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
		if fe, ok := errors.AsType[*fetch.Error](one); ok && (fe.Failure == page.Local || own && !fe.OfLine()) {
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

func (l *line) reach(ctx context.Context, origin string, by outage.Way) error {
	if by == outage.ByName {
		return l.check.CheckName(ctx, item.HostnameOf(item.HostOf(origin)))
	}
	return l.check.Check(ctx, origin+"/")
}

// reportScarce reports, once a minute at most, that this machine has no sockets.
func (l *line) reportScarce(why string) {
	now := l.cfg.Now()
	l.mu.Lock()
	say := now.Sub(l.scarce) >= sayOffAgain
	if say {
		l.scarce = now
	}
	l.mu.Unlock()
	if say {
		l.listener.Scarce(why)
	}
}

// Outage is what is known of the node's connection to the web.
func (e *Engine) Outage() Outage { return e.line.outage() }

func (l *line) outage() Outage {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := Outage{CutOff: l.o.State == outage.Down, Times: l.times, Total: l.total}
	if now.CutOff {
		now.Since, now.Why = l.o.Since, l.o.Why
		now.Total += l.cfg.Now().Sub(l.o.Since)
	}
	if l.check != nil {
		now.Scarce, _ = l.check.Scarce()
	}
	return now
}
