package crawl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/meshnode"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/exchange"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/entry"
	"kumo/internal/state/history"
	"kumo/internal/state/journal/file"
)

// A meshCrew has the connections between the nodes of a crew in a mesh crawl.
type meshCrew struct {
	hub   *inproc.Hub
	quiet time.Duration // until the seeds are added, so that all nodes know each other
	over  atomic.Bool   // all nodes are idle
}

// A meshLife is one life of a crew's node in a mesh.
type meshLife struct {
	router meshnode.Router
	node   atomic.Pointer[meshnode.Node]
	seeds  atomic.Uint64 // version of the crawl's record with the seeds; 0: none known
}

func (n *crewNode) meshName() string { return fmt.Sprintf("n%d~1", n.id) }

// meet joins the engine to the mesh for its life.
func (n *crewNode) meet(ctx context.Context, disk vfs.FS, e *Engine, beside *sync.WaitGroup, stop func()) error {
	j, err := file.Open(disk, filepath.Join(n.dir, "history.journal"), file.Config{Segment: 1 << 14})
	if err != nil {
		return err
	}
	self := n.meshName()
	db, err := history.Open(disk, filepath.Join(n.dir, "history"), j,
		history.Config{Key: meshnode.Key, Memory: 1 << 20})
	if err != nil {
		return errors.Join(err, j.Close())
	}
	words, err := n.mesh.hub.Join(strategy.Node(self))
	if err != nil {
		return errors.Join(err, db.Close(), j.Close())
	}
	var known []overlay.Contact
	for _, other := range n.nodes {
		if other != n {
			known = append(known, overlay.Contact{Node: other.meshName()})
		}
	}
	if n.id == 0 && n.lives == 1 {
		known = nil // the first node
	}
	seed := uint64(n.chance(1 << 30))
	node, err := meshnode.New(meshnode.Config{Messenger: words, Known: known, Router: &n.life.router,
		History: db, Overlay: overlay.Config{Self: overlay.Contact{Node: self}, Seed: seed}, Mesh: mesh.Config{Process: seed},
		Read: func(data []byte, f func(host, url string, link []byte)) error {
			return exchange.Read(data, func(c entry.Candidate, link []byte) { f(n.slices.Of(c.Item.URL), c.Item.URL, link) })
		},
		Changed: func() {
			_, version := n.life.node.Load().Crawl()
			n.life.seeds.Store(version)
		},
		Ended: func(end mesh.Ended) {
			if v := n.life.seeds.Load(); end.Nodes == len(n.nodes) && v > 0 && end.Version == v {
				n.mesh.over.Store(true)
			}
		}})
	if err == nil {
		err = node.Attach(meshEngine{e, e.Links, e.Dispatches, e.Seeding, e.Inspector})
	}
	if err != nil {
		return errors.Join(err, words.Close(), db.Close(), j.Close())
	}
	n.life.node.Store(node)
	n.life.seeds.Store(0)
	beside.Go(func() {
		err := node.Run(ctx)
		n.life.node.Store(nil)
		err = errors.Join(words.Close(), db.Close(), j.Close(), err)
		if ctx.Err() == nil { // an error of the disk, or a bug
			if !disk.(*vfstest.Faulty).Dead() {
				n.t.Errorf("node %d: %v", n.id, err)
			}
			stop()
		}
	})
	beside.Go(func() {
		select {
		case <-time.After(n.mesh.quiet):
		case <-ctx.Done():
		}
		if n.seed(ctx, e); n.id == 0 && n.seeded.Load() {
			err := node.Change(ctx, func(r *desired.Record, _ uint64) error {
				r.Seeds = 1 // are in
				return nil
			})
			if err != nil && ctx.Err() == nil && !disk.(*vfstest.Faulty).Dead() {
				n.t.Error(err)
			}
		}
	})
	return nil
}

// newMesh turns a crew into a mesh.
func newMesh(c *crew) *meshCrew {
	c.mesh = &meshCrew{hub: inproc.New(1)}
	c.cfg.Claims = true
	for _, n := range c.nodes {
		n.life = &meshLife{}
	}
	c.tells = func(n *crewNode, host string, urls []string) {
		if node := n.life.node.Load(); node != nil {
			node.Finished(host, urls)
		}
	}
	return c.mesh
}

// TestEnginesOfAMesh runs real engines, histories and member machines of a mesh until the crawl is done.
func TestEnginesOfAMesh(t *testing.T) {
	for _, nodes := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			m := &maze{hosts: 40, pages: 1500}
			crew := newCrew(t, nodes, m, m.url(0), m.url(1), m.url(2))
			newMesh(crew).quiet = 30 * time.Second
			synctest.Test(t, func(t *testing.T) { crew.run(t) })
			wantMesh(t, crew, true)
		})
	}
}

// TestEnginesOfAMeshSurviveCrashes crashes nodes at any byte that their engines or histories write; KUMO_TEST_CRASHES
// is the number of webs.
func TestEnginesOfAMeshSurviveCrashes(t *testing.T) {
	seed, end := testmain.Seeds(2, 10)
	if n, err := strconv.ParseUint(os.Getenv("KUMO_TEST_CRASHES"), 10, 64); err == nil {
		seed, end = 0, n
	}
	for ; seed < end; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m := &maze{hosts: 30, pages: 500 + int(seed)}
			crew := newCrew(t, 4, m, m.url(0), m.url(1), m.url(2))
			crew.dice = rand.New(rand.NewPCG(seed, 3))
			newMesh(crew)
			crew.mortal = func(n *crewNode) *vfstest.Faulty {
				disk := vfstest.NewFaulty(vfs.OS)
				if n.lives < 6 {
					disk.DieAfter(int64(4<<10 + n.chance(64<<10)))
				}
				return disk
			}
			synctest.Test(t, func(t *testing.T) {
				defer crew.inTime()()
				crew.run(t)
			})
			wantMesh(t, crew, false)
		})
	}
}

// inTime fails a crawl that does not end in time. It is called in its bubble.
func (c *crew) inTime() (stop func() bool) {
	return time.AfterFunc(5*time.Minute, func() {
		for _, n := range c.nodes {
			fmt.Printf("node %d, life %d, seeded %v\n", n.id, n.lives, n.seeded.Load())
			if e := n.engine.Load(); e != nil {
				links, _ := e.Links.Outbox()
				fmt.Printf("  idle %v, %d links, %v unsaid, %+v\n", e.Idle(), links, e.Dispatches.claims.unreported, e.frontier.Counts())
			}
			if node := n.life.node.Load(); node != nil {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				t, err := node.Gather(ctx)
				fmt.Printf("  all together %+v (%v)\n", t, err)
				cancel()
			}
		}
		panic("not all is done in five minutes")
	}).Stop
}

// wantMesh checks that all pages were fetched.
func wantMesh(t *testing.T, c *crew, once bool) {
	t.Helper()
	var seeds []string
	for _, u := range c.seeds {
		seeds = append(seeds, u.String())
	}
	again := 0
	for url := range c.maze.closure(seeds) {
		switch n := len(c.maze.asked[url]); {
		case n == 0:
			t.Errorf("%s is never fetched", url)
		case n > 1:
			again += n - 1
		}
	}
	lives := 0
	for _, n := range c.nodes {
		lives += n.lives
	}
	t.Logf("%d of %d fetched again, in %d lives", again, len(c.maze.asked), lives)
	if once && again > 0 {
		t.Errorf("%d pages are fetched again", again)
	}
}

// A meshEngine adapts an engine to a node of a mesh.
type meshEngine struct {
	*Engine
	*Links
	*Dispatches
	*Seeding
	*Inspector
}
