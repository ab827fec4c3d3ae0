package meshnodes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"kumo/internal/app/meshnode"
	"kumo/internal/app/meshnode/control"
	"kumo/internal/app/session"
	"kumo/internal/base/settings"
	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/recovery"
)

func (l *nodeRun) openCrawl() error {
	j := l.job
	j.Memory = j.MemoryBudget() * (historyShare - 1) / historyShare
	j.Crawl.KeepOpen, j.Crawl.Claims = true, true
	f := l.folder
	l.folder = nil // now owned by the session, or closed
	// It has connections to many nodes, like a server.
	c, err := l.Open(f, j, &session.ClusterHooks{Join: l.joinEngine, Server: true})
	if err != nil {
		return err
	}
	l.crawl.Store(c)
	return nil
}

func (l *nodeRun) joinEngine(_ *recovery.State, p *crawl.Parts) error {
	p.Router, p.Finished = &l.router, l.mesh.Finished
	if l.uploader != nil {
		p.AtRisk = l.atRisk
	}
	p.NewScopeSeed = func(u weburl.URL) { l.mesh.NewScopeSeed(u.String()) }
	return nil
}

func (l *nodeRun) blocked(ctx context.Context, rules []string) ([]byte, error) {
	c := l.crawl.Load()
	if c == nil {
		return nil, errNotBegun
	}
	return c.CountBlocked(ctx, rules)
}

var errNotBegun = errors.New("this node has not started to crawl")

// applySettings applies the settings of the crawl's record that may change during the run.
func (l *nodeRun) applySettings(now map[string][]string) {
	c := l.crawl.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c == nil || l.ApplySettings == nil || maps.EqualFunc(now, l.settings, slices.Equal) {
		return
	}
	j := *l.job
	err := l.ApplySettings(&j, settings.FromMap(now))
	if err == nil {
		err = c.Tune(&j)
	}
	if err != nil {
		l.Log.Warn("cannot apply the crawl's new settings", "err", err)
		return
	}
	l.settings = now
}

const rateWindow = 3 * time.Second // for computing a rate

// isFull reports whether hosts wait for a slot. The limit is approximate: some slots are empty for a moment.
func (l *nodeRun) isFull() bool {
	c := l.crawl.Load()
	counts := c.Frontier.Counts()
	return counts.Active*10 >= c.Job.HostsAtOnce()*7 && counts.Waiting > 0
}

func (l *nodeRun) measureRate(ctx context.Context) {
	c := l.crawl.Load()
	was, at := c.Stats.Pages(), time.Now()
	for range wait.Every(ctx, rateWindow) {
		is, now := c.Stats.Pages(), time.Now()
		l.mu.Lock()
		l.rate = float64(is-was) / now.Sub(at).Seconds()
		if l.samples++; l.isFull() {
			l.fullSamples++
		}
		l.mu.Unlock()
		was, at = is, now
	}
}

// figures returns the work that the node reports.
func (l *nodeRun) figures() meshnode.Figures {
	peers := l.conn.Stats().Peers
	c := l.crawl.Load()
	if c == nil {
		return meshnode.Figures{Peers: peers}
	}
	totals, counts := c.Stats.Totals(), c.Frontier.Counts()
	links, _ := c.Engine.Links.Outbox()
	l.mu.Lock()
	rate := l.rate
	l.mu.Unlock()
	return meshnode.Figures{Work: control.Work{Pages: totals.Pages, Refetched: l.Refetched(), Rate: rate,
		Hosts: counts.Active + counts.Waiting + counts.Backing, Waiting: counts.URLs, Known: c.URLsKnown(), Outbox: links,
		InFlight: counts.Active}, Bytes: totals.Bytes, Peers: peers, Condition: c.Condition(time.Now())}
}

// A workSample is the engine's completed and pending work at one time.
type workSample struct {
	asked   int64 // URLs and robots.txt
	waiting int
	when    time.Time
}

// maxSpareFactor limits the ratio of a node's estimated capacity to its current rate.
const maxSpareFactor = 16

// capacity estimates how many pages per second this node could fetch, from its current rate and its share of free
// slots. While it has nothing to do, the last estimate remains.
func (l *nodeRun) capacity(rate float64, active int, busy bool) float64 {
	places := float64(l.crawl.Load().Job.HostsAtOnce())
	if rate > 0 && !busy {
		rate *= min(max(places/float64(max(active, 1)), 1), maxSpareFactor)
	}
	switch {
	case rate > 0:
		l.lastCapacity = rate
	case l.lastCapacity == 0: // no rate measured yet
		l.lastCapacity = places / 4
	}
	return l.lastCapacity
}

// load returns the engine's work since the last call. It counts as busy if most of the time all host slots were in use
// and other hosts waited.
func (l *nodeRun) load() mesh.Load {
	c := l.crawl.Load()
	counts := c.Frontier.Counts()
	totals := c.Stats.Totals()
	now := workSample{totals.Pages + totals.Robots, counts.URLs, time.Now()}
	was := l.last
	l.last = now
	l.mu.Lock()
	load := mesh.Load{Waiting: int64(now.waiting), Busy: 2*l.fullSamples > l.samples}
	l.samples, l.fullSamples = 0, 0
	l.mu.Unlock()
	fetched, d := int64(0), now.when.Sub(was.when).Seconds()
	if !was.when.IsZero() && d > 0 {
		fetched = now.asked - was.asked
		load.Arriving = max(float64(fetched+int64(now.waiting-was.waiting))/d, 0)
	}
	load.Rate = l.capacity(float64(fetched)/max(d, 1), counts.Active, load.Busy)
	return load
}
