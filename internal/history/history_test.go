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
	"testing/quick"
	"testing/synctest"
	"time"

	"kumo/internal/journal/memory"
	"kumo/internal/vfs"
	"kumo/internal/xor"
)

func open(t testing.TB, dir string, j *memory.Journal, cfg Config) *DB {
	t.Helper()
	if cfg.Key == nil {
		cfg.Key, cfg.Self = keyOf, self
	}
	d, err := Open(vfs.OS, dir, j, cfg)
	check(t, err)
	return d
}

// seconds after the beginning of time.
func at(n int64) time.Time { return time.Unix(n, 0) }

func items(names ...string) (all []Item) {
	for _, n := range names {
		all = append(all, Item{HashOf(n), []byte(n)})
	}
	return all
}

func claim(t testing.TB, d *DB, now int64, host string, names ...string) []bool {
	t.Helper()
	fresh, err := d.Claim(at(now), host, items(names...), nil)
	check(t, err)
	return fresh
}

func TestClaimsAreOverdueUntilSomethingIsHeard(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	d := open(t, dir, j, Config{})
	if got := claim(t, d, 10, "a", "a1", "a2", "a1"); !slices.Equal(got, []bool{true, true, false}) {
		t.Errorf("the first claim: %v", got)
	}
	if got := claim(t, d, 20, "a", "a2", "a3"); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("the second claim: %v", got)
	}
	check(t, d.Assign(at(11), "a", "node 1"))
	claim(t, d, 15, "b", "b1")
	claim(t, d, 30, "c", "c1")
	overdue := func(now, before int64, want ...Overdue) {
		t.Helper()
		if got := d.Overdue(at(now), at(before), 10); !slices.Equal(got, want) {
			t.Errorf("overdue at %d, since before %d: %v, want %v", now, before, got, want)
		}
	}
	overdue(40, 11)
	overdue(40, 30, Overdue{"a", "node 1", at(11)}, Overdue{"b", "", at(15)})
	overdue(40, 30) // heard of now, as it were

	check(t, d.Close())
	d = open(t, dir, j, Config{}) // nothing was synced
	if got := d.Stats().URLs; got != 0 {
		t.Errorf("%d URLs are known without a Sync", got)
	}
	claim(t, d, 10, "a", "a1", "a2", "a3")
	claim(t, d, 15, "b", "b1")
	check(t, d.Checkpoint(t.Context()))
	check(t, d.Assign(at(12), "a", "node 2"))
	check(t, d.Sync())
	check(t, d.Close())
	d = open(t, dir, j, Config{})
	if got := d.Overdue(at(100), at(100), 1); !slices.Equal(got, []Overdue{{"a", "node 2", at(12)}}) {
		t.Errorf("the longest overdue: %v", got)
	}
	overdue(100, 100, Overdue{"b", "", at(15)})
	n, err := d.Done("b", []Hash{HashOf("b1"), HashOf("b2"), HashOf("b1")})
	if check(t, err); n != 2 {
		t.Errorf("Done is news of %d URLs", n)
	}
	overdue(300, 200, Overdue{"a", "node 2", at(100)})
	if got := claim(t, d, 300, "b", "b2"); got[0] {
		t.Error("b2 is done, and fresh")
	}

	urls, next, more, err := d.Dispatched("a", Hash{}, 2)
	if check(t, err); len(urls) != 2 || !more {
		t.Fatal(urls, more)
	}
	rest, _, more, err := d.Dispatched("a", next, 2)
	if check(t, err); len(rest) != 1 || more {
		t.Fatal(rest, more)
	}
	for _, u := range append(urls, rest...) {
		if u.Hash != HashOf(string(u.Data)) || u.At != 12 || u.Done {
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
		if _, err := d.Claim(at(1), host, items("u"), nil); !errors.Is(err, ErrRecord) {
			t.Errorf("%.20q: %v", host, err)
		}
	}
	if _, err := d.Claim(at(1), "a", []Item{{Data: make([]byte, MaxData+1)}}, nil); !errors.Is(err, ErrRecord) {
		t.Error(err)
	}
	check(t, d.Close())
}

// TestMemoryIsBounded has changes refused where memory has no room, until a checkpoint has made some.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, t.TempDir(), memory.New(), Config{Memory: 1 << 20})
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = d.Claim(at(1), fmt.Sprint("h", n%100), items(fmt.Sprint(n)), nil)
		}
		if st := d.Stats(); !errors.Is(err, ErrFull) || st.Table > 1<<19 || n < 1000 {
			t.Fatalf("after %d claims: %v, %+v", n, err, st)
		}
		waited := false
		go func() {
			check(t, d.Room(t.Context()))
			waited = true
		}()
		synctest.Wait()
		if waited {
			t.Error("there is room at once")
		}
		check(t, d.Tend(t.Context()))
		synctest.Wait()
		if !waited {
			t.Error("there is no room after a checkpoint")
		}
		if got := claim(t, d, 2, "h0", "0"); got[0] {
			t.Error("0 is forgotten")
		}
		for i := 0; err == nil || i == 0; i++ { // one URL each of many hosts
			_, err = d.Claim(at(1), fmt.Sprint("other", i), items("u"), nil)
		}
		if st := d.Stats(); !errors.Is(err, ErrFull) || st.Hosts > 1<<18/hostBytes {
			t.Errorf("%v: %d hosts", err, st.Hosts)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Room(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		check(t, d.Close())
	})
}

// TestReplayWithLessMemory has a journal that is more than memory holds.
func TestReplayWithLessMemory(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	d := open(t, dir, j, Config{Memory: 8 << 20})
	for n := range 10_000 {
		claim(t, d, int64(n), fmt.Sprint("h", n%100), fmt.Sprint(n))
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

// TestAnotherID has the lists counted anew where a node comes back with another id.
func TestAnotherID(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	d := open(t, dir, j, Config{})
	for n := range 1000 {
		claim(t, d, 1, fmt.Sprint("h", n%50), fmt.Sprint(n))
	}
	check(t, d.Checkpoint(t.Context()))
	check(t, d.Close())
	other := xor.Of("other").Truncate(6)
	d = open(t, dir, j, Config{Self: other, Key: keyOf})
	want := map[int]int64{}
	for n := range 1000 {
		want[keyOf(fmt.Sprint("h", n%50)).FirstDiff(other)]++
	}
	for _, l := range d.Lists() {
		if l.URLs != want[l.Index] || l.Dispatched != want[l.Index] {
			t.Errorf("%+v, want %d", l, want[l.Index])
		}
		delete(want, l.Index)
	}
	if len(want) > 0 {
		t.Errorf("lists %v are missing", want)
	}
	check(t, d.Close())
}

// TestMergeIsThatOfALattice merges the same records in different orders, some of them twice.
func TestMergeIsThatOfALattice(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	m := &model{dice: rand.New(rand.NewPCG(seed, 0)), now: 1_700_000_100}
	err := quick.Check(func(order uint64) bool {
		var records []Record
		for range 1 + m.dice.IntN(30) {
			records = append(records, m.record())
		}
		var dumps [2]string
		for i := range dumps {
			d := open(t, t.TempDir(), memory.New(), Config{})
			for _, r := range records {
				_, err := d.Merge(at(m.now), []Record{r})
				check(t, err)
				if m.dice.IntN(8) == 0 {
					check(t, d.Checkpoint(t.Context()))
				}
			}
			dumps[i] = dump(t, d, 100)
			check(t, d.Close())
			m.dice.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
			records = append(records, records[m.dice.IntN(len(records))])
		}
		return dumps[0] == dumps[1]
	}, &quick.Config{MaxCount: 100})
	if err != nil {
		t.Error(err)
	}
}

func TestMergeKeepsTimesOfThePast(t *testing.T) {
	d := open(t, t.TempDir(), memory.New(), Config{})
	r := Record{Host: "a", Target: "n", Assigned: 1 << 40, URLs: []URL{{Hash: HashOf("u"), At: 99}}}
	_, err := d.Merge(at(50), []Record{r})
	check(t, err)
	if u, _, err := d.Get("a", HashOf("u")); err != nil || u.At != 50 {
		t.Errorf("%+v, %v", u, err)
	}
	if got := d.Overdue(at(60), at(60), 9); len(got) != 1 || !got[0].Since.Equal(at(50)) {
		t.Errorf("%v", got)
	}
	check(t, d.Close())
}

// holders are the r nodes closest to a key, the closest first.
func holders(key xor.ID, nodes []xor.ID, r int) []xor.ID {
	all := slices.Clone(nodes)
	slices.SortFunc(all, func(a, b xor.ID) int { return xor.Compare(a, b, key) })
	return all[:min(r, len(all))]
}

// TestTransfers has nodes come and go, which send each other what others come to hold, in pieces and over an encoding,
// and forget what they need not hold. Every record is at the nodes closest to its host then.
func TestTransfers(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	const r = 2
	nodes, ids := map[xor.ID]*DB{}, []xor.ID(nil)
	start := func(id xor.ID) {
		nodes[id] = open(t, t.TempDir(), memory.New(), Config{Self: id, Key: keyOf, Memory: 1 << 20})
	}
	for _, n := range dice.Perm(64)[:2] {
		id := xor.ID{byte(n << 2)}
		ids = append(ids, id)
		start(id)
	}
	all := known{}
	for round := range 30 {
		for range 50 {
			u := URL{Hash: HashOf(fmt.Sprint(dice.IntN(50))), At: 1, Done: dice.IntN(2) == 0}
			rec := Record{Host: fmt.Sprint("h", dice.IntN(200)), URLs: []URL{u}}
			all.merge(rec)
			for _, id := range holders(keyOf(rec.Host), ids, r) {
				_, err := nodes[id].Merge(at(1), []Record{rec})
				check(t, err)
			}
		}
		after := slices.Clone(ids)
		var gone []xor.ID
		if one := dice.IntN(len(ids)); len(ids) > 3 && dice.IntN(2) == 0 {
			if after = slices.Delete(after, one, one+1); dice.IntN(2) == 0 {
				gone = ids[one : one+1]
			}
		} else if id := (xor.ID{byte(dice.IntN(64) << 2)}); nodes[id] == nil {
			after = append(after, id)
			start(id)
		}
		for n := range byte(64) {
			key := xor.ID{n << 2}
			before, now := holders(key, ids, r), holders(key, after, r)
			sender := slices.DeleteFunc(slices.Clone(before), func(id xor.ID) bool { return slices.Contains(gone, id) })[0]
			for _, to := range now {
				if !slices.Contains(before, to) {
					send(t, nodes[sender], nodes[to], xor.Prefix(key, keyBits), 1+dice.IntN(100))
				}
			}
		}
		for _, id := range ids {
			if !slices.Contains(after, id) {
				check(t, nodes[id].Close())
				delete(nodes, id)
				continue
			}
			var drop []xor.Pattern
			for n := range byte(64) {
				if key := (xor.ID{n << 2}); !slices.Contains(holders(key, after, r), id) {
					drop = append(drop, xor.Prefix(key, keyBits))
				}
			}
			check(t, nodes[id].Forget(t.Context(), drop...))
		}
		ids = after
		for id, d := range nodes {
			want := known{}
			for name, rec := range all {
				if slices.Contains(holders(keyOf(name), ids, r), id) {
					want[name] = rec
				}
			}
			if got := dump(t, d, 100); got != want.String() {
				t.Fatalf("round %d, %v of %v knows\n%.2000s\nwant\n%.2000s", round, id, ids, got, want)
			}
		}
	}
	for _, d := range nodes {
		check(t, d.Close())
	}
}

func send(t *testing.T, from, to *DB, keys xor.Pattern, most int) {
	t.Helper()
	for next, begun := Cursor(""), false; next != "" || !begun; begun = true {
		records, n, err := from.Records(keys, next, most)
		check(t, err)
		var b []byte
		for i := range records {
			b = AppendRecord(b, &records[i])
		}
		records = records[:0]
		for len(b) > 0 {
			var r Record
			r, b, err = ReadRecord(b)
			check(t, err)
			records = append(records, r)
		}
		_, err = to.Merge(at(1), records)
		check(t, err)
		next = n
	}
}

// TestFullDisk has a disk without room: what was durable is still there when it has some.
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

// TestAfterAFailure has nothing changed any more after the journal could not be written.
func TestAfterAFailure(t *testing.T) {
	m := newModel(t, 1)
	claim(t, m.db, 1, "a", "1")
	m.disk.SetRoom(0)
	if err := m.db.Sync(); !vfs.IsFull(err) {
		t.Errorf("Sync: %v", err)
	}
	m.disk.SetRoom(-1)
	_, err := m.db.Claim(at(2), "a", items("2"), nil)
	if !vfs.IsFull(err) || !vfs.IsFull(m.db.Sync()) || !vfs.IsFull(m.db.Checkpoint(t.Context())) {
		t.Errorf("Claim: %v", err)
	}
	m.reopen()
	check(t, m.db.Close())
	check(t, m.log.Close())
}

func TestAnotherJournal(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	d := open(t, dir, j, Config{})
	claim(t, d, 1, "a", "1")
	check(t, d.Checkpoint(t.Context()))
	check(t, d.Close())
	if _, err := Open(vfs.OS, dir, memory.New(), Config{Self: self, Key: keyOf}); !errors.Is(err, errJournal) {
		t.Error(err)
	}
}

// untilFull does something, and reports whether the disk was full.
func (m *model) untilFull() bool {
	m.now++
	if m.dice.IntN(4) > 0 {
		m.claim()
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

// TestManyAtOnce has many claim the same URLs while others write and forget: each is fresh once.
func TestManyAtOnce(t *testing.T) {
	d := open(t, t.TempDir(), memory.New(), Config{Memory: 1 << 20})
	const hosts, urls = 20, 300
	var fresh atomic.Int64
	var work, aside sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	aside.Go(func() {
		for ctx.Err() == nil {
			check(t, d.Tend(t.Context()))
			check(t, d.Checkpoint(t.Context()))
			check(t, d.ForgetHosts(t.Context(), "nobody"))
			d.Overdue(at(9), at(9), 3)
			dump(t, d, 1000)
		}
	})
	for w := range 4 {
		work.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(w), 0))
			for range 4 {
				for _, n := range dice.Perm(urls) {
					host := fmt.Sprint("h", n%hosts)
					for {
						got, err := d.Claim(at(1), host, items(fmt.Sprint(n)), nil)
						if errors.Is(err, ErrFull) {
							check(t, d.Room(t.Context()))
							continue
						}
						check(t, err)
						if got[0] {
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
	if fresh.Load() != urls {
		t.Errorf("%d URLs were fresh %d times", urls, fresh.Load())
	}
	check(t, d.Close())
}

// What is entered says what was known before, in memory, on disk, and of one that is given twice.
func TestEnterSaysWhatWasKnown(t *testing.T) {
	l := open(t, t.TempDir(), memory.New(), Config{})
	hash := func(i byte) Hash { return Hash{i} }
	enter := func(urls ...URL) []State {
		t.Helper()
		before, err := l.Enter(time.Unix(1000, 0), "a.test", urls, nil)
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
	if n := l.Open("a.test"); n != 1 {
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
