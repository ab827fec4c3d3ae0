package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/outage"
	"kumo/internal/page"
)

// A Checker can tell whether the line works. A Fetcher that is none is believed to have one that always does.
type Checker interface {
	// can a host that has worked be reached now? Nothing is asked of it.
	Check(ctx context.Context, url string) error
	CheckName(ctx context.Context, hostname string) error // is its name found?
	Found() time.Time                                     // when a name that had to be asked for was found last
	Recover()                                             // forget what an outage has left
	Scarce() (times int64, last string)                   // how often this machine had no socket for an attempt
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

// A line is what the node reaches the web by, as far as that is known.
type line struct {
	check Checker       // nil: it is believed to work
	gate  valve         // shut while that is in doubt, or not so
	wake  chan struct{} // tells who makes the checks that there is one to make

	mu     sync.Mutex // guards below
	o      outage.Detector
	times  int64
	total  time.Duration
	said   time.Time // when it was last said that the crawl is cut off
	scarce time.Time // when it was last said that this machine has no sockets
}

func newLine(f Fetcher, wait time.Duration) *line {
	check, _ := f.(Checker)
	return &line{check: check, wake: make(chan struct{}, 1), o: outage.Detector{Wait: wait}}
}

// settle acts on the state of the machine. The line's lock is held.
func (l *line) settle() {
	l.gate.set(l.o.State != outage.Up)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *line) worked(now time.Time, origin string, hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.o.Worked(now, origin, hash)
}

func (l *line) gone(hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.o.Gone(hash)
}

// A miss is a visit that did not reach its host.
type miss struct {
	now    time.Time
	origin string
	hash   uint64
	by     outage.Way
	own    bool // the proxy was not reached
	had    bool // the origin had worked
	why    string
}

// failed reports whether a miss is nobody's fault, because the crawl may be cut off.
func (l *line) failed(m *miss) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check == nil {
		return false
	}
	l.o.Found(l.check.Found())
	up := l.o.State == outage.Up
	off := l.o.Failed(m.now, m.origin, m.hash, m.by, m.own, m.had, m.why)
	if up && off {
		l.settle()
	}
	return off
}

// proven reports whether the line has worked since a host failed first, so that the host is at fault.
func (l *line) proven(m *miss, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check == nil {
		return true
	}
	l.o.Found(l.check.Found())
	proven := l.o.Proven(m.now, since, m.origin, m.by, m.why)
	if !proven && l.o.State != outage.Up {
		l.settle()
	}
	return proven
}

// excuse keeps what is not a host's fault from being counted against it: where this machine had no socket, where the
// crawl may be cut off, and for some time where a host had answered before.
func (w *worker) excuse(v *frontier.Visit, f visitOutcome) visitOutcome {
	w.attempts.note(w.cfg.Now(), f)
	if f.failure == page.Local {
		w.sayScarce(f.detail)
		return f.forgiven(v, frontier.NoRequest) // who dials has waited already
	}
	by, ofLine := outage.WayOf(f.failure)
	if !ofLine || f.outcome != frontier.Failed {
		return f
	}
	origin := originOf(v.URL)
	s := w.origins.healthOf(origin)
	m := &miss{now: w.cfg.Now(), origin: origin, hash: w.origins.hash(origin), by: by, own: f.own, had: s.answered,
		why: f.detail}
	first := m.now
	if s.since != 0 {
		first = w.origins.at(s.since)
	}
	switch {
	case w.line.failed(m):
		return f.forgiven(v, frontier.NoRequest)
	case f.own:
		return f.forgiven(v, frontier.Failed)
	case !f.failure.OfHost():
	case s.answered && m.now.Sub(first) < w.cfg.Patience:
		return f.forgiven(v, frontier.Failed)
	case (!f.again || s.refusals+1 >= maxRefusals) && !w.line.proven(m, first):
		return f.forgiven(v, frontier.Failed)
	}
	return f
}

// forgiven is a fate without consequences: the URL waits again, and the visit was none of those that it may have.
func (f visitOutcome) forgiven(v *frontier.Visit, outcome frontier.Outcome) visitOutcome {
	v.Tries--
	f.again, f.late, f.excused, f.outcome = true, false, true, outcome
	return f
}

// keepLine makes the checks that are due, until the context ends.
func (e *Engine) keepLine(ctx context.Context) error {
	if e.line.check == nil {
		return nil
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at, due := e.line.due()
		if due {
			timer.Reset(at.Sub(e.cfg.Now()))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.line.wake:
		case <-timer.C:
			if due {
				e.checkLine(ctx)
			}
		}
	}
}

func (l *line) due() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o.Due()
}

// checkLine makes one check, and acts on what it comes to.
func (e *Engine) checkLine(ctx context.Context) {
	l := e.line
	l.mu.Lock()
	targets, by, own := l.o.Targets(), l.o.Way, l.o.Own
	l.mu.Unlock()
	err := l.reachAny(ctx, targets, by, own)
	if ctx.Err() != nil {
		return
	}
	why := ""
	if err != nil {
		why = err.Error()
	} else {
		l.check.Recover()
	}
	now := e.cfg.Now()
	l.mu.Lock()
	ev := l.o.Checked(now, err == nil, why)
	since := l.o.Since
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
	l.settle()
	l.mu.Unlock()
	switch {
	case say:
		e.listener.cutOff(since, why)
	case ev == outage.BackAgain:
		e.listener.back(now.Sub(since), true)
	case ev == outage.Resigned:
		e.listener.back(now.Sub(since), false)
	case ev == outage.TooLong:
		e.control.stop(fmt.Errorf("%w: %s", ErrCutOff, why))
	case ev == outage.NoProxy:
		e.control.stop(noProxy(err))
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
		return l.check.CheckName(ctx, outage.HostnameOf(origin))
	}
	return l.check.Check(ctx, origin+"/")
}

// sayScarce says, now and then, that this machine has no sockets.
func (e *Engine) sayScarce(why string) {
	now := e.cfg.Now()
	e.line.mu.Lock()
	say := now.Sub(e.line.scarce) >= sayOffAgain
	if say {
		e.line.scarce = now
	}
	e.line.mu.Unlock()
	if say {
		e.listener.scarce(why)
	}
}

// Outage is what there is to be said of the line now.
func (e *Engine) Outage() Outage {
	l := e.line
	l.mu.Lock()
	defer l.mu.Unlock()
	now := Outage{CutOff: l.o.State == outage.Down, Times: l.times, Total: l.total}
	if now.CutOff {
		now.Since, now.Why = l.o.Since, l.o.Why
		now.Total += e.cfg.Now().Sub(l.o.Since)
	}
	if l.check != nil {
		now.Scarce, _ = l.check.Scarce()
	}
	return now
}
