package extsort

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

type record struct {
	part       int
	key, value string
}

func (r record) compare(o record) int {
	if r.part != o.part {
		return r.part - o.part
	}
	return compare([]byte(r.key), []byte(r.value), []byte(o.key), []byte(o.value))
}

func dice(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randomRecords(d *rand.Rand, n, parts int) (all []record) {
	for range n {
		key := make([]byte, d.IntN(12))
		for i := range key {
			key[i] = byte(d.IntN(4) * 85) // 0, 85, 170, 255: many prefixes of each other
		}
		all = append(all, record{d.IntN(parts), string(key), fmt.Sprint(d.IntN(9))})
	}
	return all
}

func addAll(t testing.TB, s *Sorter, all []record) {
	t.Helper()
	for _, r := range all {
		if err := s.Add(r.part, []byte(r.key), []byte(r.value)); err != nil {
			t.Fatal(err)
		}
	}
}

func readAll(t testing.TB, m *Merge, part int) (all []record) {
	t.Helper()
	for {
		key, value, err := m.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, record{part, string(key), string(value)})
	}
}

func TestRecordsAreSortedWhereverTheyLie(t *testing.T) {
	for _, memory := range []int{0, 40_000, 1200} { // in memory; a few runs; runs of runs
		for _, parts := range []int{1, 5} {
			t.Run(fmt.Sprintf("%d bytes, %d parts", memory, parts), func(t *testing.T) {
				all := randomRecords(dice(t), 5000, parts)
				dir := filepath.Join(t.TempDir(), "sort")
				s := New(Config{Dir: dir, Memory: memory, Parts: parts})
				addAll(t, s, all)
				var got []record
				for part := range parts {
					m, err := s.Sorted(part)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, readAll(t, m, part)...)
					if err := m.Close(); err != nil {
						t.Fatal(err)
					}
				}
				slices.SortFunc(all, record.compare)
				if !slices.Equal(got, all) {
					t.Errorf("%d records came back of %d, or not in order", len(got), len(all))
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				nothingIn(t, dir)
			})
		}
	}
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestTheRunsOfManySortersAreMergedByPart(t *testing.T) {
	const parts = 3
	all := randomRecords(dice(t), 9000, parts)
	dir := t.TempDir()
	var runs []Run
	for i := range 150 {
		s := New(Config{Dir: filepath.Join(dir, strconv.Itoa(i)), Memory: 2000, Parts: parts})
		addAll(t, s, all[i*60:(i+1)*60])
		some, err := s.Runs()
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, some...)
	}
	if len(runs) <= fanIn {
		t.Fatalf("%d runs are merged at once", len(runs))
	}
	slices.SortFunc(all, record.compare)
	var got []record
	merged := filepath.Join(dir, "merged")
	for part := range parts {
		m, err := Open(Config{Dir: merged}, runs, part)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, readAll(t, m, part)...)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, all) {
		t.Errorf("%d records came back of %d, or not in order", len(got), len(all))
	}
	nothingIn(t, merged)
	if _, err := os.Stat(runs[0].Name); err != nil {
		t.Errorf("a run that others may read is gone: %v", err)
	}
}

// sums adds up the values of a key.
func sums(_ []byte, values iter.Seq[[]byte], emit func([]byte) error) error {
	sum := 0
	for v := range values {
		n, err := strconv.Atoi(string(v))
		if err != nil {
			return err
		}
		sum += n
	}
	return emit(strconv.AppendInt(nil, int64(sum), 10))
}

func TestValuesAreCombined(t *testing.T) {
	all := randomRecords(dice(t), 20_000, 2)
	for i := range all { // fewer keys
		all[i].key = all[i].key[:min(len(all[i].key), 2)]
	}
	want := map[record]int{}
	for _, r := range all {
		n, _ := strconv.Atoi(r.value)
		want[record{part: r.part, key: r.key}] += n
	}
	s := New(Config{Dir: t.TempDir(), Memory: 3000, Parts: 2, Combine: sums})
	defer s.Close()
	addAll(t, s, all)
	runs, err := s.Runs()
	if err != nil {
		t.Fatal(err)
	}
	got := map[record]int{}
	for part := range 2 {
		m, err := Open(Config{Dir: t.TempDir(), Combine: sums}, runs, part)
		if err != nil {
			t.Fatal(err)
		}
		groups, failed := m.Groups()
		for key, values := range groups {
			err := sums(key, values, func(value []byte) error {
				got[record{part: part, key: string(key)}], err = strconv.Atoi(string(value))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(failed(), m.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%q has %d, not %d", k.key, got[k], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d keys of %d", len(got), len(want))
	}
}

func TestGroupsPassOverWhatNobodyAsksFor(t *testing.T) {
	s := New(Config{Dir: t.TempDir(), Memory: 400_000})
	defer s.Close()
	long := bytes.Repeat([]byte("long"), 50_000)
	for i := range 30 {
		if err := s.Add(0, fmt.Appendf(nil, "%d", i/10), append(fmt.Appendf(nil, "%d", i), long...)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := s.Sorted(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var got []string
	groups, failed := m.Groups()
	for key, values := range groups {
		n := 0
		for v := range values {
			if len(v) < len(long) {
				t.Fatalf("a value of %d bytes", len(v))
			}
			got = append(got, string(key)+"="+string(v[:2]))
			if n++; n == 2 {
				break
			}
		}
	}
	if want := []string{"0=0l", "0=1l", "1=10", "1=11", "2=20", "2=21"}; !slices.Equal(got, want) || failed() != nil {
		t.Errorf("%v, not %v: %v", got, want, failed())
	}
}

func TestHugeRecords(t *testing.T) {
	const n, size = 5, 100 << 20
	s := New(Config{Dir: t.TempDir(), Memory: 1 << 20, Parts: 1})
	defer s.Close()
	value := make([]byte, size)
	for i := range n {
		value[0], value[size-1] = byte(n-i), byte(n-i)
		if err := s.Add(0, []byte("same"), value); err != nil {
			t.Fatal(err)
		}
	}
	m, err := s.Sorted(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	runtime.GC()
	var most uint64
	for i := range n {
		_, v, err := m.Next()
		if err != nil || len(v) != size || v[0] != byte(i+1) || v[size-1] != byte(i+1) {
			t.Fatalf("record %d: %d bytes, %v", i, len(v), err)
		}
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		most = max(most, mem.HeapAlloc)
	}
	if most > 3*size {
		t.Errorf("merging %d records of %d MiB holds %d MiB", n, size>>20, most>>20)
	}
}

func TestADiskThatIsFull(t *testing.T) {
	disk, dir := vfstest.NewFaulty(vfs.OS), t.TempDir()
	disk.SetRoom(10_000)
	s := New(Config{Disk: disk, Dir: dir, Memory: 5000})
	d := dice(t)
	var err error
	for range 100_000 {
		if err = s.Add(0, fmt.Appendf(nil, "%d", d.Uint64()), nil); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	nothingIn(t, dir)
}

func TestADamagedRunIsAnError(t *testing.T) {
	dir := t.TempDir()
	s := New(Config{Dir: dir, Memory: 50_000})
	addAll(t, s, randomRecords(dice(t), 5000, 1))
	runs, err := s.Runs()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(runs[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 16
	for name, data := range map[string][]byte{"cut": whole[:len(whole)-20], "flipped": flipped} {
		if err := os.WriteFile(runs[0].Name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(Config{Dir: dir}, runs, 0)
		for err == nil {
			_, _, err = m.Next()
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("%s: read to its end", name)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkSort sorts records like those of verify and batch crawls, a URL and some bytes, with a hundredth of them in
// memory.
func BenchmarkSort(b *testing.B) {
	for _, size := range []int{20, 4000} {
		b.Run(fmt.Sprintf("values of %d bytes", size), func(b *testing.B) {
			const total = 64 << 20
			d := rand.New(rand.NewPCG(1, 2))
			value := bytes.Repeat([]byte("some text that is like others; "), size/31+1)[:size]
			n := total / (60 + size)
			b.SetBytes(total)
			for b.Loop() {
				s := New(Config{Dir: b.TempDir(), Memory: total / 16})
				var key []byte
				for range n {
					key = fmt.Appendf(key[:0], "http://host%d.example/a/path/of/some/length/%016x", d.IntN(1000), d.Uint64())
					if err := s.Add(0, key, value); err != nil {
						b.Fatal(err)
					}
				}
				m, err := s.Sorted(0)
				if err != nil {
					b.Fatal(err)
				}
				for range n {
					if _, _, err := m.Next(); err != nil {
						b.Fatal(err)
					}
				}
				if err := errors.Join(m.Close(), s.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
