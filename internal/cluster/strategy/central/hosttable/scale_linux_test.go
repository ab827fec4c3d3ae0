package hosttable

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kumo/internal/cluster/strategy"
)

// worked returns the CPU time of this thread, which excludes other processes.
func worked(t *testing.T) time.Duration {
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	return time.Duration(now.Nano())
}

// TestScale measures a table of KUMO_TEST_HOSTS hosts. Times of single calls are CPU times.
func TestScale(t *testing.T) {
	hosts, err := strconv.Atoi(os.Getenv("KUMO_TEST_HOSTS"))
	if err != nil {
		t.Skip("KUMO_TEST_HOSTS does not say how many hosts")
	}
	if hosts < 1 {
		t.Fatal("no hosts")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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
	tab = nil
	base = heap()

	to := New(testKey)
	began = time.Now()
	slowest := time.Duration(0)
	for _, b := range parts {
		at := worked(t)
		must(t, to.LoadPart(b))
		slowest = max(slowest, worked(t)-at)
	}
	t.Logf("load: %v, of one part %v at most", time.Since(began), slowest)
	if to.Len() != hosts || to.Count(node) != want {
		t.Errorf("%d hosts are loaded, %d of a node; want %d, %d", to.Len(), to.Count(node), hosts, want)
	}
	weigh(t, to, base)
	runtime.KeepAlive(parts)
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

// insert adds hosts, and measures each call.
func insert(t *testing.T, tab *Table, hosts int) (bytes int) {
	var names naming
	times := newTimes(hosts)
	began := time.Now()
	for i := range hosts {
		name := string(names.name(i))
		bytes += len(name)
		row := Row{Owner: testNode(i), State: 1, Since: 1_700_000_000 + uint32(i)}
		at := worked(t)
		tab.Set(name, row)
		times.add(worked(t) - at)
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
	t.Logf("write: %v, %.1f bytes a host, a part has %d bytes at most", time.Since(began),
		float64(total)/float64(tab.Len()), most)
	return parts
}

func walkAll(t *testing.T, tab *Table) {
	for _, node := range []strategy.Node{testNode(3), "few~1"} {
		tab.Set("one.example", Row{Owner: "few~1"})
		began, told, calls, slowest := time.Now(), 0, 0, time.Duration(0)
		for cursor, done := uint64(0), false; !done; calls++ {
			at := worked(t)
			cursor, done = tab.Each(node, cursor, 1000, func(string, Row) { told++ })
			slowest = max(slowest, worked(t)-at)
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
		at := worked(t)
		ok := tab.Delete(name)
		times.add(worked(t) - at)
		if !ok {
			t.Fatalf("%s is missing", name)
		}
	}
	t.Logf("deletion: %v", times)
	if tab.Len() != 0 || tab.Bytes() != 0 {
		t.Errorf("%d hosts and %d bytes are left", tab.Len(), tab.Bytes())
	}
}
