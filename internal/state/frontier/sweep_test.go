package frontier

import (
	"fmt"
	"testing"
	"time"
)

func urlsOf(host string, n int) (items []Item) {
	for i := range n {
		items = append(items, Item{URL: fmt.Sprintf("http://%s/%d", host, i)})
	}
	return items
}

// A sweep finds the hosts that take longest in memory and on disk, with many hosts after several calls. It takes into
// account URLs that are done.
func TestASweepKnowsWhichHostsTakeLongest(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, dir := range []string{"", t.TempDir()} {
		cfg := Config{Hosts: 4, Delay: time.Second, Dir: dir, Memory: 1 << 20, Now: func() time.Time { return now }}
		f := open(t, cfg)
		const hosts = 3 * sweepStep
		for i := range hosts {
			f.Push(fmt.Sprintf("h%d.test", i), urlsOf(fmt.Sprintf("h%d.test", i), 1+i%3)...)
			f.WaitForRoom(t.Context())
		}
		f.Push("long.test", urlsOf("long.test", 500)...)
		f.Push("slow.test", urlsOf("slow.test", 100)...)
		f.SetDelay("slow.test", 20*time.Second)
		f.WaitForRoom(t.Context())
		if cold := f.disk != nil && len(f.bench.hosts) < hosts; cold != (dir != "") {
			t.Fatalf("dir %q: %d of %d hosts are in memory", dir, len(f.bench.hosts), hosts)
		}
		s := f.Inspector().Sweep(4)
		var got []HostInfo
		for range 400 {
			if got = s.Next(); len(got) > 1 && got[0].Key == "slow.test" && got[1].Key == "long.test" {
				break
			}
		}
		if len(got) != 4 || got[0].Key != "slow.test" || got[1].Key != "long.test" {
			t.Fatalf("dir %q: the longest are %+v", dir, got)
		}
		if left := got[0].RemainingTime(now); left < 1980*time.Second || left > 2001*time.Second {
			t.Errorf("dir %q: 100 URLs, 20 s apart, take %v", dir, left)
		}
		if left := got[1].RemainingTime(now); left < 499*time.Second || left > 501*time.Second {
			t.Errorf("dir %q: 500 URLs, a second apart, take %v", dir, left)
		}
		f.TakeMatching("slow.test", func(*Item) bool { return true })
		if got = s.Next(); len(got) == 0 || got[0].Key != "long.test" {
			t.Errorf("dir %q: what is done is not the longest: %+v", dir, got)
		}
	}
}

func TestTheSoonestHost(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := New(Config{Hosts: 4, Delay: time.Second, Now: func() time.Time { return now }})
	if i, ok := f.Inspector().NextHost(); ok {
		t.Errorf("there is none: %+v", i)
	}
	f.Import("a.test", time.Minute, time.Minute, urlsOf("a.test", 1)...)
	f.Import("b.test", time.Second, 10*time.Second, urlsOf("b.test", 1)...)
	if i, ok := f.Inspector().NextHost(); !ok || i.Key != "b.test" {
		t.Errorf("%+v, %v", i, ok)
	}
}

// BenchmarkSweep measures one call with a million hosts on disk.
func BenchmarkSweep(b *testing.B) {
	f, _, err := Open(Config{Dir: b.TempDir(), Memory: 64 << 20, Delay: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1_000_000 {
		host := fmt.Sprintf("h%d.test", i)
		f.Push(host, Item{URL: "http://" + host + "/"})
		f.WaitForRoom(b.Context())
	}
	s := f.Inspector().Sweep(8)
	for b.Loop() {
		s.Next()
	}
}
