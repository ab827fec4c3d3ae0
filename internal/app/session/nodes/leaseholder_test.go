package nodes

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/app/wire"
	"kumo/internal/base/settings"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A member whose folder takes longer to open than a lease lasts keeps its place.
func TestMemberIsAliveWhileItsFolderIsOpened(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(19, 20, 400))
	c := newCluster(t, web)
	c.lease = shortLease
	a, b := c.start("a"), c.start("b")
	c.members(2)
	c.midway(60)
	b.kill()
	opening, opened := make(chan time.Time, 1), make(chan struct{})
	b = c.startWith("b", func(cfg *Config) {
		cfg.Open = func(f *folder.Folder, j *job.Job, hooks *session.ClusterHooks) (*session.Session, error) {
			opening <- time.Now()
			<-opened
			return wire.OpenPart(f, j, hooks)
		}
	})
	began := <-opening
	timing := quick(c.lease)
	c.eventually("the lease would be over", func() bool { return time.Since(began) > timing.TTL+4*timing.Margin })
	close(opened)
	c.goOn(a, b)
	c.ends(nil, a, b)
	jobtest.WantPerfect(t, web)
	for _, r := range []*running{a, b} {
		if _, _, dead := r.Lease(); dead > 0 {
			t.Errorf("%s was declared dead %d times", r.Name, dead)
		}
	}
}

// A member that restarts because of new settings renews its lease while it closes and opens its folder, and so does a
// member whose process ends.
func TestMemberIsAliveWhileItRestarts(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(19, 8, 200))
	c := newCluster(t, web)
	registry, err := c.hub.Join("test~1")
	if err != nil {
		t.Fatal(err)
	}
	start := func(depth string) {
		t.Helper()
		set := []settings.Setting{{Key: "depth", Values: []string{depth}}}
		if err := c.control.Start(t.Context(), set, web.SeedURLs()); err != nil {
			t.Fatal(err)
		}
	}
	accept := func(*job.Job, []settings.Setting) error { return nil }
	c.slowAfter(30)
	start("20")
	a := c.startWith("a", func(cfg *Config) { cfg.ApplySettings = accept })
	c.members(1)
	key := quorum.LeasePrefix + string(a.current.Load().id.Node())
	if err := c.control.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.ends(node.ErrStopped, a)

	var renewedWhile []string
	await := func(what string) { // some renewals
		revisions := map[uint64]bool{}
		for range 200 {
			e, err := registry.Get(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			if revisions[e.Revision] = true; len(revisions) > 2 {
				renewedWhile = append(renewedWhile, what)
				return
			}
			time.Sleep(betweenLooks)
		}
		t.Errorf("the lease was not renewed while the node was %s", what)
	}
	restarts := false
	a = c.startWith("a", func(cfg *Config) {
		cfg.Ending = func() {
			restarts = true
			await("closing")
		}
		cfg.ApplySettings = func(*job.Job, []settings.Setting) error {
			if restarts {
				restarts = false
				await("opening")
			}
			return nil
		}
	})
	c.eventually("a waits", func() bool { return a.Session() != nil && a.waiting.Silence() > 0 })
	start("30")
	c.eventually("a is a member", a.Member)
	a.kill()
	if want := []string{"closing", "opening", "closing"}; !slices.Equal(renewedWhile, want) {
		t.Errorf("the lease was renewed while the node was %q, want %q", renewedWhile, want)
	}
}

// A holder stops if another process owns or renews the lease. It tolerates a single late renewal, and writes with an
// unknown result.
func TestLeaseHolderOfCopiedFolder(t *testing.T) {
	const beats = 20
	tests := map[string]struct {
		renewals int    // by the other process, one after each of the holder's
		instance uint64 // of the other process
		unknown  float64
		held     bool
	}{
		"alone":             {held: true},
		"a late renewal":    {renewals: 1, instance: 1, held: true},
		"renewed elsewhere": {renewals: beats, instance: 1},
		"another process":   {renewals: 1, instance: 2},
		"unknown results":   {unknown: 0.5, held: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := inproc.New(1)
				joined, err := hub.Join("a~1")
				if err != nil {
					t.Fatal(err)
				}
				other, err := hub.Join("other~1")
				if err != nil {
					t.Fatal(err)
				}
				m := &membership{id: node.Identity{Name: "a", Incarnation: "1"}, bus: &meter{Bus: joined},
					n: &Node{Config: Config{Timing: *quick(time.Minute), Log: slog.New(slog.DiscardHandler)}}}
				m.joined.Store(true)
				lease, rev := quorum.Lease{Instance: 1, Beat: 7}, uint64(0)
				write := func() {
					if rev, err = other.Put(t.Context(), "lease/a~1", lease.Encode(), rev); err != nil {
						t.Fatal(err)
					}
				}
				write()
				hub.SetFaults(inproc.Faults{Uncertain: tt.unknown})
				release := m.holdLease(t.Context())
				synctest.Wait()
				kept, renewals := 0, tt.renewals
				for range beats {
					e, err := other.Get(t.Context(), "lease/a~1")
					if err != nil {
						t.Fatal(err)
					}
					if kept++; e.Revision == rev {
						kept = 0
					}
					if rev = e.Revision; renewals > 0 {
						renewals--
						lease.Beat, lease.Instance = lease.Beat+1, tt.instance
						write()
					}
					time.Sleep(m.n.Timing.Beat)
					synctest.Wait()
				}
				release()
				if held := kept > beats/2; held != tt.held {
					t.Errorf("held %t, want %t", held, tt.held)
				}
				if err := errors.Join(joined.Close(), other.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
