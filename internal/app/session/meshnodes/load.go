package meshnodes

import (
	"cmp"
	"context"
	"sync"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member/mesh"
)

// A workSample is the state of an engine's work at one time.
type workSample struct {
	when    time.Time
	asked   int64 // URLs and robots.txt so far
	waiting int   // URLs
	active  int   // hosts with a visit under way
	full    bool  // hosts wait for a slot
	limited bool  // visits wait for --max-rate
}

// A loadMeter computes a node's load from samples. It is safe for concurrent use.
type loadMeter struct {
	limit  float64 // requests per second; 0: none
	places int     // hosts at once

	mu       sync.Mutex // guards below
	recent   []workSample
	samples  int
	mean     float64 // requests per second, over some time
	arriving float64 // URLs per second that arrive, over that time
	capacity float64 // requests per second that this node could send
	busy     float64 // share of the last samples in which hosts waited for the node
	load     mesh.Load
}

const (
	sampleEvery = time.Second
	rateWindow  = 3 // samples, for the current rate
	// meanWindow is the number of samples over which rates are averaged.
	meanWindow = 60
	busyWindow = 4
	// maxSpareFactor limits the ratio of a node's estimated capacity to its current rate.
	maxSpareFactor = 16
)

// add adds a sample. queues are the longest queues of hosts.
func (m *loadMeter) add(now workSample, queues []mesh.QueuedHost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent = append(m.recent, now)
	n := len(m.recent)
	if n == 1 { // before the first request, only the limits are known
		m.capacity = cmp.Or(m.limit, float64(m.places)/4)
		m.update(now, queues)
		return
	}
	was := m.recent[n-2]
	took := now.when.Sub(was.when).Seconds()
	if m.recent = m.recent[max(0, n-1-rateWindow):]; took <= 0 {
		return
	}
	rate := float64(now.asked-was.asked) / took
	m.samples++
	m.mean += (rate - m.mean) / float64(min(m.samples, meanWindow))
	switch {
	case now.limited:
		m.capacity = m.limit
	case now.full:
		m.capacity += (rate - m.capacity) / min(float64(m.samples), meanWindow)
	default: // it could send more
		spare := float64(m.places) / float64(max(now.active, 1))
		m.capacity = max(m.capacity, m.mean*min(max(spare, 1), maxSpareFactor))
	}
	if m.limit > 0 {
		m.capacity = min(m.capacity, m.limit)
	}
	arriving := rate + float64(now.waiting-was.waiting)/took
	m.arriving += (arriving - m.arriving) / float64(min(m.samples, meanWindow))
	m.update(now, queues)
}

// update sets the load after a sample.
func (m *loadMeter) update(now workSample, queues []mesh.QueuedHost) {
	busy := 0.0
	if now.full || now.limited {
		busy = 1
	}
	m.busy += (busy - m.busy) / float64(min(m.samples+1, busyWindow))
	waiting := int64(now.waiting)
	m.load = mesh.Load{Waiting: waiting, Arriving: max(m.arriving, 0), Rate: m.capacity, Busy: m.busy >= 0.5,
		Backlog: mesh.BacklogOf(waiting, queues, m.capacity)}
}

// rate returns the current number of requests per second.
func (m *loadMeter) rate() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.recent) < 2 {
		return 0
	}
	first, last := m.recent[0], m.recent[len(m.recent)-1]
	return float64(last.asked-first.asked) / last.when.Sub(first.when).Seconds()
}

// last returns the load at the last sample; false before the first.
func (m *loadMeter) last() (mesh.Load, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load, len(m.recent) > 0
}

const (
	// longQueues is the number of longest queues whose delay is part of the load.
	longQueues = 256
	// manyHosts is the number of pending hosts beyond which their delays do not matter.
	manyHosts = 1 << 13
)

// measureLoad measures the engine's load regularly.
func (l *nodeRun) measureLoad(ctx context.Context) {
	c := l.crawl.Load()
	m := &l.meter
	m.mu.Lock()
	m.limit, m.places = c.Job.Crawl.Rate, c.Job.HostsAtOnce()
	m.mu.Unlock()
	for range wait.Every(ctx, sampleEvery) {
		counts, totals := c.Frontier.Counts(), c.Stats.Totals()
		now := workSample{when: time.Now(), asked: totals.Pages + totals.Robots, waiting: counts.URLs + counts.Active,
			active: counts.Active, limited: c.Engine.Inspector.AtRateLimit()}
		// approximate: some slots are empty for a moment
		now.full = counts.Active*10 >= m.places*7 && counts.Waiting > 0
		var queues []mesh.QueuedHost
		if counts.Active+counts.Waiting < manyHosts {
			all, err := c.Engine.Inspector.Queues(ctx, longQueues)
			if err != nil && ctx.Err() == nil {
				l.Log.Debug("cannot read the longest queues", "err", err)
			}
			for _, q := range all {
				queues = append(queues, mesh.QueuedHost{Pending: int64(q.Pending), Each: q.Delay})
			}
		}
		m.add(now, queues)
	}
}
