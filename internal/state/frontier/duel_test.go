package frontier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/state/rank"
)

// A duel compares a frontier with the model.
type duel struct {
	t      *testing.T
	rng    *rand.Rand
	cfg    Config
	f      *Frontier
	m      *model
	urls   int
	flying []*Visit
	loose  bool                  // hosts may be due later than in the model
	gone   bool                  // after a restart, suppressed items count until they are reached
	spared func(key string) bool // hosts that an iteration reads, where nothing may be done
	looks  bool                  // an inspector is reading a host
	waits  bool                  // a caller waits for a visit
	saved  *model
	cut    *Cut
	cutAs  *model

	orphans int // removed robots.txt fetches

	ranker *fakeRanker // nil: ranks never change
	moves  int         // number of moves
	order  int         // visits whose order was checked

	refreshed bool // ranks have changed without a move
}

func newDuel(t *testing.T, seed uint64, cfg Config) *duel {
	cfg.MaxWait = time.Hour
	d := &duel{t: t, rng: rand.New(rand.NewPCG(seed, 1)), cfg: cfg, m: &model{cfg: cfg, hosts: map[string]*modelHost{}}}
	d.saved = d.m.clone()
	d.open()
	return d
}

func (d *duel) open() {
	f, _, err := Open(d.cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	d.f = f
}

func (d *duel) key() string {
	for {
		if key := fmt.Sprintf("h%d.example", d.rng.IntN(40)); d.spared == nil || !d.spared(key) {
			return key
		}
	}
}

func (d *duel) item(key string) Item {
	d.urls++
	it := Item{URL: fmt.Sprintf("https://%s/%d/%x", key, d.urls, d.rng.Uint32()), From: "https://from.example/",
		Seed: "https://seed.example/",
		Path: "LL", Rank: int32(d.rng.IntN(5))}
	if d.ranker != nil {
		it.Lift = int8(d.rng.IntN(7) - 3)
		it = d.ranker.item(it.URL, rank.Place(100+d.rng.IntN(60)), it.Lift)
	}
	return it
}

func (d *duel) step() {
	key := d.key()
	switch d.rng.IntN(22) {
	case 0, 1, 2, 3:
		d.push(key, 1+d.rng.IntN(4))
	case 4:
		d.push(key, d.rng.IntN(300))
	case 5, 6, 7, 8, 9, 10:
		d.next()
	case 11, 12, 13, 14:
		d.end()
	case 15:
		d.park(key)
	case 16:
		delay := time.Duration(d.rng.IntN(4000)) * time.Millisecond
		d.f.SetDelay(key, delay)
		h := d.m.host(key)
		h.delay = delay
		d.loose = true // for a cold host only a bound of its last request is known
	case 17:
		d.take(key)
	case 18:
		d.look(key)
	case 19:
		time.Sleep(time.Duration(d.rng.IntN(3000)) * time.Millisecond)
	case 20:
		d.remove(key)
	case 21:
		d.tour()
	}
	if d.ranker != nil && d.rng.IntN(3) == 0 {
		d.move(d.key())
	}
	d.same()
}

func (d *duel) push(key string, n int) {
	items := make([]Item, n)
	for i := range items {
		items[i] = d.item(key)
		d.m.push(key, items[i])
	}
	if n == 0 {
		d.m.host(key)
	}
	d.f.Push(key, items...)
}

// next takes a visit and checks that it is the right item of a host that is due, and not later than necessary.
func (d *duel) next() {
	due, some := d.m.earliest()
	if !some {
		return
	}
	d.waits = true
	v, err := d.f.Next(d.t.Context())
	d.waits = false
	if err != nil {
		d.t.Fatal(err)
	}
	h := d.m.hosts[v.Host]
	if h == nil {
		d.t.Fatalf("%s was never met", v.Host)
	}
	if late := time.Since(due); late > 2*time.Millisecond && !d.loose && time.Until(due) < 0 {
		if !h.next.Equal(due) && time.Since(h.next) < -time.Millisecond {
			d.t.Fatalf("%s was due %v ago, but %s was handed out", due, late, v.Host)
		}
	}
	d.took(v)
}

// took applies a visit to the model.
func (d *duel) took(v *Visit) {
	h := d.m.hosts[v.Host]
	if !h.eligible() {
		d.t.Fatalf("%s was handed out, but %s has nothing to hand out", v.URL, v.Host)
	}
	if early := time.Until(h.next); early > 0 {
		d.t.Fatalf("%s was handed out %v early", v.URL, early)
	}
	at := 0
	if d.ranker != nil {
		at = d.rankedAt(v, h)
	}
	if h.items[at].url != v.URL {
		d.t.Fatalf("%s was handed out before %s", v.URL, h.items[0].url)
	}
	h.flying, h.items = append(h.flying, h.items[at]), slices.Delete(h.items, at, at+1)
	h.loose = h.loose && len(h.items) > 0
	d.flying = append(d.flying, v)
}

// end ends a visit.
func (d *duel) end() {
	if len(d.flying) == 0 {
		return
	}
	i := d.rng.IntN(len(d.flying))
	v := d.flying[i]
	d.flying = slices.Delete(d.flying, i, i+1)
	r := Result{Outcome: Outcome(d.rng.IntN(4))}
	if d.rng.IntN(6) == 0 || d.spared != nil && d.spared(v.Host) {
		wait := time.Duration(d.rng.IntN(2000)) * time.Millisecond
		d.f.Postpone(v, wait)
		d.m.done(v.Host, Result{Outcome: NoRequest, Requeue: []Item{v.Item}}, false)
		h := d.m.hosts[v.Host]
		if until := time.Now().Add(wait); until.After(h.next) {
			h.next = until
		}
		return
	}
	if r.Outcome == Throttled && d.rng.IntN(2) == 0 {
		r.RetryAfter = time.Duration(1+d.rng.IntN(20)) * time.Second
	}
	late := d.rng.IntN(4) == 0
	if d.rng.IntN(3) == 0 {
		it := v.Item
		it.QueueLast = late
		r.Requeue = []Item{it}
	}
	d.f.Done(v, r)
	d.m.done(v.Host, r, late)
}

// park parks a host and pushes a robots.txt fetch, or ends that.
func (d *duel) park(key string) {
	h := d.m.host(key)
	origin := []string{"http://", "https://"}[d.rng.IntN(2)] + key
	if h.parked[origin] || d.rng.IntN(3) == 0 {
		delete(h.parked, origin)
		d.f.Unpark(key, origin)
		return
	}
	h.parked[origin] = true
	d.f.Park(key, origin)
	if d.rng.IntN(2) == 0 {
		it := d.item(key)
		it.Robots = origin
		d.f.Push(key, it)
		d.m.push(key, it)
	}
}

func (d *duel) take(key string) {
	n := byte('0' + d.rng.IntN(10))
	match := func(url string) bool { return url[len(url)-1] == n }
	got := map[string]bool{}
	for _, it := range d.f.TakeMatching(key, func(it *Item) bool { return match(it.URL) }) {
		got[it.URL] = true
	}
	h := d.m.host(key)
	h.items = slices.DeleteFunc(h.items, func(it modelItem) bool {
		if got[it.url] != match(it.url) {
			d.t.Fatalf("%s was taken: %v", it.url, got[it.url])
		}
		return got[it.url]
	})
}

func (d *duel) look(key string) {
	d.m.host(key)
	d.f.Push(key)
	spared := d.spared
	d.spared = func(other string) bool { return other == key || spared != nil && spared(other) }
	d.looks = true
	q, err := d.f.Inspector().Queue(key, 20)
	d.spared, d.looks = spared, false
	if err != nil {
		d.t.Fatal(err)
	}
	for i, it := range d.m.hosts[key].items[:min(20, len(d.m.hosts[key].items))] {
		if d.ranker == nil && (i >= len(q) || q[i].URL != it.url) {
			d.t.Fatalf("item %d of %s is not %s: %d items", i, key, it.url, len(q))
		}
	}
	info, ok := d.f.Host(key)
	if d.gone {
		return
	}
	if !ok || info.Pending != len(d.m.hosts[key].items) || info.Away != d.m.hosts[key].away {
		d.t.Fatalf("%s: %+v, want %d", key, info, len(d.m.hosts[key].items))
	}
}

// same compares the counts.
func (d *duel) same() {
	c, want := d.f.Counts(), Counts{Hosts: len(d.m.hosts)}
	for _, h := range d.m.hosts {
		want.URLs += len(h.items)
	}
	unread := d.gone && len(d.f.removals.detached) > 0 // may contain suppressed items
	if c.URLs != want.URLs && !unread && (!d.gone || c.URLs < want.URLs) || c.Hosts != want.Hosts ||
		c.Active != len(d.flying) {
		d.t.Fatalf("counts %+v, want %+v", c, want)
	}
	if err := d.f.Err(); err != nil {
		d.t.Fatal(err)
	}
}

// checkpoint starts a checkpoint or ends one.
func (d *duel) checkpoint() {
	if d.cut == nil {
		cut, err := d.f.Cut()
		if err != nil {
			d.t.Fatal(err)
		}
		d.cut, d.cutAs = cut, d.m.clone()
		return
	}
	if err := d.cut.Write(nil); err != nil {
		d.t.Fatal(err)
	}
	d.cut, d.saved = nil, d.cutAs
}

// crash restarts from the last checkpoint.
func (d *duel) crash() { d.crashed(d.f) }

func (d *duel) crashed(f *Frontier) {
	if err := f.Close(); err != nil {
		d.t.Fatal(err)
	}
	d.orphans = 0
	d.open()
	d.m, d.cut, d.flying, d.loose, d.gone = d.saved.clone(), nil, nil, true, true
	d.m.reopen()
	d.saved = d.m.clone()
	for _, h := range d.m.hosts {
		for i := 0; i < len(h.items); i++ {
			if d.rng.IntN(10) == 0 {
				d.f.Suppress(h.items[i].url)
				h.items = slices.Delete(h.items, i, i+1)
				i--
			}
		}
	}
}

// drain hands out all items and reports whether that was all.
func (d *duel) drain() {
	for key, h := range d.m.hosts {
		for _, origin := range slices.Collect(maps.Keys(h.parked)) {
			delete(h.parked, origin)
			d.f.Unpark(key, origin)
		}
	}
	for {
		for len(d.flying) > 0 {
			v := d.flying[0]
			d.flying = d.flying[1:]
			d.f.Done(v, Result{Outcome: Answered})
			d.m.done(v.Host, Result{Outcome: Answered}, false)
		}
		if _, some := d.m.earliest(); !some {
			break
		}
		d.next()
	}
	if v, err := d.f.Next(context.Background()); !errors.Is(err, ErrDrained) {
		d.t.Fatalf("after all: %+v, %v", v, err)
	}
}
