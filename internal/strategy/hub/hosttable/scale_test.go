package hosttable

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"kumo/internal/strategy"
)

// A naming makes names as they are met: words, often with www in front, no two alike.
type naming struct{ buf []byte }

func (n *naming) name(i int) []byte {
	const letters = "etaoinshrdlucmfwypvbgkjqxz"
	tops := [...]string{".com", ".com", ".com", ".org", ".net", ".de", ".co.uk", ".fr", ".it", ".com.br", ".info", ".jp"}
	fronts := [...]string{"www.", "www.", "", "", "blog.", "shop.", "m."}
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	x ^= x >> 29
	b := append(n.buf[:0], fronts[x%uint64(len(fronts))]...)
	for range 2 + x>>8%7 {
		x = x*6364136223846793005 + 1442695040888963407
		b = append(b, letters[min(x>>40%26, x>>50%26)])
	}
	for v := uint64(i) + 1; v > 0; v /= 24 { // what makes it one of its own
		b = append(b, letters[v%24])
	}
	if x>>33%4 == 0 {
		b = append(b, '-', letters[x>>20%26], letters[x>>25%26], letters[x>>15%26])
	}
	n.buf = append(b, tops[x>>35%uint64(len(tops))]...)
	return n.buf
}

func testNode(i int) strategy.Node { return strategy.Node("node" + strconv.Itoa(i%40) + "~1700000000") }

// TestScale measures a table of KUMO_HOSTS hosts.
func TestScale(t *testing.T) {
	hosts, err := strconv.Atoi(os.Getenv("KUMO_HOSTS"))
	if err != nil {
		t.Skip("KUMO_HOSTS does not say how many hosts")
	}
	if hosts < 1 {
		t.Fatal("no hosts")
	}
	base := heap()
	tab := New(testKey)
	bytes := insert(t, tab, hosts)
	t.Logf("names of %.1f bytes", float64(bytes)/float64(hosts))
	weigh(t, tab, base)
	began := time.Now()
	runtime.GC()
	t.Logf("a collection takes %v", time.Since(began))
	parts := write(t, tab)
	walkAll(t, tab)
	node := testNode(7)
	want := tab.Count(node)
	tab, base = nil, heap()

	to := New(testKey)
	began = time.Now()
	slowest := time.Duration(0)
	for _, b := range parts {
		at := time.Now()
		must(t, to.LoadPart(b))
		slowest = max(slowest, time.Since(at))
	}
	t.Logf("load: %v, of one part %v at most", time.Since(began), slowest)
	if to.Len() != hosts || to.Count(node) != want {
		t.Errorf("%d hosts are loaded, %d of a node; want %d, %d", to.Len(), to.Count(node), hosts, want)
	}
	weigh(t, to, base)
	remove(t, to, hosts)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func weigh(t *testing.T, tab *Table, base uint64) {
	each := float64(heap()-base) / float64(tab.Len())
	t.Logf("%.1f bytes a host in memory, %.1f as Bytes says", each, float64(tab.Bytes())/float64(tab.Len()))
	if each > 100 {
		t.Errorf("%.1f bytes a host, at most 100 are allowed", each)
	}
	runtime.KeepAlive(tab)
}

// insert adds hosts, and takes the time of each.
func insert(t *testing.T, tab *Table, hosts int) (bytes int) {
	var names naming
	times := newTimes(hosts)
	began := time.Now()
	for i := range hosts {
		name := string(names.name(i))
		bytes += len(name)
		at := time.Now()
		tab.Set(name, Row{Owner: testNode(i), State: 1, Since: 1_700_000_000 + uint32(i)})
		times.add(time.Since(at))
	}
	t.Logf("insertion: %v for all, %v", time.Since(began), times)
	if tab.Len() != hosts {
		t.Fatalf("%d names are alike", hosts-tab.Len())
	}
	return bytes
}

func write(t *testing.T, tab *Table) (parts [][]byte) {
	began, total, most := time.Now(), 0, 0
	for part := range Parts {
		b := tab.AppendPart(nil, part)
		parts = append(parts, slices.Clone(b))
		total += len(b)
		most = max(most, len(b))
	}
	t.Logf("write: %v, %.1f bytes a host, a part has %d bytes at most", time.Since(began), float64(total)/float64(tab.Len()), most)
	return parts
}

func walkAll(t *testing.T, tab *Table) {
	for _, node := range []strategy.Node{testNode(3), "few~1"} {
		tab.Set("one.example", Row{Owner: "few~1"})
		began, told, calls, slowest := time.Now(), 0, 0, time.Duration(0)
		for cursor, done := uint64(0), false; !done; calls++ {
			at := time.Now()
			cursor, done = tab.Each(node, cursor, 1000, func(string, Row) { told++ })
			slowest = max(slowest, time.Since(at))
		}
		t.Logf("walk: %d of %d hosts in %v, %d calls of %v at most", told, tab.Count(node), time.Since(began), calls, slowest)
		if told != tab.Count(node) {
			t.Errorf("%d hosts are told of %d", told, tab.Count(node))
		}
		tab.Delete("one.example")
	}
}

func remove(t *testing.T, tab *Table, hosts int) {
	var names naming
	times := newTimes(hosts)
	for i := range hosts {
		name := string(names.name(i))
		at := time.Now()
		ok := tab.Delete(name)
		times.add(time.Since(at))
		if !ok {
			t.Fatalf("%s is missing", name)
		}
	}
	t.Logf("deletion: %v", times)
	if tab.Len() != 0 || tab.Bytes() != 0 {
		t.Errorf("%d hosts and %d bytes are left", tab.Len(), tab.Bytes())
	}
}
