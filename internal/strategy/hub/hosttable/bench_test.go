package hosttable

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// times are how long many calls took.
type times struct {
	all []uint32 // nanoseconds
}

func newTimes(n int) *times { return &times{make([]uint32, 0, n)} }

func (m *times) add(d time.Duration) { m.all = append(m.all, uint32(min(d, 4*time.Second))) }

func (m *times) String() string {
	slices.Sort(m.all)
	at := func(share float64) time.Duration { return time.Duration(m.all[int(share*float64(len(m.all)-1))]) }
	slow, _ := slices.BinarySearch(m.all, uint32(time.Millisecond))
	return fmt.Sprintf("one: %v in the middle, %v of 99.9 %%, %v of 99.999 %%, %v at most; %d took more than a millisecond",
		at(0.5), at(0.999), at(0.99999), at(1), len(m.all)-slow)
}

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
	for i := range b.N {
		tab.Set(all[i*101%len(all)], Row{Owner: testNode(i % 3), Since: uint32(i)})
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

// BenchmarkDelete deletes hosts, and adds them again when half are gone, off the clock.
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
