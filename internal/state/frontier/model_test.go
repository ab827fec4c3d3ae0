package frontier

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/lab/testmain"
)

// A model implements the frontier's rules in the simplest form, for one connection per host, with lists and maps that
// are searched each time.
type model struct {
	cfg   Config
	hosts map[string]*modelHost
	seq   int
	rank  func(*modelItem) int // current rank; nil: as pushed
}

type modelHost struct {
	items    []modelItem
	flying   []modelItem
	next     time.Time
	ended    time.Time
	delay    time.Duration
	parked   map[string]bool
	deepest  int
	failures int
	throttle int
	away     bool
	loose    bool // the ranks of items in blocks are unknown
}

type modelItem struct {
	url       string
	rank, seq int
	robots    bool
	late      bool
	lift      int8
	void      bool // under way at a host that was removed
}

func (m *model) host(key string) *modelHost {
	h := m.hosts[key]
	if h == nil {
		h = &modelHost{next: time.Now(), parked: map[string]bool{}, away: true}
		m.hosts[key] = h
	}
	return h
}

func (m *model) push(key string, it Item) {
	h := m.host(key)
	m.seq++
	h.deepest = max(h.deepest, int(it.Rank))
	h.add(modelItem{url: it.URL, rank: int(it.Rank), seq: m.seq, robots: it.Robots != "", lift: it.Lift})
}

func (h *modelHost) add(it modelItem) {
	h.away = h.away && it.robots
	if it.robots {
		it.rank = -1
	}
	i, _ := slices.BinarySearchFunc(h.items, it, func(a, b modelItem) int {
		return cmp.Or(a.rank-b.rank, a.seq-b.seq)
	})
	h.items = slices.Insert(h.items, i, it)
}

// rerank changes the ranks of items.
func (m *model) rerank(h *modelHost) {
	for i := range h.items {
		if it := &h.items[i]; !it.late && !it.robots {
			it.rank = m.rank(it)
		}
	}
	slices.SortStableFunc(h.items, func(a, b modelItem) int { return cmp.Or(a.rank-b.rank, a.seq-b.seq) })
}

func (h *modelHost) eligible() bool {
	return len(h.flying) == 0 && len(h.items) > 0 && (len(h.parked) == 0 || h.items[0].robots)
}

func (m *model) wait(h *modelHost) time.Duration { return max(m.cfg.Delay, h.delay) }

// done records how a visit ended. again is the item if it is pending again.
func (m *model) done(key string, r Result, late bool) {
	h := m.hosts[key]
	it := h.flying[0]
	h.flying = nil
	wait := m.wait(h)
	if r.Outcome != NoRequest {
		h.ended = time.Now()
	}
	switch r.Outcome {
	case Answered:
		h.failures, h.throttle = 0, 0
	case Failed:
		h.failures++
		wait = max(wait, min(time.Second<<(h.failures-1), m.cfg.MaxWait))
	case Throttled:
		h.failures = 0
		h.throttle++
		wait = max(wait, r.RetryAfter)
		if r.RetryAfter == 0 || h.throttle > 1 {
			wait = max(wait, min(max(time.Second, m.wait(h))<<(h.throttle-1), m.cfg.MaxWait))
		}
	}
	if r.Outcome != NoRequest {
		h.next = time.Now().Add(wait)
	}
	if len(r.Requeue) == 0 || it.void {
		return
	}
	if late || it.robots {
		m.seq++
		it.seq = m.seq
	}
	if late {
		it.rank, it.late = h.deepest, true
	} else if m.rank != nil && !it.late {
		it.rank = m.rank(&it)
	}
	h.add(it)
}

func (m *model) clone() *model {
	c := &model{cfg: m.cfg, hosts: map[string]*modelHost{}, seq: m.seq, rank: m.rank}
	for key, h := range m.hosts {
		copied := *h
		copied.items, copied.flying, copied.parked = slices.Clone(h.items), slices.Clone(h.flying), maps.Clone(h.parked)
		c.hosts[key] = &copied
	}
	return c
}

// reopen applies the effects of opening a checkpoint.
func (m *model) reopen() {
	for _, h := range m.hosts {
		for _, it := range h.flying {
			if !it.void {
				h.add(it)
			}
		}
		h.flying = nil
		clear(h.parked)
		h.items = slices.DeleteFunc(h.items, func(it modelItem) bool { return it.robots })
		h.next = time.Now().Add(m.wait(h)) // at least
		h.failures, h.throttle = 0, 0
	}
}

// earliest returns the time of the next visit.
func (m *model) earliest() (at time.Time, some bool) {
	for _, h := range m.hosts {
		if h.eligible() && (!some || h.next.Before(at)) {
			at, some = h.next, true
		}
	}
	return at, some
}

// rounds returns the number of repetitions.
func rounds(n int) int { return testmain.Rounds((n+3)/4, n) }

func TestAgainstTheModel(t *testing.T) {
	for name, memory := range map[string]int64{"memory": 0, "tiny": 8 << 10, "small": 256 << 10} {
		t.Run(name, func(t *testing.T) {
			for range rounds(4) {
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) {
					cfg := Config{Hosts: 400, Delay: time.Second, Memory: memory}
					if memory > 0 {
						cfg.Dir = t.TempDir()
					}
					t.Logf("seed %d", seed)
					d := newDuel(t, seed, cfg)
					for range 1500 {
						d.step()
					}
					d.drain()
				})
			}
		})
	}
}

func TestACrashGoesBackToTheCheckpoint(t *testing.T) {
	for range rounds(8) {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			cfg := Config{Hosts: 400, Delay: time.Second, Memory: []int64{8 << 10, 128 << 10}[seed%2], Dir: t.TempDir()}
			d := newDuel(t, seed, cfg)
			for range 20 {
				for range d.rng.IntN(200) {
					if d.step(); d.rng.IntN(40) == 0 {
						d.checkpoint()
					}
				}
				d.crash()
			}
			d.drain()
		})
	}
}

// Ranks change while URLs are pending, by moves and by generations. The first item by the latest ranks is handed out,
// as far as the host's queue is in memory. Of the changes of items in blocks, at most an eighth and a few are missed.
func TestAgainstTheModelWithRanksThatChange(t *testing.T) {
	for name, memory := range map[string]int64{"memory": 0, "tiny": 8 << 10, "small": 256 << 10} {
		for _, refreshes := range []bool{false, true} {
			t.Run(fmt.Sprint(name, refreshes), func(t *testing.T) {
				for range rounds(2) {
					seed := rand.Uint64()
					synctest.Test(t, func(t *testing.T) {
						cfg := Config{Hosts: 400, Delay: time.Second, Memory: memory}
						if memory > 0 {
							cfg.Dir = t.TempDir()
						}
						t.Logf("seed %d", seed)
						d := newRankedDuel(t, seed, cfg)
						for range 1500 {
							if d.step(); refreshes && d.rng.IntN(50) == 0 {
								d.refresh()
							}
						}
						d.drain()
						if d.moves < 300 || d.order < 100 {
							t.Errorf("%d moves, the order of %d visits was looked at", d.moves, d.order)
						}
					})
				}
			})
		}
	}
}

func TestACrashWithRanksThatChange(t *testing.T) {
	for range rounds(2) {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			cfg := Config{Hosts: 400, Delay: time.Second, Memory: []int64{8 << 10, 128 << 10}[seed%2], Dir: t.TempDir()}
			d := newRankedDuel(t, seed, cfg)
			for range 20 {
				for range d.rng.IntN(200) {
					if d.step(); d.rng.IntN(40) == 0 {
						d.checkpoint()
					}
					if d.rng.IntN(50) == 0 {
						d.refresh()
					}
				}
				d.crash()
				d.afterCrash()
			}
			d.drain()
		})
	}
}
