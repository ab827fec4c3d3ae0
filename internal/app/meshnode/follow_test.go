package meshnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
)

// three starts three connected nodes with engines.
func three(t *testing.T) *lab {
	l := newLab(t)
	for i := range 3 {
		l.start(fmt.Sprintf("n%d~1", i))
		time.Sleep(time.Second)
	}
	time.Sleep(15 * time.Second)
	return l
}

func (n *labNode) set(t *testing.T, to desired.State) {
	t.Helper()
	err := n.Change(t.Context(), func(r *desired.Record, _ uint64) error { return r.Set(to) })
	if err != nil {
		t.Fatal(err)
	}
}

// end waits until all nodes have ended with the expected error.
func (l *lab) end(t *testing.T, want error) {
	t.Helper()
	for i, n := range l.nodes {
		if err := <-n.over; !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("node %d ended with %v, want %v", i, err, want)
		}
		n.stop() // its engine
	}
}

func (w *web) pages() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.fetched)
}

// A node without an engine remembers URLs but fetches nothing, and the crawl is not done before it has fetched its
// hosts.
func TestAnEngineComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		for i := range 3 {
			n := l.join(fmt.Sprintf("n%d~1", i), t.TempDir())
			if i < 2 {
				n.work(t)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(15 * time.Second)
		late := l.nodes[2]
		l.nodes[0].begin(t, nil)
		time.Sleep(time.Minute)
		tally, err := late.Gather(t.Context())
		if err != nil || tally.Nodes != 3 || tally.Idle == 3 {
			t.Errorf("gathered %+v, %v", tally, err)
		}
		if late.cfg.History.Stats().URLs == 0 {
			t.Error("a node without an engine remembers nothing")
		}
		if got := l.web.pages(); got == 0 || got == hosts*pages {
			t.Errorf("%d pages are fetched by two of three nodes", got)
		}
		late.work(t)
		l.end(t, nil)
		l.wantAll(t)
	})
}

func TestACrawlIsPausedAndStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		l.nodes[0].begin(t, nil)
		time.Sleep(time.Second)
		l.nodes[1].set(t, desired.Paused)
		time.Sleep(time.Second)
		paused := l.web.pages()
		time.Sleep(time.Minute)
		if got := l.web.pages(); got != paused || got == 0 {
			t.Errorf("%d pages before, %d after a minute's pause", paused, got)
		}
		l.nodes[2].set(t, desired.Running)
		time.Sleep(time.Second)
		if l.web.pages() == paused {
			t.Error("nothing is fetched after the pause")
		}
		l.nodes[2].set(t, desired.Stopping)
		l.end(t, ErrStopped)
	})
}

// All nodes together fetch as many pages as the limit, and each gets one report of all.
func TestALimitStopsTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		l.web.takes = 5 * time.Second
		nodes := slices.Clone(l.nodes)
		l.nodes[0].begin(t, map[string][]string{"limit": {"20"}})
		l.end(t, policy.ErrLimit)
		if got := l.web.pages(); got != 20 {
			t.Errorf("%d pages are fetched with a limit of 20", got)
		}
		for _, n := range nodes {
			if all := n.saved.Load(); all == nil || all.Pages != 20 || all.Ended != "stopping (limit)" {
				t.Errorf("the report of all nodes at %s: %+v", n.self, all)
			}
		}
	})
}

// The pages of a node that died with its disk count in the total and for the limit, even after all nodes are restarted.
func TestPagesOfTheDeadCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		l.web.takes = 5 * time.Second
		l.nodes[0].begin(t, nil)
		var died *labNode
		for died == nil {
			time.Sleep(time.Second)
			for _, n := range l.nodes {
				if n.engine.fetchedHere() >= 50 {
					died = n
				}
			}
		}
		l.nodes[0].set(t, desired.Paused)
		time.Sleep(15 * time.Second) // pending requests end and are reported
		all := int64(l.web.pages())
		died.stop()
		<-died.over
		l.nodes = slices.DeleteFunc(l.nodes, func(n *labNode) bool { return n == died })
		time.Sleep(15 * time.Second)
		sum := func(n *labNode) (int64, int) {
			tally, err := n.Gather(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return tally.Figures[control.SumPages] + tally.DepartedPages, tally.Departed
		}
		for _, n := range l.nodes {
			if pages, gone := sum(n); pages != all || gone != 1 {
				t.Errorf("%d pages, %d nodes are gone: want %d, 1", pages, gone, all)
			}
		}
		err := l.nodes[0].Change(t.Context(), func(r *desired.Record, _ uint64) error {
			r.Settings = map[string][]string{"limit": {fmt.Sprint(all)}}
			return r.Set(desired.Running)
		})
		if err != nil {
			t.Fatal(err)
		}
		dirs := []string{l.nodes[0].cfg.Dir, l.nodes[1].cfg.Dir}
		l.end(t, policy.ErrLimit)
		if fetched := int64(l.web.pages()); fetched > all {
			t.Errorf("%d pages are fetched with a limit of %d", fetched, all)
		}
		was := int64(l.web.pages())
		l.first = overlay.Contact{}
		for i, n := range l.nodes {
			l.join(string(n.self), dirs[i])
		}
		time.Sleep(20 * time.Second)
		if pages, gone := sum(l.nodes[len(l.nodes)-1]); pages != was || gone != 1 {
			t.Errorf("started again: %d pages, %d nodes are gone: want %d, 1", pages, gone, was)
		}
		for _, n := range l.nodes[len(dirs):] {
			n.stop()
			<-n.over
		}
	})
}

// A restarted node has opened its crawl, but has not attached the engine yet: its pages count once, before and after.
func TestPagesCountBeforeTheEngineIsAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.web.takes = 5 * time.Second
		dir := t.TempDir()
		n := l.join("n0~1", dir)
		n.work(t)
		time.Sleep(15 * time.Second)
		n.begin(t, nil)
		time.Sleep(20 * time.Second)
		n.set(t, desired.Paused)
		time.Sleep(15 * time.Second)
		pages := n.engine.fetchedHere()
		n.stop()
		<-n.over
		l.first = overlay.Contact{}
		n = l.join("n0~1", dir)
		n.engine.mu.Lock()
		n.engine.pages = pages
		n.engine.mu.Unlock()
		for _, attached := range []bool{false, true} {
			if attached {
				n.work(t)
			}
			time.Sleep(15 * time.Second)
			tally, err := n.Gather(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := [2]int64{0, pages} // of nodes, and beside them
			if attached {
				want = [2]int64{pages, 0}
			}
			if got := [2]int64{tally.Figures[control.SumPages], tally.DepartedPages}; got != want || pages == 0 {
				t.Errorf("attached: %v: %d pages of nodes and beside them, want %d", attached, got, want)
			}
		}
		n.stop()
		<-n.over
	})
}

// Changed settings reach all nodes, like those of the start.
func TestSettingsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		l.nodes[0].begin(t, map[string][]string{"delay": {"1s"}})
		time.Sleep(time.Second)
		err := l.nodes[1].Change(t.Context(), func(r *desired.Record, _ uint64) error {
			return r.ChangeSettings(map[string][]string{"delay": {"2s"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i, n := range l.nodes {
			for _, want := range []string{"1s", "2s"} {
				if got := <-n.settled; got["delay"][0] != want {
					t.Errorf("node %d goes by %v, want %s", i, got, want)
				}
			}
			n.stop()
		}
		l.end(t, context.Canceled)
	})
}

// A node with a failing disk ends, and callers that wait for a write get an error.
func TestADiskThatFailsEndsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		disk := vfstest.NewFaulty(vfs.OS)
		l.disk = disk
		n := l.start("n0~1")
		time.Sleep(3 * time.Second)
		disk.SetRoom(0)
		if err := n.AddSeeds(t.Context(), page(0, 0)); !errors.Is(err, errNodeEnded) {
			t.Errorf("seeds are added: %v", err)
		}
		if err := <-n.over; !vfs.IsFull(err) {
			t.Errorf("it ended with %v", err)
		}
		n.stop()
	})
}

// Seeds added when the crawl was just found to be done are still fetched.
func TestSeedsComeWhileTheCrawlEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		l.nodes[0].begin(t, nil)
		for state := desired.Running; state == desired.Running; {
			time.Sleep(100 * time.Millisecond)
			r, _ := l.nodes[1].Crawl()
			state = r.State
		}
		late := page(hosts+1, 0)
		if err := l.nodes[1].AddSeeds(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		l.end(t, nil)
		if l.web.fetched[late] != 1 {
			t.Errorf("it is fetched %d times", l.web.fetched[late])
		}
	})
}

// All nodes add the redirect targets of seeds to their scope, even nodes that join later.
func TestRootsAreToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		const root = "http://elsewhere.test/"
		for _, n := range l.nodes[:2] { // both find it
			n.NewScopeSeed(root)
		}
		time.Sleep(5 * time.Second)
		l.start("n3~1")
		time.Sleep(20 * time.Second)
		for i, n := range l.nodes {
			n.engine.mu.Lock()
			if !n.engine.scope[root] {
				t.Errorf("node %d does not have it", i)
			}
			n.engine.mu.Unlock()
			n.stop()
		}
		l.end(t, context.Canceled)
	})
}

// The last node ends when asked to leave, because no other node can take its data. The next process has its data, and
// does not offer seeds again.
func TestANodeKeepsWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.web.takes = 5 * time.Second
		dir := t.TempDir()
		n := l.join("n0~1", dir)
		n.work(t)
		time.Sleep(3 * time.Second)
		n.begin(t, map[string][]string{"depth": {"1"}})
		time.Sleep(time.Second)
		n.Leave()
		if err := <-n.over; !errors.Is(err, ErrAlone) {
			t.Fatalf("it ended with %v", err)
		}
		n.stop()
		n = l.join("n0~1", dir)
		r, version := n.Crawl()
		if r.State != desired.Running || version != 1 || r.Settings["depth"][0] != "1" || n.SeedChunks() != 1 {
			t.Errorf("it knows %+v, %d lists of seeds", r, n.SeedChunks())
		}
		n.work(t)
		time.Sleep(3 * time.Second)
		n.engine.mu.Lock()
		if !n.engine.scope[page(0, 0)] || n.engine.seeded.Load() > 0 {
			t.Error("the seed is not in scope, or was offered again")
		}
		n.engine.mu.Unlock()
		if err := <-n.over; err != nil {
			t.Errorf("it ended with %v", err)
		}
		n.stop()
	})
}

// A node is asked to leave when the only other one has just died. It waits for that node for a while, and transfers its
// data if the node returns; otherwise it retains the data.
func TestWhoLeavesWaitsForTheDead(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			dir := t.TempDir()
			leaves, dies := l.start("n0~1"), l.join("n1~1", dir)
			dies.work(t)
			time.Sleep(15 * time.Second)
			leaves.begin(t, nil)
			time.Sleep(time.Second)
			dies.stop()
			<-dies.over
			for !leaves.Alone() {
				time.Sleep(time.Second)
			}
			leaves.Leave()
			time.Sleep(5 * time.Second)
			want := ErrAlone
			if back {
				dies, want = l.join("n1~1", dir), ErrLeft
				dies.work(t)
				time.Sleep(mesh.DefaultAlone) // only the leaving node answers it
				dies.Join()
			}
			waited := time.Now()
			if err := <-leaves.over; !errors.Is(err, want) && (err != nil || !back) { // nil: both have found the end of the crawl
				t.Errorf("it ended with %v, want %v", err, want)
			}
			if took := time.Since(waited); took > time.Minute {
				t.Errorf("it ended after %v", took)
			}
			leaves.stop()
			if back {
				select {
				case err := <-dies.over:
					if err != nil {
						t.Errorf("the other node ended with %v", err)
					}
					dies.stop()
				case <-time.After(10 * time.Minute):
					t.Error("the other node does not end")
					dies.stop()
					<-dies.over
				}
			}
		})
	}
}

// All nodes agree on who fetches a host and who remembers its URLs.
func TestNodesAreLocated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		for h := range hosts {
			host := hostIn(page(h, 0))
			var first strategy.Node
			for i, n := range l.nodes {
				target, backups, err := n.Locate(t.Context(), host)
				if err != nil || len(backups) != 3 {
					t.Fatalf("%s: %v, %v", host, backups, err)
				}
				if i == 0 {
					first = target
				}
				if target != first || n.engine.router.Ours(host) != (target == n.self) {
					t.Errorf("%s is %s's, by node %d", host, target, i)
				}
			}
		}
		for _, n := range l.nodes {
			n.stop()
		}
		l.end(t, context.Canceled)
	})
}

// A node that has not heard of the others does not change the record, which they may know better.
func TestAChangeWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.first.Node = "nobody~1"
		n := l.join("n0~1", t.TempDir())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := n.Change(ctx, func(*desired.Record, uint64) error { t.Error("it is changed"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it gives %v", err)
		}
		n.Join() // no other node will come
		if err := n.Change(t.Context(), func(*desired.Record, uint64) error { return desired.ErrState }); !errors.Is(err,
			desired.ErrState) {
			t.Errorf("a refused change gives %v", err)
		}
		n.stop()
		l.end(t, context.Canceled)
		if err := n.AddSeeds(t.Context(), page(0, 0)); !errors.Is(err, errNodeEnded) {
			t.Errorf("a node that has ended gives %v", err)
		}
	})
}

// A node that was away for a short time when the last page was fetched learns of the end: the others wait for it.
func TestWhoWasAwayHearsOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mesh.AbsentWait = time.Minute
		for i := range 3 {
			l.start(fmt.Sprintf("n%d~1", i))
		}
		const name = "away~1"
		dir := t.TempDir()
		away := l.join(name, dir)
		away.work(t)
		time.Sleep(15 * time.Second)
		l.nodes[0].begin(t, nil)
		time.Sleep(time.Second)
		away.stop()
		<-away.over
		l.nodes = l.nodes[:3]
		time.Sleep(30 * time.Second)
		if r, _ := l.nodes[1].Crawl(); r.State == desired.Done {
			t.Error("the crawl is done while a node is away that may be back")
		}
		back := l.join(name, dir)
		time.Sleep(5 * time.Second)
		if back.Alone() {
			t.Fatal("who comes back finds nobody")
		}
		back.work(t)
		l.end(t, nil)
	})
}

// A node that was suspended while the others ended the crawl learns of the end, ends, too, and fetches nothing again.
func TestWhoHasSleptHearsOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mesh.AbsentWait = time.Second
		l.web.takes = 500 * time.Millisecond
		for i := range 4 {
			l.start(fmt.Sprintf("n%d~1", i))
		}
		time.Sleep(15 * time.Second)
		l.nodes[0].begin(t, nil)
		time.Sleep(2 * time.Second)
		sleeper := l.nodes[3]
		wakes := make(chan struct{})
		sleeper.inbox.post(func() { <-wakes })
		l.nodes = l.nodes[:3]
		l.end(t, nil)
		time.Sleep(time.Second)
		fetched := sleeper.engine.fetchedHere()
		close(wakes)
		if err := <-sleeper.over; err != nil {
			t.Errorf("it ended with %v", err)
		}
		sleeper.stop()
		if n := sleeper.engine.fetchedHere() - fetched; n > 0 {
			t.Errorf("who has slept fetches %d pages after the end", n)
		}
		if len(l.web.fetched) != hosts*pages {
			t.Errorf("%d pages are fetched of %d", len(l.web.fetched), hosts*pages)
		}
	})
}

// A node that ends later than the others, because it waits for a dead one, does not start the crawl again: the others
// have offered their seeds.
func TestWhoEndsLastDoesNotBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		for i, waits := range []time.Duration{time.Second, time.Second, 30 * time.Second, time.Minute} {
			l.mesh.AbsentWait = waits
			l.start(fmt.Sprintf("n%d~1", i))
		}
		time.Sleep(15 * time.Second)
		l.nodes[0].begin(t, nil)
		dead := l.nodes[1]
		dead.stop()
		<-dead.over
		l.nodes = slices.Delete(l.nodes, 1, 2)
		last := l.nodes[2]
		done := uint64(0)
		for done == 0 {
			time.Sleep(100 * time.Millisecond)
			if r, version := last.Crawl(); r.State == desired.Done {
				done = version
			}
		}
		l.end(t, nil)
		if _, version := last.Crawl(); version != done {
			t.Errorf("the crawl was done by version %d, and ends with %d", done, version)
		}
	})
}
