package crawl

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/fetch"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// A maze is a web in memory: each page links to a few others, chosen pseudorandomly by its name.
type maze struct {
	hosts, pages int
	answer       func(url string, resp *page.Response) bool // replaces the default answer; may be nil
	quick        bool                                       // exchanges take no time
	takes        func(url string) time.Duration             // duration of an exchange; nil: some milliseconds
	chain        bool                                       // each page links only to the next

	mu    sync.Mutex
	asked map[string][]int       // by URL, the nodes that fetched it
	times map[string][]time.Time // when they did
}

func (m *maze) url(i int) string { return fmt.Sprintf("http://h%d.test/%d", i%m.hosts, i) }

// lasts returns the duration of an exchange.
func (m *maze) lasts(url string) time.Duration {
	if m.takes != nil {
		return m.takes(url)
	}
	return time.Duration(1+hash64(url)%9) * time.Millisecond
}

func (m *maze) links(url string) (all []string) {
	if m.chain {
		return m.next(url)
	}
	dice := rand.New(rand.NewPCG(hash64(url), uint64(m.pages)))
	for range dice.IntN(8) {
		all = append(all, m.url(dice.IntN(m.pages)))
	}
	return all
}

func (m *maze) next(url string) []string {
	n, err := strconv.Atoi(url[strings.LastIndexByte(url, '/')+1:])
	if err != nil || n+1 == m.pages {
		return nil
	}
	return []string{m.url(n + 1)}
}

func hash64(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// closure returns all reachable URLs.
func (m *maze) closure(seeds []string) map[string]bool {
	all, todo := map[string]bool{}, slices.Clone(seeds)
	for len(todo) > 0 {
		url := todo[0]
		if todo = todo[1:]; !all[url] {
			all[url] = true
			todo = append(todo, m.links(url)...)
		}
	}
	return all
}

// A mazeClient is a node's client in the maze. Each exchange takes some time.
type mazeClient struct {
	*maze
	node int
}

func (c *mazeClient) Allow(string) {}

func (c *mazeClient) Resolve(context.Context, string, string) (netip.Addr, error) {
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
}

func (c *mazeClient) Get(ctx context.Context, req fetch.Request, resp *page.Response) error {
	c.mu.Lock()
	c.asked[req.URL] = append(c.asked[req.URL], c.node)
	if c.times != nil {
		c.times[req.URL] = append(c.times[req.URL], time.Now())
	}
	c.mu.Unlock()
	if !c.quick {
		select {
		case <-time.After(c.lasts(req.URL)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	*resp = page.Response{URL: req.URL, Status: http.StatusOK, Header: http.Header{}}
	if c.answer == nil || !c.answer(req.URL, resp) {
		resp.Payload = []byte(req.URL + "\n" + strings.Join(c.links(req.URL), "\n"))
	}
	return nil
}

// A mazeParser reads a page's links from its lines after the first.
type mazeParser struct{}

func (mazeParser) Parse(resp *page.Response, pg *page.Page) error {
	*pg = page.Page{}
	if to := resp.Header.Get("Location"); to != "" {
		pg.Links = append(pg.Links, page.Link{URL: to, Kind: page.Redirect})
	}
	for _, l := range strings.Split(string(resp.Payload), "\n")[1:] {
		if l != "" {
			pg.Links = append(pg.Links, page.Link{URL: l, Kind: page.Anchor})
		}
	}
	return nil
}

func (p mazeParser) ParseList(resp *page.Response, pg *page.Page) error { return p.Parse(resp, pg) }

// A crew is several nodes that crawl one maze.
type crew struct {
	t      *testing.T
	cfg    Config
	slices *item.Slices // hosts are cut into these, and owner is called with slices
	maze   *maze
	mode   weburl.Mode
	seeds  []weburl.URL
	nodes  []*crewNode
	owner  func(host string) (int, bool) // returns a host's owner, and whether that node knows this and accepts links

	mu      sync.Mutex
	dice    *rand.Rand
	lossy   int                               // of 100 batches or answers, the number that is lost
	mortal  func(n *crewNode) *vfstest.Faulty // returns the disk of a life
	tune    func(*Config)                     // changes the settings; may be nil
	order   func() rank.Order                 // an order by links; may be nil
	powered bool                              // a disk fails only with its process
	doubt   bool                              // seen cannot decide any URL at once
	backups *backups                          // replaces sending links from node to node; may be nil
	mesh    *meshCrew                         // replaces both; may be nil
	// receives reports of finished URLs instead of backups
	tells func(n *crewNode, host string, urls []string)
}

// A crewNode is a node with several lives.
type crewNode struct {
	*crew
	id     int
	dir    string
	lives  int
	engine atomic.Pointer[Engine]
	seeded atomic.Bool
	ended  atomic.Bool // all work is done
	may    atomic.Bool
	done   map[string]bool  // at the end: URLs that it knows as fetched
	pages  map[string]int64 // by host, of the last life
	roots  []string         // announced to it
	life   *meshLife        // in a mesh

	ranker  *ranker.Ranker // of the last life
	damaged int            // how often links were missing whose found entry is in the journal
}

func newCrew(t *testing.T, nodes int, m *maze, seeds ...string) *crew {
	m.asked, m.times = map[string][]int{}, map[string][]time.Time{}
	c := &crew{t: t, maze: m, mode: weburl.ScopeAny, dice: rand.New(rand.NewPCG(1, 2))}
	c.cfg = Config{Depth: -1, IgnoreRobots: true, KeepOpen: true, Commit: 5 * time.Millisecond,
		Links: member.OutboxConfig{Retry: 200 * time.Millisecond, Wait: 20 * time.Millisecond}}
	c.owner = func(host string) (int, bool) { return int(hash64(host) % uint64(nodes)), true }
	c.mortal = func(*crewNode) *vfstest.Faulty { return vfstest.NewFaulty(vfs.OS) }
	for i := range nodes {
		n := &crewNode{crew: c, id: i, dir: t.TempDir()}
		n.may.Store(true)
		c.nodes = append(c.nodes, n)
	}
	for _, s := range seeds {
		u, err := weburl.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		c.seeds = append(c.seeds, u)
	}
	return c
}

func (n *crewNode) Ours(host string) bool {
	if n.life != nil {
		return n.life.router.Ours(host)
	}
	owner, takes := n.owner(host)
	return owner == n.id && takes
}

func (n *crewNode) May(host string) bool {
	if n.life != nil {
		return n.life.router.May(host)
	}
	return n.may.Load() && n.Ours(host)
}

// chance returns true once in of cases. It is safe for concurrent use.
func (c *crew) chance(of int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dice.IntN(of)
}

// open starts a life on a disk.
func (n *crewNode) open(disk vfs.FS) (e *Engine, closeAll func() error, err error) {
	var closers []func() error
	closeAll = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	defer func() {
		if err != nil {
			_ = closeAll()
		}
	}()
	cfg := n.cfg
	if n.tune != nil {
		n.tune(&cfg)
	}
	j, err := file.Open(disk, filepath.Join(n.dir, "journal"), file.Config{Segment: 1 << 14})
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, j.Close)
	db, err := seen.Open(disk, filepath.Join(n.dir, "seen"), seen.Config{Memory: 1 << 18, Depths: cfg.Depth >= 0})
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, db.Close)
	if n.doubt && db.Position() == 0 {
		for i := range n.maze.pages {
			// the filter of the disk part contains the URL, without a state
			db.UpdateMeta(n.maze.url(i), seen.Meta{Status: http.StatusOK})
		}
		db.Freeze(0)
		if err := db.Merge(context.Background(), nil); err != nil {
			return nil, closeAll, err
		}
	}
	front, note, err := frontier.Open(frontier.Config{Disk: disk, Dir: filepath.Join(n.dir, "frontier"), Memory: 1 << 18,
		RetryWait: time.Millisecond, Slices: n.slices.Count()})
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, front.Close)
	shelf := statefile.OpenAbandoned(disk, n.dir)
	closers = append(closers, shelf.Close)
	state, err := recovery.Recover(j, recovery.Views{Seen: db, Digests: seen.NewRecent(), Frontier: front,
		Abandoned: shelf, Note: note})
	if err != nil {
		return nil, closeAll, err
	}
	ranks, err := n.openRanks(disk, state)
	if err != nil {
		return nil, closeAll, err
	}
	roots, err := statefile.OpenScopeSeeds(disk, n.dir, state.Marks)
	if err != nil {
		return nil, closeAll, err
	}
	return New(cfg, Parts{Journal: j, Robots: robots.NewCache(robots.Config{}), Scope: weburl.NewScope(n.mode), Router: n,
		Fetcher: &mazeClient{n.maze, n.id}, NewParser: func(int64) Parser { return mazeParser{} },
		Ranks: ranks, NewScopeSeed: n.tell, ScopeSeeds: roots, Stores: []store.Store{roots},
		Finished: n.finished, Revisit: n.revisit}, state), closeAll, nil
}

func (n *crewNode) revisit(host, url string, next item.Revisit) {
	if n.mesh != nil {
		if node := n.life.node.Load(); node != nil {
			node.Revisit(host, url, next)
		}
	}
}

// tell announces a scope seed to all other nodes.
func (n *crewNode) tell(u weburl.URL) {
	n.mu.Lock()
	n.roots = append(n.roots, u.String())
	n.mu.Unlock()
	for _, other := range n.nodes {
		if e := other.engine.Load(); e != nil && other != n {
			if err := e.Seeding.AddScopeSeed(u); err != nil {
				n.t.Errorf("node %d is told of a root: %v", other.id, err)
			}
		}
	}
}

// live runs lives until all work is done, or the disk fails for good.
func (n *crewNode) live(ctx context.Context) error {
	disk := n.mortal(n)
	n.lives++
	e, closeAll, err := n.open(disk)
	if err == nil {
		ctx, stop := context.WithCancel(ctx)
		var beside sync.WaitGroup
		switch {
		case n.mesh != nil:
			err = n.meet(ctx, disk, e, &beside, stop)
		case n.backups != nil:
			n.remind(ctx, e, &beside)
		default:
			beside.Go(func() { n.carry(ctx, e) })
			beside.Go(func() { n.seed(ctx, e) })
		}
		n.engine.Store(e)
		if err == nil {
			err = e.Run(ctx, nil, 4)
		}
		n.engine.Store(nil)
		stop()
		beside.Wait()
		if err == nil {
			err = n.remember(e)
		}
		err = errors.Join(err, closeAll())
	}
	if !disk.Dead() {
		return err
	}
	n.ended.Store(false)
	if n.backups.wipes(n) {
		return os.RemoveAll(n.dir)
	}
	if !n.powered && n.chance(2) == 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		return disk.PowerLoss(n.dice)
	}
	return nil
}

func (n *crewNode) remember(e *Engine) error {
	n.done, n.pages = map[string]bool{}, map[string]int64{}
	for host, h := range e.abandons.stats.Snapshot().Hosts {
		n.pages[host] = h.Pages
	}
	for entry, err := range e.known.db.Scan("") {
		if err != nil {
			return err
		}
		if entry.Answered() {
			n.done[entry.URL] = true
		}
	}
	n.ended.Store(true)
	return nil
}

// seed adds the seeds, all of them at the first node.
func (n *crewNode) seed(ctx context.Context, e *Engine) {
	if n.seeded.Load() {
		return
	}
	if e.Seeding.AddSeeds(ctx, n.seeds, func(string) bool { return n.id == 0 }) == nil {
		n.seeded.Store(true)
	}
}

// carry delivers batches to other nodes, and their answers back.
func (n *crewNode) carry(ctx context.Context, e *Engine) {
	var ways sync.WaitGroup
	defer ways.Wait()
	for ctx.Err() == nil {
		for _, b := range e.Links.Batches(time.Now(), n.ownerOf) {
			ways.Go(func() { n.bring(ctx, e, b) })
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (n *crewNode) ownerOf(host string) (strategy.Node, bool) {
	owner, _ := n.owner(host)
	return nodeName(owner), owner >= 0 && owner != n.id
}

func nodeName(id int) strategy.Node { return strategy.Node(fmt.Sprintf("%d~1", id)) }

func (n *crewNode) bring(ctx context.Context, e *Engine, b member.Batch) {
	for _, other := range n.nodes {
		to := other.engine.Load()
		if nodeName(other.id) != b.To || to == nil || n.chance(100) < n.lossy {
			continue
		}
		for again := true; again; again = n.chance(100) < n.lossy {
			refused, err := to.Links.TakeLinks(ctx, b.Data)
			if err == nil && n.chance(100) >= n.lossy {
				e.Links.Answered(b.To, b.Number, refused, time.Now())
			}
		}
	}
}

// run runs all nodes until all work is done.
func (c *crew) run(t *testing.T) {
	c.t = t
	var all sync.WaitGroup
	for _, n := range c.nodes {
		all.Go(func() {
			for !n.ended.Load() {
				if err := n.live(t.Context()); err != nil {
					c.t.Errorf("node %d: %v", n.id, err)
					n.ended.Store(true)
				}
			}
		})
	}
	all.Go(c.watch)
	all.Wait()
}

// watch ends the runs when all nodes were idle twice and received nothing between.
func (c *crew) watch() {
	var before []string
	for {
		time.Sleep(20 * time.Millisecond)
		now, ended := c.idle()
		if ended {
			return
		}
		if now != nil && slices.Equal(now, before) {
			for _, n := range c.nodes {
				if e := n.engine.Load(); e != nil {
					e.Finish()
				}
			}
		}
		before = now
	}
}

// idle returns how often each node has received something, nil if a node is not idle; and whether all have ended.
func (c *crew) idle() (came []string, ended bool) {
	ended = true
	for _, n := range c.nodes {
		e := n.engine.Load()
		switch {
		case n.ended.Load():
			came = append(came, "ended")
			continue
		case e == nil || !n.seeded.Load() || !e.Idle() || !c.backups.idle() || c.mesh != nil && !c.mesh.over.Load():
			return nil, false
		}
		came, ended = append(came, fmt.Sprintf("%p %d", e, e.Received())), false
	}
	return came, ended
}

// wantAll checks that all pages were fetched by their owners: exactly once, or at least once. No work is left.
func (c *crew) wantAll(t *testing.T, once bool) {
	t.Helper()
	c.t = t
	var seeds []string
	for _, u := range c.seeds {
		seeds = append(seeds, u.String())
	}
	want, got := c.maze.closure(seeds), map[string]bool{}
	for _, n := range c.nodes {
		for url := range n.done {
			if owner, _ := c.owner(c.slices.Of(url)); owner != n.id {
				c.t.Errorf("node %d has %s, which is node %d's", n.id, url, owner)
			}
		}
		maps.Copy(got, n.done)
	}
	if !maps.Equal(got, want) {
		c.t.Errorf("%d pages are known to be fetched, want %d", len(got), len(want))
	}
	for url := range want {
		if by := c.maze.asked[url]; len(by) == 0 || once && len(by) > 1 {
			c.t.Errorf("%s was fetched by %v", url, by)
		}
	}
	for _, n := range c.nodes {
		e, closeAll, err := n.open(vfs.OS)
		if err != nil {
			t.Fatal(err)
		}
		if links, bytes := e.Links.Outbox(); links > 0 || bytes > 0 || !e.Idle() || e.known.pending() > 0 {
			t.Errorf("node %d: %d links wait in the next run, %d bytes", n.id, links, bytes)
		}
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}
}
