package hosttable

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/cluster/strategy"
)

// times are the durations of calls.
type times struct {
	all []uint32 // nanoseconds
}

func newTimes(n int) *times { return &times{make([]uint32, 0, n)} }

func (m *times) add(d time.Duration) { m.all = append(m.all, uint32(min(d, 4*time.Second))) }

func (m *times) String() string {
	slices.Sort(m.all)
	at := func(share float64) time.Duration { return time.Duration(m.all[int(share*float64(len(m.all)-1))]) }
	slow, _ := slices.BinarySearch(m.all, uint32(time.Millisecond))
	return fmt.Sprintf("one: %v in the middle, %v of 99.9 %%, %v of 99.999 %%, %v at most; %d took more than a "+
		"millisecond",
		at(0.5), at(0.999), at(0.99999), at(1), len(m.all)-slow)
}

// A naming generates unique realistic names: words, often with www in front.
type naming struct{ buf []byte }

func (n *naming) name(i int) []byte {
	const letters = "etaoinshrdlucmfwypvbgkjqxz"
	tops := [...]string{".com", ".com", ".com", ".org", ".net", ".de", ".co.uk", ".fr", ".it", ".com.br", ".info", ".jp"}
	fronts := [...]string{"www.", "www.", "", "", "blog.", "shop.", "m."}
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	x ^= x >> 29
	b := append(n.buf[:0], fronts[x%uint64(len(fronts))]...)
	for range 5 + x>>8%10 {
		x = x*6364136223846793005 + 1442695040888963407
		b = append(b, letters[min(x>>40%26, x>>50%26)])
	}
	for v := uint64(i) + 1; v > 0; v /= 24 { // makes it unique
		b = append(b, letters[v%24])
	}
	if x>>33%4 == 0 {
		b = append(b, '-', letters[x>>20%26], letters[x>>25%26], letters[x>>15%26])
	}
	n.buf = append(b, tops[x>>35%uint64(len(tops))]...)
	return n.buf
}

func testNode(i int) strategy.Node { return strategy.Node("node" + strconv.Itoa(i%40) + "~1700000000") }

const benchHosts = 1_000_000

func benchTable(b *testing.B) (*Table, []string) {
	tab, names, all := New(testKey), naming{}, make([]string, benchHosts)
	for i := range all {
		all[i] = string(names.name(i * 7919 % benchHosts))
		tab.Set(all[i], Row{Owner: testNode(i)})
	}
	b.ReportAllocs()
	b.ResetTimer()
	return tab, all
}

func BenchmarkGet(b *testing.B) {
	tab, all := benchTable(b)
	for i := range b.N {
		if _, ok := tab.Get(all[i*101%len(all)]); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkSetChange(b *testing.B) {
	tab, all := benchTable(b)
	owners := [3]strategy.Node{testNode(1), testNode(2), "c~1"}
	for i := range b.N {
		tab.Set(all[i*101%len(all)], Row{Owner: owners[i%3], Since: uint32(i)})
	}
}

func BenchmarkSetNew(b *testing.B) {
	_, all := benchTable(b)
	var tab *Table
	for i := range b.N {
		if i%len(all) == 0 {
			tab = New(testKey)
		}
		tab.Set(all[i%len(all)], Row{Owner: "a~1"})
	}
}

// BenchmarkDelete deletes hosts; when half are deleted, it adds them again with the timer stopped.
func BenchmarkDelete(b *testing.B) {
	tab, all := benchTable(b)
	for i := range b.N {
		k := i % (len(all) / 2)
		if k == 0 && i > 0 {
			b.StopTimer()
			for _, host := range all[:len(all)/2] {
				tab.Set(host, Row{Owner: "a~1"})
			}
			b.StartTimer()
		}
		tab.Delete(all[k])
	}
}

func BenchmarkAppendPart(b *testing.B) {
	tab, _ := benchTable(b)
	var buf []byte
	for i := range b.N {
		buf = tab.AppendPart(buf[:0], i%Parts)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkLoadPart(b *testing.B) {
	tab, _ := benchTable(b)
	buf := tab.AppendPart(nil, 5)
	b.SetBytes(int64(len(buf)))
	b.ResetTimer()
	for range b.N {
		must(b, tab.LoadPart(buf))
	}
}

func BenchmarkHash(b *testing.B) {
	name, sum := []byte("www.some-example.com"), uint64(0)
	b.Run("sip", func(b *testing.B) {
		for range b.N {
			sum += testKey.Sum(name)
		}
	})
	b.Run("xx", func(b *testing.B) {
		for range b.N {
			sum += xxhash.Sum64(name)
		}
	})
}
