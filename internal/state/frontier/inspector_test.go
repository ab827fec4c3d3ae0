package frontier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The inspector shows the next URLs to be handed out, and changes neither hosts nor queues.
func TestLooksChangeNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	now := time.Now()
	f := open(t, Config{Dir: t.TempDir(), Memory: 16 << 10, Now: func() time.Time { return now }})
	const hosts, each = 20, 400
	for range each {
		for h := range hosts {
			f.Push(fmt.Sprint("h", h), Item{URL: fmt.Sprintf("http://h%d/%d", h, dice.Uint64()), Rank: dice.Int32N(5)})
		}
	}
	inMemory, bytes := len(f.bench.hosts), f.disk.residents.bytes
	queues := map[string][]Item{}
	for h := range hosts {
		key := fmt.Sprint("h", h)
		q, err := f.Inspector().Queue(key, each+1)
		if err != nil || len(q) != each {
			t.Fatalf("%s: %d items, %v", key, len(q), err)
		}
		at := dice.IntN(each)
		found, err := f.Inspector().Find(key, q[at].URL)
		if err != nil || found == nil || found.Position != at+1 || found.UnderWay {
			t.Errorf("item %d of %s: found %+v, %v", at, key, found, err)
		}
		queues[key] = q
	}
	if found, err := f.Inspector().Find("h0", "nowhere"); found != nil || err != nil {
		t.Errorf("found %+v, %v", found, err)
	}
	if len(f.bench.hosts) != inMemory || f.disk.residents.bytes != bytes {
		t.Errorf("%d hosts and %d bytes are in memory, before the look %d and %d", len(f.bench.hosts),
			f.disk.residents.bytes, inMemory, bytes)
	}
	for range hosts * each {
		v, _ := next(t, f)
		if found, err := f.Inspector().Find(v.Host, v.URL); err != nil || found == nil || !found.UnderWay {
			t.Fatalf("%s is under way; found %+v, %v", v.URL, found, err)
		}
		if want := queues[v.Host][0].URL; v.URL != want {
			t.Fatalf("%s came, a look saw %s", v.URL, want)
		}
		queues[v.Host] = queues[v.Host][1:]
		f.Done(v, Result{Outcome: Answered})
	}
}

func BenchmarkFindAmongTenThousand(b *testing.B) {
	f, _, err := Open(Config{Dir: b.TempDir(), Memory: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for i := range maxExamined {
		f.Push("h", Item{URL: fmt.Sprint("https://h/some/path/", i)})
	}
	for b.Loop() {
		if _, err := f.Inspector().Find("h", "nowhere"); err != nil {
			b.Fatal(err)
		}
	}
}
