package frontier

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ownDelay gives each second host, host1, host3 and so on, a delay of its own.
func ownDelay(delay time.Duration) func(string) HostConfig {
	return func(host string) HostConfig {
		if strings.ContainsAny(host[len(host)-1:], "13579") {
			return HostConfig{HasDelay: true, Delay: delay}
		}
		return HostConfig{}
	}
}

func fillHosts(f *Frontier, n int) {
	for i := range delayedHosts {
		f.Push(fmt.Sprint("host", i), items(fmt.Sprint("host", i), n)...)
	}
}

func wantGaps(t *testing.T, at map[string][]time.Time, cfg func(string) HostConfig, ordinary time.Duration) {
	t.Helper()
	for host, times := range at {
		want := ordinary
		if own := cfg(host); own.HasDelay {
			want = own.Delay
		}
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < want || gap > want+3*time.Second {
				t.Fatalf("%s was asked %v after it was before, want %v", host, gap, want)
			}
		}
	}
}

func TestHostsHaveDelaysOfTheirOwn(t *testing.T) {
	for name, own := range map[string]time.Duration{"longer": time.Minute, "shorter": time.Second} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Delay: 10 * time.Second, Overrides: ownDelay(own), Hosts: delayedHosts}
			each(t, cfg, func(t *testing.T, f *Frontier) {
				fillHosts(f, 3)
				wantGaps(t, visited(t, f, 3*delayedHosts), cfg.Overrides, cfg.Delay)
			})
		})
	}
}

// TestDelaysOfTheirOwnComeLater: overrides change while hosts wait in memory and on disk. On disk they may take effect
// only for the second visit.
func TestDelaysOfTheirOwnComeLater(t *testing.T) {
	each(t, Config{Delay: 10 * time.Second, Overrides: ownDelay(5 * time.Second), Hosts: delayedHosts},
		func(t *testing.T, f *Frontier) {
			fillHosts(f, 4)
			visited(t, f, delayedHosts)
			later := ownDelay(time.Minute)
			f.SetDelays(Delays{Delay: 10 * time.Second, Overrides: later})
			visited(t, f, delayedHosts)
			wantGaps(t, visited(t, f, 2*delayedHosts), later, 10*time.Second)
			if f.disk == nil {
				return
			}
			for id := uint32(1); id <= f.disk.cold.table.n; id++ {
				if r := f.disk.cold.table.at(id); !r.is(isHot) && r.requestedDelay() != 0 {
					t.Errorf("record %d says that the host asks for %v", id, r.requestedDelay())
				}
			}
		})
}

// TestAnotherDelayIsNoneOfTheirs: if the crawl's delay becomes shorter, a host with its own delay is not visited
// earlier, wherever it waits.
func TestAnotherDelayIsNoneOfTheirs(t *testing.T) {
	own := ownDelay(time.Minute)
	each(t, Config{Delay: 50 * time.Second, Overrides: own, Hosts: delayedHosts}, func(t *testing.T, f *Frontier) {
		fillHosts(f, 2)
		first := visited(t, f, delayedHosts)
		f.SetDelays(Delays{Delay: time.Second, Overrides: own})
		for host, at := range visited(t, f, delayedHosts) {
			if want := own(host).Delay; at[0].Sub(first[host][0]) < want {
				t.Fatalf("%s was asked after %v, want %v", host, at[0].Sub(first[host][0]), want)
			}
		}
	})
}

func TestHostsHaveConnectionsOfTheirOwn(t *testing.T) {
	three := func(host string) HostConfig {
		if host == "many" {
			return HostConfig{HasDelay: true, PerHost: 3}
		}
		return HostConfig{}
	}
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Overrides: three})
		f.Push("many", items("many", 5)...)
		f.Push("one", items("one", 5)...)
		under := map[string]int{}
		for range 4 {
			v, _ := next(t, f)
			under[v.Host]++
		}
		if under["many"] != 3 || under["one"] != 1 {
			t.Errorf("under way are %v, want 3 and 1", under)
		}
		f.SetDelays(Delays{}) // without overrides
		if h := f.bench.hosts["many"]; f.bench.classOf(h) != idle {
			t.Error("a fourth connection, where one is allowed")
		}
		f.SetDelays(Delays{Overrides: func(string) HostConfig { return HostConfig{PerHost: 4} }})
		for range 4 {
			v, _ := next(t, f)
			under[v.Host]++
		}
		if under["many"] != 4 || under["one"] != 4 {
			t.Errorf("under way are %v, want 4 of each", under)
		}
	})
}

// TestHostsOweDelaysOfTheirOwnAfterARestart: the time of their last request is unknown.
func TestHostsOweDelaysOfTheirOwnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: t.TempDir(), Memory: 16 << 10, Delay: time.Second, Overrides: ownDelay(time.Minute),
			Hosts: delayedHosts}
		f := open(t, cfg)
		fillHosts(f, 2)
		visited(t, f, delayedHosts)
		time.Sleep(time.Hour)
		if err := f.Checkpoint(nil); err != nil {
			t.Fatal(err)
		}
		f.Close()
		f = open(t, cfg)
		defer f.Close()
		start := time.Now()
		for host, at := range visited(t, f, delayedHosts) {
			want := time.Second
			if own := cfg.Overrides(host); own.HasDelay {
				want = own.Delay
			}
			if at[0].Sub(start) < want {
				t.Errorf("%s was asked %v after the start, want %v", host, at[0].Sub(start), want)
			}
		}
	})
}
