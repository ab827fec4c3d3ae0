package sim

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

func (e engine) Survey(_ context.Context, f func([]string) error) error {
	var found []string
	for _, h := range e.state.sortedHosts() {
		if name := e.w.web.hosts[h].name; !e.view.Ours(name) && e.state.isPermanent(h) {
			found = append(found, name)
		}
	}
	return f(found)
}

func (e engine) Queues(_ context.Context, most int) ([]strategy.Queue, error) {
	var all []strategy.Queue
	for _, n := range e.state.sortedHosts() {
		if h := e.state.hosts[n]; h.waiting != 0 {
			all = append(all, strategy.Queue{Host: e.w.web.hosts[n].name, Pending: bits.OnesCount64(h.waiting)})
		}
	}
	slices.SortStableFunc(all, func(a, b strategy.Queue) int { return cmp.Compare(b.Pending, a.Pending) })
	return all[:min(len(all), most)], nil
}

func (e engine) Busy(hosts []string) map[string]func(context.Context) error {
	busy := map[string]func(context.Context) error{}
	for _, v := range e.visits {
		if host := v.site().name; slices.Contains(hosts, host) {
			busy[host] = func(ctx context.Context) error {
				if !v.ended {
					e.await(func(done func()) { v.onEnd = append(v.onEnd, done) })
				}
				return ctx.Err()
			}
		}
	}
	return busy
}

var errNoAnswer = errors.New("no answer")

// Probe tries to reach a host. Some pairs of machines and hosts never do.
func (e engine) Probe(ctx context.Context, name string, timeout time.Duration) (time.Duration, string, error) {
	host, ok := e.w.web.byName[name]
	took := e.w.connect(e.m.index, host)
	e.sleep(ctx, min(took, timeout))
	if !ok || took > timeout {
		return min(took, timeout), "", errNoAnswer
	}
	return took, "", ctx.Err()
}

// connect is how long a machine takes to reach a host; forever if it never does.
func (w *world) connect(machine int, host int32) time.Duration {
	h := hash(w.web.seed, 5, uint64(host), uint64(machine))
	if float64(h%1000)/1000 < w.cfg.Unreachable {
		return forever
	}
	if w.cfg.EqualReach {
		return 20 * time.Millisecond
	}
	return 5*time.Millisecond + time.Duration(h>>10%uint64(400*time.Millisecond))
}

// reportLoad is how much the node has to do, and what it has come to since that was asked for.
func (p *process) load() strategy.Load {
	p.rate += (float64(p.fetched)/(p.w.cfg.Timing.Beat/2).Seconds() - p.rate) / 4
	p.fetched = 0
	e := strategy.Load{Node: p.node, Rate: p.rate, Busy: float64(p.busy) / float64(p.w.cfg.Workers),
		Pages: p.pages, Enqueued: p.receivedLinks, Machine: strategy.Machine{Cores: 4, GHz: 2.4, MemoryGB: 4,
			NetworkMbps: 20 / p.m.slowness}}
	for _, h := range p.state.hosts {
		if h.waiting != 0 || h.visiting {
			e.Hosts++
			e.Pending += int64(bits.OnesCount64(h.waiting))
		}
		if h.visiting && h.waiting != 0 {
			e.Pending--
			e.Fetching++
		}
	}
	return e
}
