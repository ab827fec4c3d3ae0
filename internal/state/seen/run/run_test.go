package run

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/urlgen"
)

// write writes a run of pairs and returns its name.
func write(t testing.TB, opt Options, pairs map[string]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "run")
	w, err := Create(vfs.OS, name, opt)
	check(t, err)
	for _, key := range sorted(pairs) {
		check(t, w.Add([]byte(key), []byte(pairs[key])))
	}
	check(t, w.Finish())
	return name
}

func sorted(pairs map[string]string) (keys []string) {
	for key := range pairs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// sample returns URLs with values of all lengths, and unusual keys.
func sample(n int) map[string]string {
	pairs := map[string]string{"": "empty", "\x00": "", "\x00\x00": "0", strings.Repeat("k", 300): strings.Repeat("v",
		100_000)}
	stream := urlgen.New(3)
	for i := range n {
		pairs[string(stream.Append(nil))] = strings.Repeat("v", i%20)
	}
	return pairs
}

func TestRunKeepsAll(t *testing.T) {
	for _, compress := range []bool{false, true} {
		pairs := sample(20_000)
		r := open(t, write(t, Options{Compress: compress}, pairs))
		if r.Len() != int64(len(pairs)) {
			t.Errorf("Len = %d, want %d", r.Len(), len(pairs))
		}
		it, f := r.Iter(), r.Finder()
		for _, key := range sorted(pairs) {
			if !it.Next() || string(it.Key()) != key || string(it.Value()) != pairs[key] {
				t.Fatalf("the iterator is at %.40q, want %.40q: %v", it.Key(), key, it.Err())
			}
			value, ok, err := f.Find([]byte(key))
			if !ok || err != nil || string(value) != pairs[key] || !r.May(key, HashString(key)) {
				t.Fatalf("Find(%.40q) = %.40q, %v, %v", key, value, ok, err)
			}
		}
		if it.Next() || it.Err() != nil {
			t.Errorf("there is more: %q, %v", it.Key(), it.Err())
		}
	}
}

// TestFinderInAnyOrder looks up present and missing keys, mostly in order, sometimes with jumps.
func TestFinderInAnyOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	pairs := sample(20_000)
	r := open(t, write(t, Options{Compress: true}, pairs))
	keys, f := sorted(pairs), r.Finder()
	for i, n := 0, 0; n < 50_000; n++ {
		if i += 1 + dice.IntN(1<<dice.IntN(12)); dice.IntN(100) == 0 || i >= len(keys) {
			i = dice.IntN(len(keys))
		}
		key := keys[i][:max(0, len(keys[i])-dice.IntN(2))] + strings.Repeat("!", dice.IntN(2))
		want, known := pairs[key]
		for range 1 + dice.IntN(2) {
			value, ok, err := f.Find([]byte(key))
			if ok != known || err != nil || ok && string(value) != want {
				t.Fatalf("Find(%.40q) = %.40q, %v, %v, want %.40q, %v", key, value, ok, err, want, known)
			}
		}
	}
}

func TestRunKnowsWhatItHasNot(t *testing.T) {
	pairs := sample(20_000)
	r := open(t, write(t, Options{Compress: true}, pairs))
	keys, maybe := sorted(pairs), 0
	other := urlgen.New(4)
	for range 5000 {
		url := string(other.Append(nil))
		if _, known := pairs[url]; known {
			continue
		}
		if r.May(url, HashString(url)) {
			maybe++
		}
		_, ok, err := r.Get([]byte(url))
		check(t, err)
		at, _ := slices.BinarySearch(keys, url)
		if it := r.Iter(); ok || it.Seek([]byte(url)) != (at < len(keys)) || at < len(keys) && string(it.Key()) != keys[at] {
			t.Fatalf("Get(%q) = %v; Seek goes to %q", url, ok, it.Key())
		}
	}
	if maybe > 60 {
		t.Errorf("the filter errs %d times in 5000", maybe)
	}
}

func TestAddRefusesDisorder(t *testing.T) {
	for _, key := range []string{"b", "a", ""} {
		w, err := Create(vfs.OS, filepath.Join(t.TempDir(), "run"), Options{})
		check(t, err)
		check(t, w.Add([]byte("b"), nil))
		if err := w.Add([]byte(key), nil); !errors.Is(err, ErrOrder) {
			t.Errorf("%q after \"b\": %v", key, err)
		}
		check(t, w.Close())
	}
}

func TestOpenRefusesOtherVersions(t *testing.T) {
	for _, text := range []string{"", "kumo run 2\n and more of it", "something else altogether"} {
		name := filepath.Join(t.TempDir(), "run")
		check(t, os.WriteFile(name, []byte(text), 0o600))
		if _, err := Open(vfs.OS, name); !errors.Is(err, ErrVersion) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMergeFolds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	want := map[string]string{}
	var sources []Source
	for age := range 7 {
		pairs := map[string]string{}
		for range dice.IntN(200) {
			key := fmt.Sprint(dice.IntN(300))
			if _, twice := pairs[key]; !twice {
				pairs[key] = fmt.Sprint(age)
				want[key] += fmt.Sprint(age)
			}
		}
		sources = append(sources, open(t, write(t, Options{}, pairs)).Iter())
	}
	m := Merge(func(newer, older []byte) []byte { return append(newer, older...) }, sources...)
	for _, key := range sorted(want) {
		if !m.Next() || string(m.Key()) != key || string(m.Value()) != want[key] {
			t.Fatalf("%q is %q, want %q of %q", m.Key(), m.Value(), want[key], key)
		}
	}
	if m.Next() || m.Err() != nil {
		t.Errorf("there is more: %q, %v", m.Key(), m.Err())
	}
}

// FuzzDamage changes bytes of a run: its answers are right or an error.
func FuzzDamage(f *testing.F) {
	pairs := sample(3000)
	var wholes [][]byte
	for _, compress := range []bool{false, true} {
		whole, err := os.ReadFile(write(f, Options{Compress: compress}, pairs))
		check(f, err)
		wholes = append(wholes, whole)
	}
	keys := sorted(pairs)
	for at := range 40 {
		f.Add(at%2 == 0, uint32(at*997), []byte{byte(at)}, uint32(0))
	}
	f.Add(true, uint32(1<<31), []byte{}, uint32(10))
	f.Fuzz(func(t *testing.T, compress bool, at uint32, with []byte, cut uint32) {
		damaged := slices.Clone(wholes[0])
		if compress {
			damaged = slices.Clone(wholes[1])
		}
		copy(damaged[int(at)%len(damaged):], with)
		damaged = damaged[:len(damaged)-int(cut)%len(damaged)]
		name := filepath.Join(t.TempDir(), "run")
		check(t, os.WriteFile(name, damaged, 0o600))
		r, err := Open(vfs.OS, name)
		if err != nil {
			return
		}
		defer r.Close()
		i, it := 0, r.Iter()
		for ; it.Next(); i++ {
			if string(it.Key()) != keys[i] || string(it.Value()) != pairs[keys[i]] {
				t.Fatalf("entry %d is %.40q", i, it.Key())
			}
		}
		if it.Err() == nil && i != len(keys) {
			t.Fatalf("%d entries, want %d", i, len(keys))
		}
	})
}

// FuzzBlock reads entries that no checksum protects.
func FuzzBlock(f *testing.F) {
	var b block
	b.add(0, []byte("abc"), nil)
	b.add(2, bytes.Repeat([]byte("d"), 40), make([]byte, 20))
	f.Add(new(coder).encode(nil, &b), []byte("abd"))
	f.Fuzz(func(_ *testing.T, in, key []byte) {
		if b, err := decode(new(block), in); err == nil {
			find := Finder{rest: cursor{block: b}}
			_, _ = find.search(key, 0)
			_, _ = find.search(key, 0)
		}
		_, _ = readFilter(in)
		var x index
		x.read(&varint.Reader{Rest: in}, 1<<20)
	})
}

func open(t *testing.T, name string) *Reader {
	t.Helper()
	r, err := Open(vfs.OS, name)
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
