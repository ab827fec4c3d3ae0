package frontier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/state/rank"
)

// next takes the next visit and returns how long that took.
func next(t *testing.T, f *Frontier) (*Visit, time.Duration) {
	t.Helper()
	start := time.Now()
	v, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v, time.Since(start)
}

func items(host string, n int) []Item {
	all := make([]Item, n)
	for i := range all {
		all[i] = Item{URL: fmt.Sprintf("http://%s/u%d", host, i), Rank: 1}
	}
	return all
}

func wantWait(t *testing.T, say string, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("%s: waited %v, want %v", say, got, want)
	}
}

func TestDelayRunsFromTheEndOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Delay: time.Second})
		f.Push("a", items("a", 3)...)
		v, wait := next(t, f)
		wantWait(t, "first", wait, 0)
		time.Sleep(3 * time.Second) // duration of the response
		f.Done(v, Result{Outcome: Answered})
		v, wait = next(t, f)
		wantWait(t, "after an answer", wait, time.Second)
		f.Done(v, Result{Outcome: NoRequest})
		_, wait = next(t, f)
		wantWait(t, "after no request", wait, 0)
	})
}

func TestCrawlDelayIsObeyedUpToItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Delay: time.Second, MaxDelay: 30 * time.Second})
		for host, ask := range map[string]time.Duration{"a": 5 * time.Second, "b": time.Hour, "c": time.Millisecond} {
			f.Push(host, items(host, 2)...)
			f.SetDelay(host, ask)
		}
		last := map[string]time.Duration{}
		start := time.Now()
		for range 6 {
			v, _ := next(t, f)
			last[v.Host] = time.Since(start)
			f.Done(v, Result{Outcome: Answered})
		}
		wantWait(t, "what a host asks", last["a"], 5*time.Second)
		wantWait(t, "an hour is too much", last["b"], 30*time.Second)
		wantWait(t, "less than ours", last["c"], time.Second)
	})
}

func TestCrawlDelayCanBeLeftAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Delay: time.Second, MaxDelay: -1})
		f.Push("a", items("a", 2)...)
		f.SetDelay("a", time.Minute)
		v, _ := next(t, f)
		f.Done(v, Result{Outcome: Answered})
		_, wait := next(t, f)
		wantWait(t, "ours only", wait, time.Second)
	})
}

func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{})
		if _, err := f.Next(t.Context()); !errors.Is(err, ErrDrained) {
			t.Errorf("an empty frontier: %v, want ErrDry", err)
		}
		f.Push("a", items("a", 1)...)
		v, _ := next(t, f)
		got := make(chan error)
		go func() { _, err := f.Next(t.Context()); got <- err }()
		synctest.Wait() // Next waits: the visit may add links
		f.Done(v, Result{Outcome: Answered})
		if err := <-got; !errors.Is(err, ErrDrained) {
			t.Errorf("after the last visit: %v, want ErrDry", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.Push("b", items("b", 1)...)
		next(t, f)
		go func() { _, err := f.Next(ctx); got <- err }()
		synctest.Wait()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("after the context: %v", err)
		}
	})
}

func TestNearerURLsGoFirstAndLateOnesLast(t *testing.T) {
	f := New(Config{})
	f.Push("a", Item{URL: "http://a/deep", Rank: 2}, Item{URL: "http://a/near", Rank: 1},
		Item{URL: "http://a/near2", Rank: 1})
	f.Push("a", Item{URL: "http://a/late", QueueLast: true})
	for _, want := range []string{"near", "near2", "deep", "late", "deeper"} {
		v, _ := next(t, f)
		if v.URL != "http://a/"+want {
			t.Errorf("got %s, want %s", v.URL, want)
		}
		f.Push("a", Item{URL: "http://a/deeper", Rank: 3})
		f.Done(v, Result{Outcome: Answered})
	}
}

func TestABurstIsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{PerHost: 4, RetryWait: time.Second})
		f.Push("a", items("a", 6)...)
		var burst []*Visit
		for range 4 {
			v, _ := next(t, f)
			burst = append(burst, v)
		}
		time.Sleep(time.Second)
		for _, v := range burst {
			f.Done(v, Result{Outcome: Throttled, Requeue: []Item{v.Item}})
		}
		v, wait := next(t, f)
		wantWait(t, "four answers, one event", wait, time.Second)
		f.Done(v, Result{Outcome: Throttled, Requeue: []Item{v.Item}})
		v, wait = next(t, f)
		wantWait(t, "the second event doubles it", wait, 2*time.Second)
		f.Done(v, Result{Outcome: Throttled, RetryAfter: 10 * time.Second, Requeue: []Item{v.Item}})
		v, wait = next(t, f)
		wantWait(t, "Retry-After is longer", wait, 10*time.Second)
		f.Done(v, Result{Outcome: Answered})
		v, wait = next(t, f)
		wantWait(t, "an answer ends it", wait, 0)
		f.Done(v, Result{Outcome: Throttled, RetryAfter: 100 * time.Hour})
		_, wait = next(t, f)
		wantWait(t, "nobody waits for ever", wait, time.Hour)
	})
}

func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{})
		f.Push("a", items("a", 5)...)
		f.Push("a", Item{URL: "http://a/robots", Robots: "http://b"})
		odd := func(it *Item) bool { return it.URL == "http://a/u1" || it.URL == "http://a/u3" || it.Robots != "" }
		if taken := f.TakeMatching("a", odd); len(taken) != 3 {
			t.Errorf("took %d items, want 3", len(taken))
		}
		for _, want := range []string{"http://a/u0", "http://a/u2", "http://a/u4"} {
			v, _ := next(t, f)
			if v.URL != want {
				t.Errorf("got %s, want %s", v.URL, want)
			}
			f.Done(v, Result{Outcome: Answered})
		}
		if _, err := f.Next(t.Context()); !errors.Is(err, ErrDrained) {
			t.Errorf("Next: %v, want ErrDry", err)
		}
	})
}

func TestAVisitWithoutRequestLeavesTheClockAsOthersSetIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []func(*Frontier, *Visit){
			func(f *Frontier, v *Visit) { f.Done(v, Result{Outcome: NoRequest}) },
			func(f *Frontier, v *Visit) { f.Postpone(v, time.Millisecond) },
		} {
			f := New(Config{PerHost: 2, Delay: time.Millisecond})
			f.Push("a", items("a", 3)...)
			v1, _ := next(t, f)
			v2, _ := next(t, f)
			f.Done(v1, Result{Outcome: Throttled, RetryAfter: time.Minute})
			end(f, v2)
			if _, wait := next(t, f); wait < time.Minute {
				t.Errorf("a request %v after a Retry-After of a minute", wait)
			}
		}
	})
}

func TestDeadHostsLeaveOthersTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Hosts: 8})
		for i := range 20 {
			f.Push(fmt.Sprint("dead", i), items(fmt.Sprint("dead", i), 9)...)
		}
		for range 20 { // each fails once
			v, _ := next(t, f)
			f.Done(v, Result{Outcome: Failed, Requeue: []Item{v.Item}})
		}
		time.Sleep(time.Minute)
		for i := range 20 {
			f.Push(fmt.Sprint("live", i), items(fmt.Sprint("live", i), 1)...)
		}
		dead := 0
		for range 8 {
			if v, _ := next(t, f); v.Host[:4] == "dead" {
				dead++
			}
		}
		if dead != 2 {
			t.Errorf("%d of 8 places went to suspects, want a quarter", dead)
		}
	})
}

// Hosts without a delay take turns after a session, hosts with a delay after each visit.
func TestVisitsInARow(t *testing.T) {
	for _, tt := range []struct {
		delay time.Duration
		want  string
	}{
		{0, "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbaaaabbbb"},
		{time.Second, "abababababababababababababababababababab"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := New(Config{Delay: tt.delay})
			for _, host := range []string{"a", "b"} {
				f.Push(host, items(host, 20)...)
				time.Sleep(time.Millisecond)
			}
			got := ""
			for range 40 {
				v, _ := next(t, f)
				got += v.Host
				time.Sleep(time.Millisecond)
				f.Done(v, Result{Outcome: Answered})
			}
			if got != tt.want {
				t.Errorf("delay %v: %s, want %s", tt.delay, got, tt.want)
			}
		})
	}
}

// With far more hosts than a crawl can work on at once, it works on as many as its workers can visit within the delay,
// and starts others as these are done. No host has more than a session before the hosts that wait.
func TestFewHostsAreInASessionAtOnce(t *testing.T) {
	for _, tt := range []struct{ pages, mostOpen int }{{3, 120}, {40, 120}} {
		synctest.Test(t, func(t *testing.T) {
			const hosts, workers, latency, delay = 600, 10, 100 * time.Millisecond, time.Second
			f := New(Config{Delay: delay, Hosts: workers})
			for i := range hosts {
				host := fmt.Sprint("h", i)
				f.Push(host, items(host, tt.pages)...)
			}
			var mu sync.Mutex
			visits := map[string]int{}
			open, least := 0, 0
			var wg sync.WaitGroup
			begin := time.Now()
			for range workers {
				wg.Go(func() {
					for {
						v, err := f.Next(t.Context())
						if err != nil {
							return
						}
						mu.Lock()
						visits[v.Host]++
						switch n := visits[v.Host]; {
						case n == tt.pages:
							open--
						case n%16 == 0:
							open--
						case n%16 == 1:
							open++
						}
						if open > tt.mostOpen {
							t.Errorf("%d hosts in a session at once", open)
						}
						if n := visits[v.Host]; n == 17 && least == 0 {
							for i := range hosts {
								if got := visits[fmt.Sprint("h", i)]; got == 0 {
									least++
								}
							}
							if least > 0 {
								t.Errorf("%s has its second session, %d hosts had no visit", v.Host, least)
							}
						}
						mu.Unlock()
						time.Sleep(latency)
						f.Done(v, Result{Outcome: Answered})
					}
				})
			}
			wg.Wait()
			ideal := time.Duration(hosts*tt.pages/workers) * latency
			if took := time.Since(begin); took > ideal+time.Duration(tt.pages)*(delay+latency) {
				t.Errorf("it took %v, with all workers busy %v", took, ideal)
			}
		})
	}
}

// A Retry-After outlasts the response to a request that was under way, also without a delay.
func TestRetryAfterOutlastsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{PerHost: 2})
		f.Push("a", items("a", 5)...)
		a, _ := next(t, f)
		b, _ := next(t, f)
		f.Done(a, Result{Outcome: Throttled, RetryAfter: time.Minute})
		f.Done(b, Result{Outcome: Answered})
		_, wait := next(t, f)
		wantWait(t, "after Retry-After", wait, time.Minute)
	})
}

// While sound hosts only wait for their delay, suspects have no more than their quarter.
func TestSuspectsLeaveWhatIsSoonWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Hosts: 8, Delay: time.Second, RetryWait: time.Millisecond})
		for i := range 20 {
			f.Push(fmt.Sprint("dead", i), items(fmt.Sprint("dead", i), 50)...)
		}
		for range 20 {
			v, _ := next(t, f)
			f.Done(v, Result{Outcome: Failed})
		}
		f.Push("sound", items("sound", 50)...)
		v, _ := next(t, f)
		f.Done(v, Result{Outcome: Answered})
		time.Sleep(time.Minute)
		for v, _ = next(t, f); v.Host != "sound"; v, _ = next(t, f) {
			f.Done(v, Result{Outcome: Failed})
		}
		time.Sleep(time.Millisecond)
		f.Done(v, Result{Outcome: Answered}) // it is due again in a second, together with all others
		hosts := ""
		for range 3 {
			v, _ := next(t, f)
			hosts += v.Host[:4] + " "
		}
		if want := "dead dead soun "; hosts != want {
			t.Errorf("places go to %s, want %s", hosts, want)
		}
	})
}

// Suspects may use slots that others do not need, except a sixteenth, so that a sound host always gets a slot at once.
func TestSuspectsTakeWhatIsLeftOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Hosts: 16})
		for i := range 40 {
			f.Push(fmt.Sprint("dead", i), items(fmt.Sprint("dead", i), 9)...)
		}
		for range 40 {
			v, _ := next(t, f)
			f.Done(v, Result{Outcome: Failed, Requeue: []Item{v.Item}})
		}
		time.Sleep(time.Minute)
		for i := range 15 {
			if _, wait := next(t, f); wait > 0 {
				t.Errorf("suspect %d had to wait for %v", i, wait)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if v, err := f.Next(ctx); err == nil {
			t.Errorf("%s has the last place", v.Host)
		}
		f.Push("live", items("live", 1)...)
		if v, wait := next(t, f); v.Host != "live" || wait > 0 {
			t.Errorf("%s has the last place, after %v", v.Host, wait)
		}
	})
}

func TestParkedHostsHandOutRobotsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{})
		f.Push("a", items("a", 2)...)
		f.Park("a", "http://a")
		f.Push("a", Item{URL: "http://a/robots", Robots: "http://a"})
		v, _ := next(t, f)
		if v.URL != "http://a/robots" {
			t.Fatalf("got %s", v.URL)
		}
		f.Done(v, Result{Outcome: Answered})
		got := make(chan *Visit)
		go func() { v, _ := f.Next(t.Context()); got <- v }()
		synctest.Wait()
		select {
		case v := <-got:
			t.Fatalf("a parked host handed out %s", v.URL)
		default:
		}
		f.Park("a", "https://a")
		f.Unpark("a", "http://a")
		synctest.Wait()
		select {
		case v := <-got:
			t.Fatalf("a host parked for another origin handed out %s", v.URL)
		default:
		}
		f.Unpark("a", "https://a")
		if v := <-got; v.URL != "http://a/u0" {
			t.Errorf("got %s, want the first", v.URL)
		}
	})
}

func TestHostsAtOneAddressTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, turn = 50, 100 * time.Millisecond
		f := New(Config{AddrDelay: turn, Hosts: 10})
		shared, own := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for i := range n {
			f.Push(fmt.Sprint("h", i), items(fmt.Sprint("h", i), 2)...)
		}
		f.Push("own", items("own", 2)...)
		var last time.Time
		sharers := map[string]bool{}
		for range 2 * n {
			for {
				v, _ := next(t, f)
				if v.Host == "own" {
					if !f.Reserve(v, own) {
						t.Error("a host alone at its address has to wait")
					}
					f.Done(v, Result{Outcome: Answered})
					continue
				}
				if f.Reserve(v, shared) {
					sharers[v.Host] = true // the first host is alone there until another arrives
					f.Done(v, Result{Outcome: Answered})
					break
				}
			}
			if gap := time.Since(last); len(sharers) > 1 && gap < turn {
				t.Fatalf("two requests to one address within %v", gap)
			}
			last = time.Now()
		}
	})
}

// If most hosts wait for a turn, Counts contains the address.
func TestTheMostCrowdedAddressIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{AddrDelay: 100 * time.Millisecond, Hosts: 1000})
		f.ShareAddresses(2)
		few, many := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for i := range 300 {
			f.Push(fmt.Sprint("h", i), items(fmt.Sprint("h", i), 1)...)
		}
		for i := range 300 {
			v, _ := next(t, f)
			addr := many
			if i%3 == 0 {
				addr = few
			}
			if f.Reserve(v, addr) {
				f.Done(v, Result{Outcome: Answered})
			}
		}
		want := AddressQueue{Addr: many, Hosts: 199, Interval: 200 * time.Millisecond}
		if got := f.Counts().AddressQueue; got != want || got.Wait() != 199*200*time.Millisecond {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(20 * time.Second)
		if want.Hosts -= 100; f.Counts().AddressQueue != want {
			t.Errorf("later %+v, want %+v", f.Counts().AddressQueue, want)
		}
		time.Sleep(20 * time.Second)
		if got := f.Counts().AddressQueue; got != (AddressQueue{}) {
			t.Errorf("in the end %+v", got)
		}
	})
}

// TestFrontiersShareAddresses: three frontiers together send no more requests to an address than one.
func TestFrontiersShareAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const turn = 100 * time.Millisecond
		f := New(Config{AddrDelay: turn, Hosts: 10})
		f.ShareAddresses(3)
		shared := netip.MustParseAddr("192.0.2.1")
		for i := range 10 {
			f.Push(fmt.Sprint("h", i), items(fmt.Sprint("h", i), 1)...)
		}
		var last time.Time
		for range 10 {
			v, _ := next(t, f)
			for !f.Reserve(v, shared) {
				v, _ = next(t, f)
			}
			f.Done(v, Result{Outcome: Answered})
			if gap := time.Since(last); !last.IsZero() && gap < 3*turn {
				t.Fatalf("two requests to one address within %v", gap)
			}
			last = time.Now()
		}
	})
}

// crew runs workers on a frontier and checks the requests that hosts get.
type crew struct {
	t    *testing.T
	cfg  Config
	f    *Frontier
	lock chan struct{}
	host map[string]*view
	seen map[string]bool
	busy int // hosts with a request under way
}

type view struct {
	open       int
	start, end time.Time
}

func (c *crew) locked(do func()) {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	do()
}

func (c *crew) begin(v *Visit) {
	s := c.host[v.Host]
	if s == nil {
		s = &view{}
		c.host[v.Host] = s
	}
	if s.open++; s.open == 1 {
		c.busy++
		if gap := time.Since(s.end); c.cfg.PerHost == 1 && gap < c.cfg.Delay {
			c.t.Errorf("%s: %v after an answer", v.Host, gap)
		}
	}
	if gap := time.Since(s.start); gap < c.cfg.Delay {
		c.t.Errorf("%s: %v after a request", v.Host, gap)
	}
	if s.open > c.cfg.PerHost || c.busy > c.cfg.Hosts {
		c.t.Errorf("%s: %d connections, %d hosts at once", v.Host, s.open, c.busy)
	}
	if key := v.Host + v.URL; c.seen[key] {
		c.t.Errorf("%s twice", key)
	} else {
		c.seen[key] = true
	}
	s.start = time.Now()
}

func (c *crew) end(v *Visit) {
	s := c.host[v.Host]
	if s.open--; s.open == 0 {
		c.busy--
	}
	s.end = time.Now()
}

func (c *crew) work(rng *rand.Rand) {
	for {
		v, err := c.f.Next(c.t.Context())
		if err != nil {
			return
		}
		c.locked(func() { c.begin(v) })
		time.Sleep(time.Duration(rng.IntN(120)) * time.Millisecond)
		c.locked(func() { c.end(v) })
		c.f.Done(v, Result{Outcome: Answered})
	}
}

func (c *crew) saveOften() {
	for c.f.Counts().URLs > 0 {
		if err := c.f.Checkpoint(nil); err != nil {
			c.t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (c *crew) moveOften(rng *rand.Rand) {
	for c.f.Counts().URLs > 0 {
		host := fmt.Sprint("h", rng.IntN(40))
		for _, it := range items(host, 25) {
			c.f.Move(host, []Move{{c.cfg.Ranker.KeyOf(it.URL), rank.Place(rng.IntN(500))}})
		}
		time.Sleep(time.Millisecond)
	}
}

func TestManyWorkersKeepTheManners(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, c := range []struct {
		perHost int
		onDisk  bool
		ranked  bool
	}{{1, false, false}, {2, false, false}, {1, true, false}, {2, true, false}, {2, false, true}, {2, true, true}} {
		synctest.Test(t, func(t *testing.T) {
			const hosts, each = 40, 25
			cfg := Config{Hosts: 16, PerHost: c.perHost, Delay: 50 * time.Millisecond, Memory: 8 << 10}
			if c.onDisk {
				cfg.Dir = t.TempDir()
			}
			if c.ranked {
				cfg.Ranker = hashRanker{}
			}
			f := open(t, cfg)
			defer f.Close()
			c := &crew{t: t, cfg: cfg, f: f, lock: make(chan struct{}, 1), host: map[string]*view{}, seen: map[string]bool{}}
			for h := range hosts {
				c.f.Push(fmt.Sprint("h", h), items(fmt.Sprint("h", h), each)...)
			}
			var wg sync.WaitGroup
			if cfg.Dir != "" {
				wg.Go(func() { c.saveOften() })
			}
			if cfg.Ranker != nil {
				wg.Go(func() { c.moveOften(rand.New(rand.NewPCG(seed, 1<<32))) })
			}
			for w := range cfg.Hosts * cfg.PerHost {
				wg.Go(func() { c.work(rand.New(rand.NewPCG(seed, uint64(w)))) })
			}
			wg.Wait()
			if len(c.seen) != hosts*each {
				t.Errorf("%d items handed out, want %d", len(c.seen), hosts*each)
			}
		})
	}
}

func BenchmarkPushNextDone(b *testing.B) { benchmarkPushNextDone(b, Config{}) }

func BenchmarkPushNextDoneRanked(b *testing.B) {
	benchmarkPushNextDone(b, Config{Ranker: hashRanker{}})
}

func benchmarkPushNextDone(b *testing.B, cfg Config) {
	const hosts = 10_000
	f := New(cfg)
	keys := make([]string, hosts)
	for i := range keys {
		keys[i] = fmt.Sprintf("h%d.example.com", i)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for i := range b.N {
		key := keys[i*7919%hosts]
		f.Push(key, Item{URL: "http://" + key + "/", Rank: 1})
		v, err := f.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		f.Done(v, Result{Outcome: Answered})
	}
}
