package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal/memory"
)

func open(t testing.TB, dir string, j *memory.Journal, cfg Config) *DB {
	t.Helper()
	if cfg.Key == nil {
		cfg.Key = keyOf
	}
	d, err := Open(vfs.OS, dir, j, cfg)
	check(t, err)
	return d
}

// urls returns dispatched URLs with these names as Data.
func urls(names ...string) (all []URL) {
	for _, n := range names {
		all = append(all, URL{Hash: HashOf(n), Data: []byte(n)})
	}
	return all
}

// enter inserts dispatched URLs and returns their previous states.
func enter(t testing.TB, d *DB, host string, names ...string) []State {
	t.Helper()
	before, err := d.Insert(host, urls(names...), nil)
	check(t, err)
	return before
}

func TestWhatIsDispatchedIsKept(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	d := open(t, dir, j, Config{})
	enter(t, d, "a", "a1")
	check(t, d.Close())
	d = open(t, dir, j, Config{}) // nothing was synced
	if got := d.Stats().URLs; got != 0 {
		t.Errorf("%d URLs are known without a Sync", got)
	}
	enter(t, d, "a", "a1", "a2")
	enter(t, d, "b", "b1")
	check(t, d.Checkpoint(t.Context()))
	enter(t, d, "a", "a3")
	_, err := d.Insert("b", []URL{{Hash: HashOf("b1"), Done: true}, {Hash: HashOf("b2"), Done: true}}, nil)
	check(t, err)
	check(t, d.Sync())
	check(t, d.Close())
	d = open(t, dir, j, Config{})
	if got := d.OpenHosts(); !slices.Equal(got, []string{"a"}) || d.OpenURLs("a") != 3 || d.Stats().URLs != 5 {
		t.Errorf("%q have URLs that are not done, a has %d; %d are known", got, d.OpenURLs("a"), d.Stats().URLs)
	}
	got, next, more, err := d.Dispatched("a", Hash{}, 2)
	if check(t, err); len(got) != 2 || !more {
		t.Fatal(got, more)
	}
	rest, _, more, err := d.Dispatched("a", next, 2)
	if check(t, err); len(rest) != 1 || more {
		t.Fatal(rest, more)
	}
	for _, u := range append(got, rest...) {
		if u.Hash != HashOf(string(u.Data)) || u.Done {
			t.Errorf("%+v is dispatched", u)
		}
	}
	if u, ok, err := d.Get("b", HashOf("b1")); !ok || err != nil || !u.Done {
		t.Errorf("b1: %+v, %v, %v", u, ok, err)
	}
	if u, ok, err := d.Get("b", HashOf("b3")); ok || err != nil {
		t.Errorf("b3: %+v, %v, %v", u, ok, err)
	}
	check(t, d.Close())
}

func TestWhatNobodyCanWriteDownIsRefused(t *testing.T) {
	d := open(t, t.TempDir(), memory.New(), Config{})
	for _, host := range []string{"", "a\x00b", "\xff", string(make([]byte, MaxName+1))} {
		if _, err := d.Insert(host, urls("u"), nil); !errors.Is(err, ErrRecord) {
			t.Errorf("%.20q: %v", host, err)
		}
	}
	if _, err := d.Insert("a", []URL{{Data: make([]byte, MaxData+1)}}, nil); !errors.Is(err, ErrRecord) {
		t.Error(err)
	}
	check(t, d.Close())
}

// TestMemoryIsBounded: changes are refused if memory is full, until a checkpoint makes space.
func TestMemoryIsBounded(t *testing.T) {
	d := open(t, t.TempDir(), memory.New(), Config{Memory: 1 << 20})
	var err error
	n := 0
	for ; err == nil; n++ {
		_, err = d.Insert(fmt.Sprint("h", n%100), urls(fmt.Sprint(n)), nil)
	}
	if st := d.Stats(); !errors.Is(err, ErrFull) || st.Table > 1<<19 || n < 1000 {
		t.Fatalf("after %d URLs: %v, %+v", n, err, st)
	}
	check(t, d.Maintain(t.Context()))
	if got := enter(t, d, "h0", "0"); got[0] != Dispatched {
		t.Error("0 is forgotten")
	}
	err = nil
	for i := 0; err == nil; i++ { // one URL each of many hosts
		if _, err = d.Insert(fmt.Sprint("other", i), urls("u"), nil); errors.Is(err, ErrFull) {
			check(t, d.Maintain(t.Context())) // this helps only if the number of hosts is not the limit
			_, err = d.Insert(fmt.Sprint("other", i), urls("u"), nil)
		}
	}
	if st := d.Stats(); !errors.Is(err, ErrFull) || st.Hosts != 1<<18/hostBytes {
		t.Errorf("%v: %d hosts", err, st.Hosts)
	}
	check(t, d.Close())
}

// TestReplayWithLessMemory: the journal exceeds the memory.
func TestReplayWithLessMemory(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	d := open(t, dir, j, Config{Memory: 8 << 20})
	for n := range 10_000 {
		enter(t, d, fmt.Sprint("h", n%100), fmt.Sprint(n))
		if n%100 == 0 {
			check(t, d.Sync())
		}
	}
	check(t, d.Sync())
	want := dump(t, d, 1000)
	check(t, d.Close())
	d = open(t, dir, j, Config{Memory: 1 << 20})
	if st := d.Stats(); st.Table > 1<<19 || st.Runs < 1 {
		t.Errorf("%+v", st)
	}
	if dump(t, d, 1000) != want {
		t.Error("the history knows something else")
	}
	check(t, d.Close())
}

// TestFullDisk: durable data is still there when the disk has space again.
func TestFullDisk(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	m := newModel(t, seed)
	failures := 0
	for range 15 {
		m.disk.SetRoom(int64(m.dice.IntN(1 << 16)))
		for n := 0; n < 300; n++ {
			if full := m.untilFull(); full {
				failures++
				break
			}
		}
		m.disk.SetRoom(-1)
		m.reopen()
	}
	if failures == 0 {
		t.Error("the disk was never full")
	}
	check(t, m.db.Close())
	check(t, m.log.Close())
}

// TestAfterAFailure: no change is possible after the journal could not be written.
func TestAfterAFailure(t *testing.T) {
	m := newModel(t, 1)
	enter(t, m.db, "a", "1")
	m.disk.SetRoom(0)
	if err := m.db.Sync(); !vfs.IsFull(err) {
		t.Errorf("Sync: %v", err)
	}
	m.disk.SetRoom(-1)
	_, err := m.db.Insert("a", urls("2"), nil)
	if !vfs.IsFull(err) || !vfs.IsFull(m.db.Sync()) || !vfs.IsFull(m.db.Checkpoint(t.Context())) {
		t.Errorf("Enter: %v", err)
	}
	m.reopen()
	check(t, m.db.Close())
	check(t, m.log.Close())
}

func TestAnotherJournal(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	d := open(t, dir, j, Config{})
	enter(t, d, "a", "1")
	check(t, d.Checkpoint(t.Context()))
	check(t, d.Close())
	if _, err := Open(vfs.OS, dir, memory.New(), Config{Key: keyOf}); !errors.Is(err, errJournal) {
		t.Error(err)
	}
}

// untilFull calls f, and reports whether the disk was full.
func (m *model) untilFull() bool {
	m.now++
	if m.dice.IntN(4) > 0 {
		m.enter()
		return false
	}
	sync := m.db.Sync
	if m.dice.IntN(4) == 0 {
		sync = func() error { return m.db.Checkpoint(m.t.Context()) }
	}
	err := sync()
	if err == nil {
		m.durable(nil)
	} else if !vfs.IsFull(err) {
		m.t.Fatal(err)
	}
	return err != nil
}

// TestManyAtOnce inserts the same URLs concurrently, while others write and forget: each URL is new once.
func TestManyAtOnce(t *testing.T) {
	d := open(t, t.TempDir(), memory.New(), Config{Memory: 1 << 20})
	const hosts, most = 20, 300
	var fresh atomic.Int64
	var work, aside sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	aside.Go(func() {
		for ctx.Err() == nil {
			check(t, d.Maintain(t.Context()))
			check(t, d.Checkpoint(t.Context()))
			check(t, d.ForgetHosts(t.Context(), "nobody"))
			dumpAll(t, d, 1000) // not dump: there are more URLs for each scan
			dumpParts(t, d, 1000)
		}
	})
	for w := range 4 {
		work.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(w), 0))
			for range 4 {
				for _, n := range dice.Perm(most) {
					host := fmt.Sprint("h", n%hosts)
					for {
						got, err := d.Insert(host, urls(fmt.Sprint(n)), nil)
						if errors.Is(err, ErrFull) {
							check(t, d.Maintain(t.Context()))
							continue
						}
						check(t, err)
						if got[0] == Unknown {
							fresh.Add(1)
						}
						break
					}
				}
				check(t, d.Sync())
			}
		})
	}
	work.Wait()
	stop()
	aside.Wait()
	if fresh.Load() != most {
		t.Errorf("%d URLs were fresh %d times", most, fresh.Load())
	}
	check(t, d.Close())
}

// Insert returns the previous states from memory and disk, and for a URL that occurs twice.
func TestEnterSaysWhatWasKnown(t *testing.T) {
	l := open(t, t.TempDir(), memory.New(), Config{})
	hash := func(i byte) Hash { return Hash{i} }
	enter := func(urls ...URL) []State {
		t.Helper()
		before, err := l.Insert("a.test", urls, nil)
		if err != nil {
			t.Fatal(err)
		}
		return before
	}
	want := func(got []State, want ...State) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	want(enter(URL{Hash: hash(1), Data: []byte("one")}, URL{Hash: hash(2), Done: true}, URL{Hash: hash(1)},
		URL{Hash: hash(3)}, URL{Hash: hash(3), Done: true}, URL{Hash: hash(3)}),
		Unknown, Unknown, Dispatched, Unknown, Dispatched, Done)
	if n := l.OpenURLs("a.test"); n != 1 {
		t.Errorf("%d are open", n)
	}
	if err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(enter(URL{Hash: hash(1), Data: []byte("other")}, URL{Hash: hash(2)}, URL{Hash: hash(3)}, URL{Hash: hash(4)}),
		Dispatched, Done, Done, Unknown)
	if u, known, err := l.Get("a.test", hash(1)); err != nil || !known || string(u.Data) != "one" {
		t.Errorf("%+v, %v, %v", u, known, err)
	}
	want(enter(URL{Hash: hash(1), Done: true}, URL{Hash: hash(1), Done: true}), Dispatched, Done)
}
