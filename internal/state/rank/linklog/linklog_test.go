package linklog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// A record is a page, or contributions from elsewhere.
type record struct {
	page rank.Page
	gift Contribution
	told bool
}

// fill adds pages and contributions with new URLs, and returns the records that a scan must find.
func fill(l *Log, dice *rand.Rand, urls *int, pages, most int) (want []record, keys []ids.Key) {
	for range pages {
		fresh := make([]ids.Key, 1+dice.IntN(3))
		for i := range fresh {
			fresh[i] = ids.Key(dice.Uint64() >> (64 - ids.KeyBits))
		}
		keys = append(keys, fresh...)
		*urls += len(fresh)
		numbers := make([]rank.ID, dice.IntN(most))
		for i := range numbers {
			numbers[i] = rank.ID(dice.IntN(*urls))
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		if dice.IntN(5) == 0 {
			told := Contribution{To: rank.ID(dice.IntN(*urls)), Worth: dice.Float32()}
			l.AddReported(nil, told)
			want = append(want, record{gift: told, told: true})
		}
		if dice.IntN(5) > 0 {
			p := rank.Page{ID: rank.ID(dice.IntN(*urls)), Links: numbers, Out: len(numbers) + dice.IntN(3)}
			l.AddPage(fresh, &p)
			want = append(want, record{page: p})
			continue
		}
		var gifts []Contribution
		tag := uint32(dice.IntN(2))
		for _, to := range numbers {
			gifts = append(gifts, Contribution{to, dice.Float32(), tag * dice.Uint32()})
			want = append(want, record{gift: gifts[len(gifts)-1]})
		}
		l.AddContributions(fresh, gifts)
	}
	return want, keys
}

func scan(t *testing.T, v View) (got []record) {
	t.Helper()
	err := v.Read(t.Context(), &Reader{Page: func(p *rank.Page) {
		got = append(got, record{page: rank.Page{ID: p.ID, Links: append([]rank.ID{}, p.Links...), Out: p.Out}})
	}, Contribution: func(g Contribution) { got = append(got, record{gift: g}) },
		Reported: func(g Contribution) { got = append(got, record{gift: g, told: true}) }})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(t *testing.T, what string, got, want []record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range want {
		a, b := &got[i], &want[i]
		if a.gift != b.gift || a.told != b.told || a.page.ID != b.page.ID || a.page.Out != b.page.Out ||
			!slices.Equal(a.page.Links, b.page.Links) {
			t.Fatalf("%s: record %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestWhatWasAddedIsFound reads logs in memory, on disk and partly on disk, before and after they are opened again.
func TestWhatWasAddedIsFound(t *testing.T) {
	testmain.Slow(t)
	const seed = 1
	t.Log("seed", seed)
	for _, memory := range []int64{0, 600 << 10, 1 << 30} {
		for _, most := range []int{60, 200_000} { // short records, and some longer than a chunk
			dice := rand.New(rand.NewPCG(seed, uint64(most)))
			cfg := Config{Dir: t.TempDir(), Memory: memory}
			var want []record
			var keys []ids.Key
			var mark Mark
			urls, pages := 200_000, 3_000
			if most > 1000 {
				pages = 12
			}
			if testing.Short() {
				urls, pages = urls/10, max(pages/20, 4)
			}
			for run := range 3 {
				l, err := Open(cfg, mark)
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("memory %d, links up to %d, run %d", memory, most, run)
				if run == 0 { // so that any number is valid
					keys = make([]ids.Key, urls)
					l.AddKnown(keys)
				}
				same(t, name+", opened", scan(t, l.View(0)), want)
				more, moreKeys := fill(l, dice, &urls, pages, most)
				half := l.View(0)
				want, keys = append(want, more...), append(keys, moreKeys...)
				same(t, name+", before it is written", scan(t, half), want)
				if err := l.Flush(); err != nil {
					t.Fatal(err)
				}
				more, moreKeys = fill(l, dice, &urls, pages, most)
				same(t, name+", first part", scan(t, half), want)
				same(t, name+", rest", scan(t, l.View(half.End())), more)
				want, keys = append(want, more...), append(keys, moreKeys...)
				if mark, err = l.Sync(); err != nil {
					t.Fatal(err)
				}
				same(t, name+", written", scan(t, l.View(0)), want)
				if size := l.Size(); size.Memory > memory+3*chunkLen && most < 1000 {
					t.Errorf("%s: %d bytes in memory", name, size.Memory)
				}
				l.AddKnown([]ids.Key{1}) // not synced
				if err := errors.Join(l.Flush(), l.Close()); err != nil {
					t.Fatal(err)
				}
			}
			l, err := Open(cfg, mark)
			if err != nil {
				t.Fatal(err)
			}
			var got []ids.Key
			if err := l.Keys(func(k ids.Key) error { got = append(got, k); return nil }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, keys) {
				t.Errorf("%d keys, want %d", len(got), len(keys))
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPowerFailures: after any power failure, the log is in the state of its last mark.
func TestPowerFailures(t *testing.T) {
	for seed := range uint64(10) {
		dice := rand.New(rand.NewPCG(seed, 1))
		disk := vfstest.NewFaulty(vfs.OS)
		cfg := Config{Dir: filepath.Join(t.TempDir(), "links"), Disk: disk}
		l, err := Open(cfg, Mark{})
		if err != nil {
			t.Fatal(err)
		}
		urls := 100
		l.AddKnown(make([]ids.Key, urls))
		disk.DieAfter(dice.Int64N(100_000))
		var all, want []record
		var mark Mark
		for !disk.Dead() {
			more, _ := fill(l, dice, &urls, dice.IntN(20), 50)
			all = append(all, more...)
			n := len(all)
			if dice.IntN(3) == 0 {
				_ = l.Flush() // it may fail, since the disk does
			} else if m, err := l.Sync(); err == nil {
				mark, want = m, all[:n:n]
			}
		}
		l.Close() // the process has died
		if err := disk.PowerLoss(dice); err != nil {
			t.Fatal(err)
		}
		cfg.Disk = vfs.OS
		if l, err = Open(cfg, mark); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		same(t, fmt.Sprintf("seed %d", seed), scan(t, l.View(0)), want)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamage: a log that is too short or has other bytes returns an error, or only numbers of existing URLs.
func TestDamage(t *testing.T) {
	const seed = 2
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	cfg := Config{Dir: t.TempDir()}
	l, err := Open(cfg, Mark{})
	if err != nil {
		t.Fatal(err)
	}
	urls, records := 0, 20_000
	if testing.Short() {
		records = 2000
	}
	fill(l, dice, &urls, records, 60)
	mark, err := l.Sync()
	if err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg, Mark{URLs: mark.URLs + 1, Links: mark.Links}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a key is missing: %v", err)
	}
	if _, err := Open(cfg, Mark{URLs: mark.URLs, Links: mark.Links + 1}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte is missing: %v", err)
	}
	name := filepath.Join(cfg.Dir, "links")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for range 200 {
		broken := slices.Clone(whole)
		broken[dice.IntN(len(broken))] ^= 1 << dice.IntN(8)
		if err := os.WriteFile(name, broken, 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := Open(cfg, mark)
		if err == nil {
			err = l.View(0).scanAll(t.Context(), rank.ID(mark.URLs))
			err = errors.Join(err, l.Close())
		}
		if errors.Is(err, ErrDamaged) {
			said++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 200 flipped bits are noticed", said)
}

// TestEarlierBuild: a log without checksums at its end is told from a damaged one.
func TestEarlierBuild(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	l, err := Open(cfg, Mark{})
	if err != nil {
		t.Fatal(err)
	}
	for id := range rank.ID(20) {
		l.AddPage([]ids.Key{ids.Key(id)}, &rank.Page{ID: id})
	}
	l.AddPage(nil, &rank.Page{ID: 19, Links: []rank.ID{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}})
	first, err := l.Sync()
	if err != nil {
		t.Fatal(err)
	}
	l.AddPage(nil, &rank.Page{ID: 18, Links: []rank.ID{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}})
	second, err := l.Sync()
	if err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	second.Links -= checksumsLen // with checksums only before the end
	if _, err := Open(cfg, second); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) {
		t.Errorf("error %v, want %v", err, ErrDamaged)
	}
	first.Links -= checksumsLen
	if _, err := Open(cfg, first); !errors.Is(err, ErrVersion) || errors.Is(err, ErrDamaged) {
		t.Errorf("error %v, want %v", err, ErrVersion)
	}
}

// TestCountOfDamagedRecord: a wrong number of links must not make Open read the rest of the log into memory.
func TestCountOfDamagedRecord(t *testing.T) {
	const size = 16 << 20
	cfg := Config{Dir: t.TempDir()}
	links := make([]byte, size)
	binary.PutUvarint(links, 1<<60)
	for name, data := range map[string][]byte{KeysFile: make([]byte, keyLen), LinksFile: links, OthersFile: nil} {
		if err := os.WriteFile(filepath.Join(cfg.Dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open(cfg, Mark{URLs: 1, Links: size})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v, want %v", err, ErrDamaged)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > size/4 {
		t.Errorf("%d bytes allocated for a log of %d", used, size)
	}
}

func (v View) scanAll(ctx context.Context, most rank.ID) error {
	bad := false
	err := v.Scan(ctx, func(p *rank.Page) {
		bad = bad || p.ID >= most || len(p.Links) > 0 && p.Links[len(p.Links)-1] >= most
	}, func(to rank.ID, _ float32) { bad = bad || to >= most })
	if bad {
		return errors.New("a number is none of a URL's")
	}
	return err
}

func TestAScanEndsWithItsContext(t *testing.T) {
	l, err := Open(Config{}, Mark{})
	if err != nil {
		t.Fatal(err)
	}
	urls := 0
	fill(l, rand.New(rand.NewPCG(1, 1)), &urls, 10, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := l.View(0)
	if err := v.Scan(ctx, func(*rank.Page) {}, func(rank.ID, float32) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if m, err := l.Sync(); err != nil || m.Links != v.End() || m.URLs != int64(urls) {
		t.Errorf("%v, %v", m, err)
	}
}
