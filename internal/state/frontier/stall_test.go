package frontier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

// stalling is a disk that can stall for half a minute.
type stalling struct {
	vfs.FS
	on atomic.Bool
}

const stall = 30 * time.Second

func newStalling() *stalling {
	d := &stalling{}
	d.FS = vfstest.NewSlow(vfs.OS, func(string) {
		if d.on.Load() {
			time.Sleep(stall)
			d.on.Store(false)
		}
	})
	return d
}

// While the disk stalls, one caller waits for it. The others get items in memory without any delay.
func TestAStalledDiskStopsOnlyWhoNeedsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newStalling()
		f := open(t, Config{Dir: t.TempDir(), Disk: disk, Memory: 512 << 10})
		const cold, hot, each = 2000, 8, 10
		fill(f, cold, each)
		for h := range hot {
			for i := range each {
				f.Push(fmt.Sprint("hot", h), Item{URL: fmt.Sprintf("https://hot%d/%d", h, i), Rank: 1})
			}
		}
		began := time.Now()
		disk.on.Store(true)
		visits := make(chan *Visit)
		for range 4 {
			go func() {
				for {
					v, err := f.Next(t.Context())
					if errors.Is(err, ErrDrained) {
						visits <- nil
						return
					}
					if err != nil {
						t.Error(err)
						visits <- nil
						return
					}
					visits <- v
				}
			}()
		}
		seen := map[string]int{}
		for fromHot := 0; fromHot < hot*each; {
			v := <-visits
			if seen[v.URL]++; strings.HasPrefix(v.Host, "hot") {
				fromHot++
			}
			f.Done(v, Result{Outcome: Answered})
		}
		f.Push("hot0", Item{URL: "https://hot0/more"})
		if c := f.Counts(); c.URLs == 0 || c.Hosts != cold+hot {
			t.Errorf("%+v", c)
		}
		if found, err := f.Inspector().Find("hot0", "https://hot0/more"); err != nil || found == nil {
			t.Errorf("found %+v, %v", found, err)
		}
		for h := range cold {
			key := fmt.Sprint("h", h)
			if _, met := f.Host(key); !met {
				t.Errorf("%s was not met", key)
			}
			f.Park(key, "https://"+key)
			f.Unpark(key, "https://"+key)
			f.SetDelay(key, 0)
		}
		cut, err := f.Cut()
		if err != nil {
			t.Fatal(err)
		}
		f.Remove("h0")
		_, _ = f.IsDrained()
		f.IsStuck()
		f.SetDelays(Delays{})
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		go func() {
			if err := cut.Write(nil); err != nil {
				t.Error(err)
			}
		}()
		for ended := 0; ended < 4; {
			v := <-visits
			if v == nil {
				ended++
				continue
			}
			seen[v.URL]++
			f.Done(v, Result{Outcome: Answered})
		}
		if took := time.Since(began); took < stall {
			t.Errorf("the disk was never waited for: all took %v", took)
		}
		synctest.Wait()
		for i := range each { // removed
			seen[fmt.Sprint("https://h0/", i)] = 1
		}
		wantOnce(t, seen, (cold+hot)*each+1)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A long queue is removed at once; it is read later, and its space is released then.
func TestALongQueueIsRemovedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newStalling()
		cfg := Config{Dir: t.TempDir(), Disk: disk, Memory: 64 << 10}
		f := open(t, cfg)
		for i := range 20_000 {
			f.Push("long", Item{URL: fmt.Sprint("https://long/", i), Rank: int32(i % 3)})
			f.WaitForRoom(context.Background())
		}
		f.Push("long", Item{URL: "https://long/robots.txt", Robots: "https://other"})
		fill(f, 100, 1)
		disk.on.Store(true)
		began := time.Now()
		f.Remove("long")
		if c := f.Counts(); c.URLs != 100 {
			t.Errorf("%+v", c)
		}
		f.Import("long", 0, 0, Item{URL: "https://long/again"})
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		if err := f.Checkpoint(nil); err != nil { // it has the host without its items
			t.Fatal(err)
		}
		robots, err := f.FinishRemove()
		if err != nil || len(robots) != 1 || robots[0].Robots != "https://other" {
			t.Errorf("%v, %v", robots, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f = open(t, cfg)
		wantOnce(t, drain(t, f), 101)
		if s := f.disk.segments; s.live != 0 {
			t.Errorf("%d bytes are in use for nobody", s.live)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}
