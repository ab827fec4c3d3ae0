package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/verify"
	"kumo/internal/app/wire"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/hub"
	"kumo/internal/cluster/strategy/shard"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A cluster has a few nodes in one process, each with its own folder, over an in-memory bus.
type cluster struct {
	t       *testing.T
	web     *synthweb.Server
	hub     *inproc.Hub
	dir     string
	control admin.Client
	started []*running
	tune    func(*job.Job) // may be nil

	strategy string        // "": shard
	lease    time.Duration // shorter if a node has to be declared dead
}

const shortLease = 6 * time.Second

func newCluster(t *testing.T, web *synthweb.Server) *cluster {
	c := &cluster{t: t, web: web, hub: inproc.New(1), dir: t.TempDir(), lease: time.Minute}
	b, err := c.hub.Join("control~1")
	if err != nil {
		t.Fatal(err)
	}
	c.control = admin.New(admin.Config{Crawl: "test", Bus: b, Close: b.Close, Placement: c.placement})
	t.Cleanup(func() { c.control.Close() })
	return c
}

// quick returns timings for tests. The lease is as long as possible: on a busy machine a short lease could expire, and
// pending pages would be fetched again.
func quick(lease time.Duration) *member.Timing {
	return &member.Timing{Beat: 200 * time.Millisecond, TTL: lease, Margin: time.Second,
		Retry: 200 * time.Millisecond, Window: 16}
}

func (c *cluster) config(name string) Config {
	return Config{Name: name, Timing: *quick(c.lease), Layout: "test", Joining: c.member, Open: wire.OpenPart,
		CompleteFiles: wire.CompleteFiles,
		Connect:       func(context.Context) (Connection, error) { return connection{c.hub}, nil },
		Log:           slog.New(slog.NewTextHandler(c.t.Output(), nil)).With("node", name)}
}

// member gives a node the cluster's strategy.
func (c *cluster) member(cfg quorum.Config) (member.Member, strategy.Strategy) {
	if c.strategy == "balance" {
		b := balance.LAN()
		b.Self = cfg.Self
		return quorum.New(cfg), balance.New(b)
	}
	if c.strategy == "hub" {
		h := hub.LAN()
		h.Self = cfg.Self
		return quorum.New(cfg), hub.New(h)
	}
	s := shard.Config{Slots: shard.DefaultSlots}
	cfg.Place, cfg.Slot = shard.New(s), s.FreeSlot
	return quorum.New(cfg), nil
}

func (c *cluster) placement(string) (*admin.Placement, error) {
	if c.strategy == "balance" {
		return &admin.Placement{Strategy: c.strategy,
			Model: func(read func(func(uint64, []byte) error) error) (*model.Model, []model.Sample, error) {
				samples, err := balance.ReadLog(hosttable.Key{}, read, func(central.Host) bool { return false })
				return balance.TrainModel(balance.LAN(), samples), samples, err
			}}, nil
	}
	if c.strategy == "hub" {
		return &admin.Placement{Table: func(read func(func(uint64, []byte) error) error, each func(central.Host) bool) error {
			return central.ReadTable(hosttable.Key{}, nil, read, each)
		}}, nil
	}
	return &admin.Placement{Owner: func(members []strategy.Member, host string) strategy.Node {
		owner, _ := shard.New(shard.Config{Slots: shard.DefaultSlots}).Place(members).Owner(host)
		return owner
	}}, nil
}

// A connection joins nodes to an in-memory bus.
type connection struct{ *inproc.Hub }

func (c connection) Join(n strategy.Node) (bus.Bus, error) { return c.Hub.Join(n) }
func (connection) Address() string                         { return "" }
func (connection) Health() error                           { return nil }
func (connection) Close() error                            { return nil }

// A running node ends when its test does.
type running struct {
	*Node
	dir   string
	stop  context.CancelFunc
	ended chan error
}

// job returns a job without seeds, which are passed to the cluster.
func (c *cluster) job(name string) *job.Job {
	j := jobtest.For(c.web, filepath.Join(c.dir, name))
	j.Seeds = nil
	// On a busy machine, answered requests must not time out: they would be repeated, or their hosts abandoned.
	j.Fetch.ConnectTimeout, j.Fetch.Timeout = time.Minute, time.Minute
	return j
}

// start starts a node in the folder with its name.
func (c *cluster) start(name string) *running {
	c.t.Helper()
	return c.startWith(name, func(*Config) {})
}

// startWith starts a node with a modified configuration.
func (c *cluster) startWith(name string, change func(*Config)) *running {
	c.t.Helper()
	cfg := c.config(name)
	change(&cfg)
	j := c.job(name)
	if c.tune != nil {
		c.tune(j)
	}
	n, err := Open(c.t.Context(), j, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.t.Context())
	r := &running{n, j.Dir, stop, make(chan error, 1)}
	c.started = append(c.started, r)
	go func() {
		_, err := n.Run(ctx)
		r.ended <- errors.Join(err, n.Close())
	}()
	return r
}

// kill ends a node abruptly, and waits until it has ended.
func (r *running) kill() {
	r.stop()
	<-r.ended
}

// members waits until the table has n members, and is settled.
func (c *cluster) members(n int) {
	c.t.Helper()
	c.eventually(fmt.Sprint(n, " members are settled"), func() bool {
		all, err := c.control.Cluster(c.t.Context(), "test")
		if err != nil {
			c.t.Fatal(err)
		}
		in := 0
		for i := range all.Nodes {
			if all.Nodes[i].Is == inspect.NodeMember {
				in++
			}
		}
		return in == n && all.Settled
	})
}

func (c *cluster) eventually(what string, is func() bool) {
	c.t.Helper()
	for p := c.idle(); !is(); time.Sleep(betweenLooks) {
		if (p.over() || c.ended()) && !is() {
			c.t.Fatal("never: ", what)
		}
	}
}

// ended reports whether all nodes have ended by themselves, so that waiting is pointless.
func (c *cluster) ended() bool {
	return !slices.ContainsFunc(c.started, func(r *running) bool { return len(r.ended) == 0 })
}

// An idle is over when the servers have received no requests for a while. The total time does not matter, because the
// machine may be busy.
type idle struct {
	web      *synthweb.Server
	requests int64
	looks    int
}

const (
	betweenLooks = 50 * time.Millisecond
	mostLooks    = 6000 // without a request
)

func (c *cluster) idle() *idle { return &idle{web: c.web} }

func (p *idle) over() bool {
	if n := p.web.Requests(); n != p.requests {
		p.requests, p.looks = n, 0
	}
	p.looks++
	return p.looks > mostLooks
}

// midway starts the crawl and waits for a number of requests. Then it slows the crawl down, so that it does not end
// before the test's next action.
func (c *cluster) midway(requests int64) {
	c.t.Helper()
	c.slowAfter(requests)
	c.begin()
	c.further(requests)
}

// further waits for a total number of requests.
func (c *cluster) further(requests int64) {
	c.t.Helper()
	c.slowAfter(requests)
	c.eventually(fmt.Sprint("more than ", requests, " requests"), func() bool { return c.web.Requests() > requests })
}

func (c *cluster) slowAfter(requests int64) { c.web.SetDelay(requests, 2*time.Second) }

// goOn removes the slowdown once the nodes are members.
func (c *cluster) goOn(nodes ...*running) {
	c.t.Helper()
	for _, r := range nodes {
		c.eventually(r.Name+" is a member", func() bool { return r.Member() })
	}
	c.web.SetDelay(0, 0)
}

func (c *cluster) begin() {
	c.t.Helper()
	if err := c.control.Start(c.t.Context(), nil, c.web.SeedURLs()); err != nil {
		c.t.Fatal(err)
	}
}

// ends waits until nodes have ended with the expected error.
func (c *cluster) ends(want error, nodes ...*running) {
	c.t.Helper()
	for _, r := range nodes {
		if err := c.end(r); !errors.Is(err, want) {
			c.t.Errorf("%s ended with %v, want %v", r.Name, err, want)
		}
	}
}

// end waits until a node has ended.
func (c *cluster) end(r *running) error {
	c.t.Helper()
	for p := c.idle(); ; {
		select {
		case err := <-r.ended:
			return err
		case <-time.After(betweenLooks):
			if p.over() {
				c.t.Fatalf("%s does not end, and nothing is asked for", r.Name)
			}
		}
	}
}

// underEach runs a test with each strategy of a cluster.
func underEach(t *testing.T, test func(t *testing.T, strategy string)) {
	t.Parallel()
	for _, strategy := range []string{"shard", "hub"} {
		if testing.Short() && strategy != "hub" {
			continue
		}
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			test(t, strategy)
		})
	}
}

func TestThreeNodesFetchAllThereIs(t *testing.T) { underEach(t, threeNodesFetchAllThereIs) }

func threeNodesFetchAllThereIs(t *testing.T, strategy string) {
	web := jobtest.Serve(t, synthweb.Clean(11, 40, 1200))
	c := newCluster(t, web)
	c.strategy = strategy
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.members(3)
	c.begin()
	c.ends(nil, a, b, d)
	score := jobtest.WantPerfect(t, web)
	if score.MostInFlight.Value != 1 {
		t.Errorf("%d requests at once to one host", score.MostInFlight.Value)
	}
	total := 0
	for _, r := range []*running{a, b, d} {
		n := pagesIn(t, r.dir)
		if n == 0 {
			t.Errorf("%s has fetched nothing", r.Name)
		}
		total += n
		wantVerified(t, r.dir)
	}
	if total != score.Truth {
		t.Errorf("%d pages are in the nodes' files, want %d", total, score.Truth)
	}
}

// A process that restarts while the registry is unreachable waits for it. Unfinished recoveries of an earlier process
// are deleted.
func TestANodeRestartsWhileTheRegistryIsAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, jobtest.Serve(t, synthweb.Clean(11, 4, 10)))
	a := c.start("a")
	c.members(1)
	a.kill()
	id, err := node.OpenIdentity(vfs.OS, filepath.Join(a.dir, "state", folder.NodeFile), "a")
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(a.dir, "state", "estates", "b~1")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	c.hub.Partition(id.Node(), true)
	a = c.start("a")
	select {
	case err := <-a.ended:
		t.Fatalf("it ends: %v", err)
	case <-time.After(time.Second):
	}
	c.hub.Partition(id.Node(), false)
	c.eventually("it is a member again", func() bool { return a.Member() })
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was folded stays: %v", err)
	}
	a.kill()
}

// A node dies, and its folder is lost. Another node joins with its name. All pages are fetched; those not yet
// replicated possibly twice.
func TestANodeIsLostWithItsDisk(t *testing.T) { underEach(t, aNodeIsLostWithItsDisk) }

func aNodeIsLostWithItsDisk(t *testing.T, strategy string) {
	web := jobtest.Serve(t, synthweb.Clean(12, 40, 1200))
	c := newCluster(t, web)
	c.lease = shortLease
	c.strategy = strategy
	c.tune = func(j *job.Job) { j.Frontier.Delay = 30 * time.Millisecond }
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.members(3)
	c.midway(600)
	b.kill()
	c.dir = t.TempDir() // its data is lost
	b = c.start("b")
	c.goOn(b)
	c.ends(nil, a, b, d)
	score := web.Score()
	if score.Missing != 0 || score.Forbidden != 0 || score.MostInFlight.Value != 1 {
		t.Errorf("the servers saw:\n%s", score)
	}
	if score.Repeats > 100 {
		t.Errorf("%d pages were fetched again", score.Repeats)
	}
}

func TestANodeRestartsInItsFolder(t *testing.T) { underEach(t, aNodeRestartsInItsFolder) }

func aNodeRestartsInItsFolder(t *testing.T, strategy string) {
	const hosts = 40
	web := jobtest.Serve(t, synthweb.Clean(13, hosts, 1200))
	c := newCluster(t, web)
	c.strategy = strategy
	a, b := c.start("a"), c.start("b")
	c.members(2)
	c.midway(300)
	b.kill()
	b = c.start("b")
	c.goOn(b)
	c.ends(nil, a, b)
	jobtest.WantRepeats(t, web, hosts) // in flight at the kill, one to a host
	wantVerified(t, b.dir)
}

// A node that is away for too long restarts as another one, and its data is moved aside.
func TestANodeThatWasGivenUp(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(14, 40, 1200))
	c := newCluster(t, web)
	c.lease = shortLease
	c.tune = func(j *job.Job) { j.Frontier.Delay = 30 * time.Millisecond }
	a, b := c.start("a"), c.start("b")
	c.members(2)
	c.midway(300)
	b.kill()
	c.eventually("it is given up", func() bool {
		all, err := c.control.Cluster(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		return len(all.Nodes) == 1 && all.Settled
	})
	b = c.start("b")
	c.goOn(b)
	c.ends(nil, a, b)
	if score := web.Score(); score.Missing != 0 || score.MostInFlight.Value != 1 || score.Repeats > 100 {
		t.Errorf("the servers saw:\n%s", score)
	}
	if aside, err := filepath.Glob(filepath.Join(b.dir, "lost", "*", "pages.jsonl")); err != nil || len(aside) != 1 {
		t.Errorf("what it had lies in %v (%v)", aside, err)
	}
}

func TestANodeLeavesAndStops(t *testing.T) { underEach(t, aNodeLeavesAndStops) }

func aNodeLeavesAndStops(t *testing.T, strategy string) {
	web := jobtest.Serve(t, synthweb.Clean(15, 40, 1200))
	c := newCluster(t, web)
	c.strategy = strategy
	c.tune = func(j *job.Job) { j.Frontier.Delay = 30 * time.Millisecond }
	a, b := c.start("a"), c.start("b")
	c.members(2)
	c.midway(300)
	b.Leave()
	c.ends(node.ErrLeft, b)
	if err := c.control.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.ends(node.ErrStopped, a)
	a = c.start("a")
	if err := c.control.Start(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	c.goOn()
	c.ends(nil, a)
	jobtest.WantPerfect(t, web)
}

// A stopped crawl resumes when all nodes are back; none is declared dead, however late it returns.
func TestAStoppedCrawlGoesOn(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(17, 40, 1200))
	c := newCluster(t, web)
	c.lease = 15 * time.Second
	c.tune = func(j *job.Job) { j.Frontier.Delay = 30 * time.Millisecond }
	a, b := c.start("a"), c.start("b")
	c.members(2)
	c.midway(300)
	if err := c.control.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.ends(node.ErrStopped, a, b)
	a = c.start("a")
	time.Sleep(c.lease + 2*time.Second)
	b = c.start("b")
	if err := c.control.Start(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	c.goOn(b)
	c.ends(nil, a, b)
	jobtest.WantPerfect(t, web)
	for _, r := range []*running{a, b} {
		if aside, _ := filepath.Glob(filepath.Join(r.dir, "lost", "*")); len(aside) > 0 {
			t.Errorf("%s was given up: %v", r.Name, aside)
		}
	}
}

func TestNodesWaitForSettings(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(16, 5, 100))
	c := newCluster(t, web)
	opts := c.config("a")
	opts.ApplySettings = func(j *job.Job, settings []settings.Setting) error {
		if len(settings) != 1 || settings[0].Key != "depth" || settings[0].Values[0] != "0" {
			return fmt.Errorf("settings %v", settings)
		}
		j.Crawl.Depth = 0
		return nil
	}
	j := c.job("a")
	n, err := Open(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.control.Start(t.Context(), []settings.Setting{{Key: "depth", Values: []string{"0"}}},
		web.SeedURLs()); err != nil {
		t.Fatal(err)
	}
	if report, err := n.Run(t.Context()); err != nil || report.Pages != 1 {
		t.Errorf("%+v, %v: want the seed alone", report, err)
	}
}

func wantVerified(t *testing.T, dir string) {
	t.Helper()
	_, err := wire.Verify(t.Context(), dir, verify.Config{Temp: t.TempDir(),
		Fault: func(f verify.Fault) { t.Errorf("%s: %s", f.Check, &f) }})
	if err != nil {
		t.Fatal(err)
	}
}

// pagesIn returns the number of pages in a node's folder.
func pagesIn(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pages.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}
