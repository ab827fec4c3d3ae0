package hosttable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/cluster/strategy"
)

// TestParts: the encoded parts contain the whole table, and a loaded part replaces the previous one.
func TestParts(t *testing.T) {
	t.Parallel()
	const seed = 5
	dice, from, to := rand.New(rand.NewPCG(seed, 3)), New(testKey), New(testKey)
	for i := range 30_000 {
		from.Set(fmt.Sprint("a", i, ".example"), randomRow(dice, 300))
		to.Set(fmt.Sprint("a", dice.IntN(60_000), ".example"), randomRow(dice, 500))
	}
	for i := range 10_000 {
		from.Delete(fmt.Sprint("a", i*2, ".example"))
	}
	for part := range Parts {
		b := from.AppendPart([]byte("before"), part)
		must(t, to.LoadPart(b[len("before"):]))
		if again := to.AppendPart(nil, part); !bytes.Equal(again, b[len("before"):]) {
			t.Fatalf("part %d is written in another way by the table that has read it (seed %d)", part, seed)
		}
	}
	must(t, from.sound())
	must(t, to.sound())
	if got, want := content(t, to), content(t, from); !maps.Equal(got, want) || len(want) != 20_000 {
		t.Errorf("%d hosts were written, %d read (seed %d)", len(want), len(got), seed)
	}
}

// TestForm fixes the encoding, which is stored in logs.
func TestForm(t *testing.T) {
	tab := New(testKey)
	tab.Set("www51.example.org", Row{Owner: "b~7", State: 2, Round: 3, Since: 0x01020304})
	part := tab.Part("www51.example.org")
	want := append([]byte{1}, binary.AppendUvarint(nil, uint64(part))...)
	want = append(want, "\x01\x03b~7\x01\x11www51.example.org\x01\x02\x03\x04\x03\x02\x01"...)
	if got := tab.AppendPart(nil, part); !bytes.Equal(got, sealed(want)) {
		t.Errorf("got %q, want %q", got, sealed(want))
	}
}

// sealed appends the checksum.
func sealed(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(bytes.Clone(b), xxhash.Sum64(b))
}

// TestDamaged: an invalid part changes nothing, and needs no more memory than its own size.
func TestDamaged(t *testing.T) {
	tab := New(testKey)
	names := crowd(50, 1)
	for _, host := range names {
		tab.Set(host, Row{Owner: "a~1", Since: 9})
	}
	good := tab.AppendPart(nil, 0)
	other := New(Key{9})
	for _, host := range names {
		other.Set(host, Row{Owner: "c~1"})
	}
	const nobodys = "\x00\x00\x00\x00\x00\x00\x00"
	named := string(appendBytes(nil, names[1]))
	uvarint := func(x uint64) string { return string(binary.AppendUvarint(nil, x)) }
	cases := map[string][]byte{
		"nothing":           nil,
		"a zero":            make([]byte, 8),
		"cut short":         good[:len(good)-1],
		"another version":   sealed([]byte("\x02\x00\x00\x00")),
		"a long version":    sealed([]byte("\x81\x00\x00\x00\x00")),
		"no such part":      sealed([]byte("\x01" + uvarint(Parts) + "\x00\x00")),
		"too much":          sealed([]byte("\x01\x00\x00\x00\x00")),
		"too little":        sealed([]byte("\x01\x00\x00")),
		"many nodes":        sealed([]byte("\x01\x00" + uvarint(math.MaxUint64) + "aaaa")),
		"many rows":         sealed([]byte("\x01\x00\x00" + uvarint(1<<40) + "aaaaaaaaaaaaaaaa")),
		"a long name":       sealed([]byte("\x01\x00\x00\x01" + uvarint(1<<30) + "aaaaaaaaaaaaaaaa")),
		"a node twice":      sealed([]byte("\x01\x00\x02\x01a\x01a\x00")),
		"a node of no name": sealed([]byte("\x01\x00\x01\x00\x00")),
		"a host twice":      sealed([]byte("\x01\x00\x00\x02" + named + nobodys + named + nobodys)),
		"no such owner":     sealed([]byte("\x01\x00\x00\x01" + named + "\x01\x00\x00\x00\x00\x00\x00")),
		"another part":      sealed(append([]byte{1, 1}, good[2:len(good)-8]...)),
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1 << (i % 8)
		cases[fmt.Sprint("bit ", i)] = b
	}
	for part := range Parts { // parts of a table with another key
		if b := other.AppendPart(nil, part); other.parts[part].rows != nil && part != 0 {
			cases[fmt.Sprint("another key ", part)] = b
		}
	}
	for name, b := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := tab.LoadPart(b)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: %d bytes of memory for %d", name, n, len(b))
		}
	}
	must(t, tab.sound())
	if again := tab.AppendPart(nil, 0); !bytes.Equal(again, good) || tab.Len() != len(names) {
		t.Error("what is damaged changes the table")
	}
}

// TestTooManyNodes: too many owners are refused before anything is changed.
func TestTooManyNodes(t *testing.T) {
	t.Parallel()
	tab, other := New(testKey), New(testKey)
	for i := range MaxNodes {
		tab.Set(fmt.Sprint(i), Row{Owner: strategy.Node(fmt.Sprint("n~", i))})
	}
	other.Set("x", Row{Owner: "one-more~1"})
	part := other.Part("x")
	before := tab.AppendPart(nil, part)
	if tab.LoadPart(other.AppendPart(nil, part)) == nil || !bytes.Equal(tab.AppendPart(nil, part), before) {
		t.Error("it is taken")
	}
	must(t, tab.sound())
	defer func() {
		if recover() == nil {
			t.Error("Set takes it")
		}
	}()
	tab.Set("x", Row{Owner: "one-more~1"})
}

// FuzzLoadPart: after loading arbitrary data the table is consistent, and after an error unchanged. seal: correct the
// checksum.
func FuzzLoadPart(f *testing.F) {
	names := crowd(60, 1)
	dice := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 60} {
		tab := New(testKey)
		for _, host := range names[:n] {
			tab.Set(host, randomRow(dice, n/5))
		}
		b := tab.AppendPart(nil, 0)
		f.Add(b, false)
		f.Add(b[:len(b)-8], true)
	}
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal {
			b = sealed(b)
		}
		tab := New(testKey)
		for _, host := range names[30:40] {
			tab.Set(host, Row{Owner: "old~1"})
		}
		before := content(t, tab)
		err := tab.LoadPart(b)
		must(t, tab.sound())
		if err != nil {
			if !maps.Equal(content(t, tab), before) {
				t.Fatal("an error, and the table is changed")
			}
			return
		}
		part, _ := binary.Uvarint(b[1:])
		again := tab.AppendPart(nil, int(part))
		if len(again) > len(b) {
			t.Errorf("%d bytes of what was read from %d", len(again), len(b))
		}
		to := New(testKey)
		must(t, to.LoadPart(again))
		if got, want := to.AppendPart(nil, int(part)), again; !bytes.Equal(got, want) {
			t.Errorf("written as %q, then as %q", want, got)
		}
	})
}
