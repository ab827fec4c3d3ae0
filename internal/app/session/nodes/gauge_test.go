package nodes

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/base/machine"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A witness is a strategy that records its node's loads.
type witness struct {
	strategy.Strategy
	mu    *sync.Mutex
	loads map[strategy.Node][]strategy.Load
}

func (w witness) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	w.mu.Lock()
	for _, e := range in {
		if load, is := e.(strategy.Load); is {
			w.loads[load.Node] = append(w.loads[load.Node], load)
		}
	}
	w.mu.Unlock()
	return w.Strategy.Step(now, in, out)
}

// A node's strategy receives the work since the process started, and the machine's resources.
func TestAStrategyIsToldWhatANodeHasDone(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(15, 10, 1000))
	c := newCluster(t, web)
	c.strategy = "hub"
	c.tune = func(j *job.Job) { j.Frontier.Delay = 30 * time.Millisecond }
	w := witness{mu: new(sync.Mutex), loads: map[strategy.Node][]strategy.Load{}}
	open := func() *running {
		return c.startWith("a", func(cfg *Config) {
			cfg.Limits = machine.NewLimits
			cfg.Joining = func(q quorum.Config) (member.Member, strategy.Strategy) {
				one, placing := c.member(q)
				w.Strategy = placing
				return one, w
			}
		})
	}
	last := func() (load strategy.Load) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, loads := range w.loads { // of the only node
			load = loads[len(loads)-1]
		}
		return load
	}
	a := open()
	c.members(1)
	c.slowAfter(200)
	c.begin()
	c.eventually("it is told of some pages", func() bool { return last().Pages > 200 })
	a.kill()
	first := last()
	a = open()
	c.goOn()
	c.ends(nil, a)
	second := last()
	for _, load := range []strategy.Load{first, second} {
		m := load.Machine
		if load.Pages == 0 || load.Bytes < 100*load.Pages || load.CPU <= 0 || m.Cores <= 0 || m.MemoryGB <= 0 ||
			m.DiskMbps <= 0 {
			t.Errorf("%+v", load)
		}
	}
	if truth := int64(web.Score().Truth); first.Pages+second.Pages > truth {
		t.Errorf("%d and %d pages of %d", first.Pages, second.Pages, truth)
	}
}

func TestTheDiskIsMeasuredOnceADay(t *testing.T) {
	disk := vfstest.NewFaulty(vfs.OS)
	f := folder.At(t.TempDir(), disk)
	if err := disk.MkdirAll(f.Path("state")); err != nil {
		t.Fatal(err)
	}
	var warned error
	warn := func(err error) { warned = err }
	now := time.Unix(1e9, 0)
	first := writeSpeed(f, now, warn)
	if first <= 0 || warned != nil {
		t.Fatalf("%v Mb/s, %v", first, warned)
	}
	disk.SetRoom(0) // a new measurement would fail
	if again := writeSpeed(f, now.Add(23*time.Hour), warn); again != first || warned != nil {
		t.Errorf("%v Mb/s, and then %v, %v", first, again, warned)
	}
	if late := writeSpeed(f, now.Add(25*time.Hour), warn); late != 0 || !errors.Is(warned, syscall.ENOSPC) {
		t.Errorf("%v Mb/s on a full disk, %v", late, warned)
	}
	disk.SetRoom(-1)
	warned = nil
	if late := writeSpeed(f, now.Add(25*time.Hour), warn); late <= 0 || warned != nil {
		t.Errorf("%v Mb/s, %v", late, warned)
	}
	left, err := disk.List(f.Path("state"))
	if err != nil || len(left) != 1 || left[0] != "disk.json" {
		t.Errorf("%s has %q (%v)", filepath.Base(f.Dir), left, err)
	}
}

// A measured network limit takes precedence over the card's speed, and a configured disk limit over the measured one.
func TestWhatAMachineHas(t *testing.T) {
	g := gauge{limits: machine.NewLimits(t.TempDir()), diskMbps: 800}
	g.read, g.figures = time.Unix(1e9, 0), machine.Resources{Cores: 4, NetworkMbps: 1000}
	if m := g.measure(g.read, machine.Usage{}); m != (strategy.Machine{Cores: 4, NetworkMbps: 1000, DiskMbps: 800}) {
		t.Errorf("%+v", m)
	}
	g.figures.DiskMbps = 8
	for second := range 60 { // 2 Mb/s, with all slots in use
		g.read = g.read.Add(time.Second)
		m := g.measure(g.read, machine.Usage{Bytes: int64(second) * 250_000, Busy: 1})
		if second > 30 && m != (strategy.Machine{Cores: 4, NetworkMbps: 2, DiskMbps: 8}) {
			t.Fatalf("after %d s: %+v", second, m)
		}
	}
	if m := (&gauge{}).measure(time.Now(), machine.Usage{}); m != (strategy.Machine{}) {
		t.Errorf("nobody asks: %+v", m)
	}
}
