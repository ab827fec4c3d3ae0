package sim

import (
	"testing"
	"time"
)

// lax is a view by which all that waits may be asked for, and no link is the node's.
type lax struct{ emptyView }

func (lax) MayFetch(string, time.Time) bool { return true }

// TestAWorkerTakesTheNextHost has hosts wait for the one worker, of the first of which there is nothing to be asked
// when their turn comes.
func TestAWorkerTakesTheNextHost(t *testing.T) {
	cfg := small()
	cfg.Workers = 1
	w := newWorld(cfg.withDefaults(), 1, -1, false)
	w.identify(w.machines[0])
	p := w.newProcess(w.machines[0])
	p.view = lax{}
	defer p.close()
	for host := range int32(4) {
		h := p.state.host(host)
		h.waiting = 1
		p.scheduleHost(h)
	}
	w.k.run(time.Millisecond/2, func() bool { return p.busy == 1 && len(p.queue) == 3 })
	delete(p.state.hosts, p.queue[0].host) // it went elsewhere
	p.queue[1].waiting = 0
	last := p.queue[2]
	w.k.run(time.Minute, func() bool { return last.visiting })
	if !last.visiting {
		t.Errorf("a host waits behind one that is not to be asked: %d workers are busy, %d hosts wait for one", p.busy,
			len(p.queue))
	}
}
