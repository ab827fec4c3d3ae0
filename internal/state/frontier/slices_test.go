package frontier

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// sliced returns a frontier with four slices per host, and a URL in each slice of some hosts.
func sliced(cfg Config, hosts ...string) *Frontier {
	cfg.Slices = 4
	f := New(cfg)
	for _, host := range hosts {
		met := map[string]bool{}
		for i := 0; len(met) < 4; i++ {
			url := fmt.Sprint("https://", host, "/", i)
			if slice := f.Slices().OfHost(host, url); !met[slice] {
				met[slice] = true
				f.Push(slice, Item{URL: url}, Item{URL: url + "/next"}) // in any slice
			}
		}
	}
	return f
}

func takes(t *testing.T, f *Frontier, within time.Duration) (all []*Visit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		v, err := f.Next(ctx)
		if err != nil {
			return all
		}
		all = append(all, v)
	}
}

// All slices of a host share its connections; each has at least one.
func TestSlicesShareAHostsConnections(t *testing.T) {
	for perHost, want := range map[int]int{1: 4, 4: 4, 7: 4, 8: 8} {
		synctest.Test(t, func(t *testing.T) {
			if all := takes(t, sliced(Config{PerHost: perHost}, "a.test"), time.Second); len(all) != want {
				t.Errorf("%d connections a host: %d visits at once, not %d", perHost, len(all), want)
			}
		})
	}
}

// All slices of a host together get no more requests than the host would, on average, whatever the source of the delay.
func TestSlicesShareAHostsDelay(t *testing.T) {
	for name, ask := range map[string]func(*Frontier){
		"the crawl":        func(*Frontier) {},
		"the crawl, later": func(f *Frontier) { f.SetDelays(Delays{Delay: time.Second, MaxDelay: time.Minute}) },
		"robots.txt": func(f *Frontier) {
			for slice := range f.Slices().All("a.test") {
				f.SetDelay(slice, time.Second)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{PerHost: 4, Delay: time.Second}
			if name != "the crawl" {
				cfg.Delay = 0
			}
			f := sliced(cfg, "a.test")
			ask(f)
			for _, v := range takes(t, f, time.Millisecond) {
				f.Done(v, Result{Outcome: Answered})
			}
			begin := time.Now()
			if v, err := f.Next(t.Context()); err != nil || time.Since(begin) < 4*time.Second-time.Millisecond {
				t.Errorf("by %s: %v is asked again after %v, %v", name, v, time.Since(begin), err)
			}
		})
	}
}

// Slices of one host take no turns at its server's address, but they do with another host.
func TestSlicesAreOneHostAtAnAddress(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	for hosts, want := range map[int]int{1: 4, 2: 1} {
		synctest.Test(t, func(t *testing.T) {
			f := sliced(Config{AddrDelay: time.Hour, Hosts: 100}, []string{"a.test", "b.test"}[:hosts]...)
			all := takes(t, f, time.Millisecond)
			for _, v := range all {
				f.mu.Lock()
				f.addrs.move(&v.host.addr, v.host.key, addr, f.cfg.Now())
				f.mu.Unlock()
			}
			turns := 0
			for _, v := range all {
				if f.Reserve(v, addr) {
					turns++
				}
			}
			if turns != want {
				t.Errorf("%d hosts: %d of %d visits have their turn, not %d", hosts, turns, len(all), want)
			}
		})
	}
}
