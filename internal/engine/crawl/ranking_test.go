package crawl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/siphash"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/indegree"
	"kumo/internal/state/rank/linklog"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/recovery"
)

// openRanks opens the ranking of a crew's node.
func (n *crewNode) openRanks(disk vfs.FS, s *recovery.State) (Ranks, error) {
	if n.order == nil {
		return Ranks{}, nil
	}
	var err error
	for _, mark := range []linklog.Mark{RankMark(s.Marks), RankMark(s.Checkpoint), {}} {
		var r *ranker.Ranker
		r, err = ranker.Open(context.Background(), ranker.Config{Order: n.order(), Key: siphash.Key{7},
			Others: len(n.nodes) > 1, Log: linklog.Config{Dir: filepath.Join(n.dir, RankDir), Disk: disk}}, mark)
		if err == nil {
			n.ranker = r
			return Ranks{Links: r, Persistent: true}, nil
		}
		if !errors.Is(err, linklog.ErrDamaged) {
			break
		}
		n.damaged++
	}
	return Ranks{}, err
}

// inlinks returns the number of reachable pages of a maze that link to each URL.
func (c *crew) inlinks() map[string]int {
	var seeds []string
	for _, u := range c.seeds {
		seeds = append(seeds, u.String())
	}
	n := map[string]int{}
	for from := range c.maze.closure(seeds) {
		n[from] += 0
		for to := range set(c.maze.links(from)) {
			n[to]++
		}
	}
	return n
}

func set(all []string) map[string]bool {
	s := map[string]bool{}
	for _, one := range all {
		s[one] = true
	}
	return s
}

func (n *crewNode) importance(t *testing.T, url string) float64 {
	t.Helper()
	e, known := n.ranker.Explain(ranker.URL{Key: n.ranker.KeyOf(url)})
	if !known || !e.Fetched {
		t.Errorf("node %d: the ranker does not know that %s was fetched", n.id, url)
	}
	return e.Importance
}

func inDegree() rank.Order { return indegree.New() }

// TestACrawlThatDiesCountsEachLinkOnce: if a crawl's process is killed repeatedly, at any byte that it writes, each
// link counts once in the end. If the machine crashes, links may be lost, but none counts twice, and no URL is lost.
func TestACrawlThatDiesCountsEachLinkOnce(t *testing.T) {
	for seed := range uint64(8) {
		power := seed%2 == 1
		t.Run(fmt.Sprintf("seed %d, power losses: %v", seed, power), func(t *testing.T) {
			m := &maze{hosts: 10, pages: 600 + int(seed)}
			crew := newCrew(t, 1, m, m.url(0), m.url(1), m.url(2))
			crew.dice = rand.New(rand.NewPCG(seed, 5))
			crew.order, crew.powered = inDegree, !power
			crew.tune = func(c *Config) {
				crew.mu.Lock()
				defer crew.mu.Unlock()
				c.Checkpoint = pickOne[int64](crew.dice, 1, 4<<10, 64<<20)
				c.Commit = pickOne(crew.dice, time.Millisecond, 20*time.Millisecond)
			}
			crew.mortal = func(n *crewNode) *vfstest.Faulty {
				disk := vfstest.NewFaulty(vfs.OS)
				if n.lives < 12 {
					disk.DieAfter(int64(n.chance(8 << 10 << (2 * n.chance(4)))))
				}
				return disk
			}
			synctest.Test(t, crew.run)
			crew.wantAll(t, false)
			n := crew.nodes[0]
			t.Logf("%d lives, in %d of which links were missing", n.lives, n.damaged)
			lost := 0
			for url, in := range crew.inlinks() {
				e, known := n.ranker.Explain(ranker.URL{Key: n.ranker.KeyOf(url)})
				if !known && !power {
					t.Errorf("%s is not known", url)
				}
				counted := 0
				if known {
					counted = int(e.Importance) - 1
				}
				if counted > in || counted < in && !power {
					t.Errorf("%s has %d links, and %d count", url, in, counted)
				}
				lost += in - counted
			}
			t.Logf("%d links were lost", lost)
		})
	}
}

// TestNodesRankTogether: a URL's importance is known to the node that fetches it, whichever node has found the links,
// however often batches are delivered, and whichever node crashes, except for what others have not sent yet: less than
// an eighth of what they have sent, and of one.
func TestNodesRankTogether(t *testing.T) {
	for seed := range uint64(6) {
		deadly := seed%2 == 1
		t.Run(fmt.Sprintf("seed %d, deadly: %v", seed, deadly), func(t *testing.T) {
			m := &maze{hosts: 40, pages: 800 + 2*int(seed)}
			crew := newCrew(t, 4, m, m.url(0), m.url(1))
			crew.dice = rand.New(rand.NewPCG(seed, 6))
			crew.order, crew.lossy, crew.powered = inDegree, 30, true
			crew.cfg.Links.Retry = 20 * time.Millisecond
			crew.mortal = func(n *crewNode) *vfstest.Faulty {
				disk := vfstest.NewFaulty(vfs.OS)
				if deadly && n.lives < 4 {
					disk.DieAfter(int64(n.chance(8 << 10 << (2 * n.chance(4)))))
				}
				return disk
			}
			synctest.Test(t, crew.run)
			crew.wantAll(t, false)
			slack := 0.0
			if deadly { // links may be sent before they are journalled, and sent with another worth next time
				slack = 4
			}
			crew.wantLinksAbroad(t, slack)
		})
	}
}

// wantLinksAbroad checks that the links to each URL count where it is fetched, up to a slack.
func (c *crew) wantLinksAbroad(t *testing.T, slack float64) {
	t.Helper()
	off := 0
	for url, in := range c.inlinks() {
		owner, _ := c.owner(c.slices.Of(url))
		got := c.nodes[owner].importance(t, url) - 1
		if got > float64(in)+slack || got < (float64(in)-3*worthShare)/(1+worthShare)-slack {
			t.Errorf("%s has %d links, and %v count", url, in, got)
		}
		if got > float64(in) {
			off++
		}
	}
	if off > 8 {
		t.Errorf("of %d URLs more links count than there are", off)
	}
	abroad := 0
	for from := range c.inlinks() {
		for to := range set(c.maze.links(from)) {
			a, _ := c.owner(c.slices.Of(from))
			b, _ := c.owner(c.slices.Of(to))
			if a != b {
				abroad++
			}
		}
	}
	if abroad < 500 {
		t.Errorf("%d links lead to other nodes' URLs: the test says nothing", abroad)
	}
}

const worthShare = 1. / rank.Steps
