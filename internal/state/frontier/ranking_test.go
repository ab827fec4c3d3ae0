package frontier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/base/siphash"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// A fakeRanker supplies the places of all URLs.
type fakeRanker struct {
	places     map[ids.Key]rank.Place
	generation uint64
	asked      int // number of URLs
	err        error
}

func newFakeRanker() *fakeRanker { return &fakeRanker{places: map[ids.Key]rank.Place{}} }

func (*fakeRanker) KeyOf(url string) ids.Key {
	key := siphash.Key{1, 2}
	return ids.KeyOf(&key, url)
}

func (r *fakeRanker) Generation() uint64 { return r.generation }

func (r *fakeRanker) Places(all []ids.URL, to []rank.Place) ([]rank.Place, error) {
	for _, u := range all {
		r.asked++
		if r.err != nil {
			return to, r.err
		}
		to = append(to, r.places[u.Key])
	}
	return to, nil
}

// item returns an item with a place.
func (r *fakeRanker) item(url string, place rank.Place, lift int8) Item {
	r.places[r.KeyOf(url)] = place
	return Item{URL: url, Lift: lift, Rank: rankAt(place, lift)}
}

// put moves a URL to another place.
func (r *fakeRanker) put(url string, place rank.Place) Move {
	k := r.KeyOf(url)
	r.places[k] = place
	return Move{k, place}
}

// handedOut returns the next URLs that a frontier hands out, in order.
func handedOut(t *testing.T, f *Frontier, n int) (urls []string) {
	t.Helper()
	for range n {
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, v.URL)
		f.Done(v, Result{Outcome: Answered})
	}
	return urls
}

func wantOrder(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v came, want %v", got, want)
	}
}

func TestWhatIsMovedGoesWhereItBelongs(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	for i, lift := range []int8{0, 0, 8, 0} {
		f.Push("h", r.item(fmt.Sprint("http://h/", i), rank.Place(100+10*i), lift))
	}
	f.Move("h", []Move{r.put("http://h/3", 50), r.put("http://h/unknown", 1)})
	f.Move("h", []Move{r.put("http://h/2", 60), r.put("http://h/0", 105)})
	f.Move("elsewhere", []Move{r.put("http://elsewhere/", 1)})
	wantOrder(t, handedOut(t, f, 4), "http://h/3", "http://h/2", "http://h/0", "http://h/1")
	if _, known := f.Host("elsewhere"); known {
		t.Error("a host is known of which only moves came")
	}
}

// The latest move of a URL counts, except moves from before the item was pushed.
func TestMovesCountInTheirOrder(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	f.Push("h", r.item("http://h/a", 100, 0), r.item("http://h/b", 200, 0))
	f.Move("h", []Move{{r.KeyOf("http://h/b"), 10}, {r.KeyOf("http://h/c"), 20}, {r.KeyOf("http://h/b"), 150}})
	f.Push("h", r.item("http://h/c", 120, 0))
	r.put("http://h/b", 150)
	wantOrder(t, handedOut(t, f, 3), "http://h/a", "http://h/c", "http://h/b")
}

func TestWhatHasFallenIsPutBack(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	f.Push("h", r.item("http://h/far", 10, 0), r.item("http://h/near", 20, 0), r.item("http://h/other", 30, 0))
	r.put("http://h/far", 40) // it loses more than half of its importance, without a move
	r.put("http://h/near", 28)
	wantOrder(t, handedOut(t, f, 3), "http://h/near", "http://h/other", "http://h/far")
}

func TestAnotherGenerationRanksAllAnew(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	var items []Item
	for i := range 3000 {
		items = append(items, r.item(fmt.Sprint("http://h/", i), rank.Place(1000+i), 0))
	}
	late := items[7]
	late.QueueLast = true
	f.Push("h", append(items, Item{URL: late.URL + "/late", QueueLast: true, Rank: 3})...)
	for i := range items {
		r.put(items[i].URL, rank.Place(5000-i))
	}
	r.generation++
	got := handedOut(t, f, 3001)
	for i := range items {
		if want := fmt.Sprint("http://h/", 2999-i); got[i] != want && i < 1990 {
			t.Fatalf("item %d is %s, want %s", i, got[i], want)
		}
	}
	if most := 3000 + 3001 + 3001; r.asked > most { // once for all, and once for each that is handed out
		t.Errorf("the ranker was asked for %d URLs, want %d at the most", r.asked, most)
	}
}

// If the ranker has no place for a pending item, the item keeps its rank.
func TestARankerThatIsFullLeavesRanksAsTheyAre(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	f.Push("h", r.item("http://h/a", 10, 0), r.item("http://h/b", 20, 0))
	r.put("http://h/a", 40)
	r.err, r.generation = ids.ErrFull, 1
	wantOrder(t, handedOut(t, f, 2), "http://h/a", "http://h/b")
}

// A returned item gets its current rank. A QueueLast item stays last.
func TestWhatIsGivenBackHasItsRankOfThen(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	f.Push("h", r.item("http://h/a", 10, 0), r.item("http://h/b", 20, 0), r.item("http://h/c", 30, 0))
	v, _ := next(t, f)
	f.Move("h", []Move{r.put("http://h/a", 25)})
	f.Postpone(v, 0)
	wantOrder(t, handedOut(t, f, 1), "http://h/b")
	v, _ = next(t, f)
	v.Item.QueueLast = true
	f.Done(v, Result{Outcome: Answered, Requeue: []Item{v.Item}})
	f.Move("h", []Move{{r.KeyOf("http://h/a"), 1}})
	v, _ = next(t, f)
	if v.URL != "http://h/c" {
		t.Errorf("%s, which came late, was moved", v.URL)
	}
	f.Done(v, Result{Outcome: Answered})
	r.generation++
	late, _ := next(t, f)
	f.Postpone(late, 0)
	f.Push("h", r.item("http://h/d", 26, 0))
	wantOrder(t, handedOut(t, f, 2), "http://h/d", "http://h/a")
}

// Moves of a host with many items in memory are applied together, and cost nothing if they do not change the first
// item.
func BenchmarkMove(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dice := rand.New(rand.NewPCG(1, 2))
			r := newFakeRanker()
			f := New(Config{Ranker: r})
			items := make([]Item, n)
			for i := range items {
				items[i] = r.item(fmt.Sprintf("http://h/articles/2026/%08x/a-title-in-words-%d.html", i*7919, i),
					rank.Place(300+dice.IntN(60)), 0)
			}
			f.Push("h", items...)
			b.ReportAllocs()
			for b.Loop() {
				for range 6 { // as many as a page has
					it := &items[dice.IntN(n)]
					f.Move("h", []Move{{r.KeyOf(it.URL), rank.Place(300 + dice.IntN(60))}})
				}
				v, err := f.Next(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				f.Postpone(v, 0)
			}
		})
	}
}

// Moves of a cold host read nothing, and apply when it is loaded.
func TestAHostThatIsAsleepIsMoved(t *testing.T) {
	r := newFakeRanker()
	now := time.Now()
	f := open(t, Config{Dir: t.TempDir(), Memory: 16 << 10, Delay: time.Hour, Ranker: r,
		Now: func() time.Time { return now }})
	const hosts, each = 60, 20
	url := func(h, i int) string { return fmt.Sprintf("http://h%d/%d", h, i) }
	for h := range hosts {
		for i := range each {
			f.Push(fmt.Sprint("h", h), r.item(url(h, i), rank.Place(100+i), 0))
		}
	}
	asleep := 0
	for h := range hosts {
		if f.bench.hosts[fmt.Sprint("h", h)] == nil {
			asleep++
		}
		for i := range each {
			f.Move(fmt.Sprint("h", h), []Move{r.put(url(h, i), rank.Place(100-i))})
		}
	}
	if asleep < hosts/2 {
		t.Fatalf("%d of %d hosts are asleep", asleep, hosts)
	}
	last := map[string]int32{}
	for range hosts * each {
		var v *Visit
		for v == nil {
			now = now.Add(time.Minute)
			v, _ = poll(t, f)
		}
		if v.Rank < last[v.Host] {
			t.Fatalf("%s has rank %d, after %d", v.URL, v.Rank, last[v.Host])
		}
		last[v.Host] = v.Rank
		f.Done(v, Result{Outcome: Answered})
	}
	if r.asked > 2*hosts*each {
		t.Errorf("the ranker was asked for %d URLs", r.asked)
	}
}

// poll does the pending work once.
func poll(t *testing.T, f *Frontier) (*Visit, error) {
	t.Helper()
	v, work, _, err := f.poll()
	if work {
		err = f.worker.work()
	}
	if err != nil {
		t.Fatal(err)
	}
	return v, err
}

// Items in blocks are reranked when an eighth of them was moved.
func TestWhatIsBehindIsRankedAnew(t *testing.T) {
	r := newFakeRanker()
	f := open(t, Config{Dir: t.TempDir(), Memory: 256 << 10, Ranker: r})
	const n = 20_000
	var items []Item
	for i := range n {
		items = append(items, r.item(fmt.Sprintf("http://huge/articles/2026/%d", i), rank.Place(300+i%50), 0))
		f.Push("huge", items[i])
		f.WaitForRoom(t.Context())
	}
	if in := len(f.bench.hosts["huge"].queue.front); in > n/8 {
		t.Fatalf("%d items are in memory", in)
	}
	for i := range items { // the last ones become the first
		f.Move("huge", []Move{r.put(items[i].URL, rank.Place(200-i%50))})
		f.WaitForRoom(t.Context())
	}
	for len(f.worker.reads.rerank) > 0 {
		if v, _ := poll(t, f); v != nil {
			f.Postpone(v, 0)
		}
	}
	last, wrong := int32(0), 0
	for range n {
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v.Rank < last {
			wrong++
		}
		last = max(last, v.Rank)
		f.Done(v, Result{Outcome: Answered})
	}
	if wrong > n/8 {
		t.Errorf("%d of %d came behind others that are worth less", wrong, n)
	}
	t.Logf("%d of %d came behind others that are worth less; the ranker was asked %.1f times for each", wrong, n,
		float64(r.asked)/n)
	if r.asked > 30*n {
		t.Errorf("the ranker was asked %d times for each", r.asked/n)
	}
}

// If the next item is dropped, pending moves apply before the item after it is chosen.
func TestMovesCountBehindWhatIsDropped(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	f.Push("h", r.item("http://h/gone", 10, 0), r.item("http://h/b", 20, 0), r.item("http://h/c", 30, 0))
	f.Suppress("http://h/gone")
	f.Move("h", []Move{r.put("http://h/c", 15)})
	wantOrder(t, handedOut(t, f, 2), "http://h/c", "http://h/b")
}

// Restored items of an earlier process get their current rank, whatever rank they are pushed with.
func TestWhatIsRestoredIsRankedAnew(t *testing.T) {
	r := newFakeRanker()
	f := New(Config{Ranker: r})
	for i := range 3 {
		it := r.item(fmt.Sprint("http://h/", i), rank.Place(100-i), 0)
		it.Rank = 0
		f.Restore("h", it)
	}
	wantOrder(t, handedOut(t, f, 3), "http://h/2", "http://h/1", "http://h/0")
}

// A checkpoint does not contain moves in memory that were not applied yet. After a restart the Ranker supplies the
// ranks.
func TestACheckpointDoesWithoutMoves(t *testing.T) {
	r := newFakeRanker()
	dir := t.TempDir()
	f := open(t, Config{Dir: dir, Ranker: r})
	for i := range 40 {
		f.Push("h", r.item(fmt.Sprint("http://h/", i), rank.Place(200+i), 0))
	}
	f.Move("h", []Move{r.put("http://h/39", 210)}) // need not become the first
	if len(f.bench.hosts["h"].queue.ranks.moves) != 1 {
		t.Fatal("the move is applied already")
	}
	if err := f.Checkpoint(nil); err != nil {
		t.Fatal(err)
	}
	f.Move("h", []Move{r.put("http://h/38", 190)})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, Config{Dir: dir, Ranker: r})
	wantOrder(t, handedOut(t, again, 4), "http://h/38", "http://h/0", "http://h/1", "http://h/2")
	for range 7 {
		handedOut(t, again, 1)
	}
	wantOrder(t, handedOut(t, again, 3), "http://h/10", "http://h/39", "http://h/11")
}
