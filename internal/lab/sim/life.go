package sim

import "time"

// A life is that of a node's program: it may stand still for a while, and ends.
type life struct {
	k       *kernel
	began   moment
	ended   bool
	paused  bool
	stood   moment   // when it stood still, the last time
	resumed moment   // when it went on after that; 0: it never did
	held    []func() // what happens when it goes on
}

// do does something now; when the program goes on, if it is paused; not at all if it has ended.
func (l *life) do(f func()) {
	switch {
	case l.ended:
	case l.paused:
		l.held = append(l.held, f)
	default:
		f()
	}
}

func (l *life) after(d time.Duration, f func()) { l.k.within(l, d, f) }

// pause makes the program stand still, and resume lets it do at once what it has missed.
func (l *life) pause() { l.paused, l.stood = true, l.k.now }

func (l *life) resume() {
	l.paused, l.resumed = false, l.k.now
	held := l.held
	l.held = nil
	for _, f := range held {
		l.after(0, f)
	}
}

// slept reports whether the program has stood still between two moments, as far as the last time goes.
func (l *life) slept(from, to moment) bool {
	return (l.paused || l.resumed > 0 && l.resumed >= from) && l.stood <= to
}
