package frontier

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// With far more hosts than fit into memory, those in a session stay in memory: their next visits come before the first
// visits of hosts on disk.
func TestHostsInASessionStayInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, workers, latency, delay, pages = 30_000, 100, 100 * time.Millisecond, time.Second, 3
		f, _, err := Open(Config{Delay: delay, Hosts: workers, Dir: t.TempDir(), Memory: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		push := func(from, to int) {
			for i := from; i < to; i++ {
				host := fmt.Sprint("h", i)
				f.Push(host, items(host, pages)...)
				f.WaitForRoom(t.Context())
			}
		}
		push(0, hosts/3)
		var mu sync.Mutex // guards what follows
		visits := map[string]int{}
		open, most, all := 0, 0, 0
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for {
					v, err := f.Next(t.Context())
					if err != nil {
						return
					}
					mu.Lock()
					all++
					switch visits[v.Host]++; visits[v.Host] {
					case 1:
						open++
					case pages:
						open--
					}
					most = max(most, open)
					mu.Unlock()
					time.Sleep(latency)
					f.Done(v, Result{Outcome: Answered})
				}
			})
		}
		for i := hosts / 3; i < hosts; i += 10 { // about 20 times as fast as they are visited
			push(i, min(i+10, hosts))
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		// In the time of a delay and a response, the workers visit 1,100 hosts.
		if atOnce := workers * int((delay+latency)/latency); most > 2*atOnce || all != hosts*pages {
			t.Errorf("%d hosts in a session at once, want about %d; %d visits", most, atOnce, all)
		}
	})
}

// A host with quick responses is not a suspect if this process takes long to handle them.
func TestSlowProcessingMakesNoSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			took time.Duration
			want bool
		}{{time.Second, false}, {6 * time.Second, true}, {0, true}} {
			f := New(Config{})
			f.Push("a", items("a", 2)...)
			v, _ := next(t, f)
			time.Sleep(10 * time.Second)
			f.Done(v, Result{Outcome: Answered, Took: tt.took})
			if got := f.bench.hosts["a"].clock.suspect; got != tt.want {
				t.Errorf("an exchange of %v that was read after 10 s: suspect %v, want %v", tt.took, got, tt.want)
			}
		}
	})
}
