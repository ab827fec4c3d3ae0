package meshnodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/meshnode/control"
	"kumo/internal/app/node"
	"kumo/internal/app/verify"
	"kumo/internal/app/wire"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A crew has a few nodes in one process, each with its own folder, which communicate over loopback.
type crew struct {
	t    *testing.T
	web  *synthweb.Server
	dir  string
	tune func(*job.Job) // may be nil
	also func(*Config)  // may be nil
	join []string       // addresses of the first node
}

func newCrew(t *testing.T, web *synthweb.Server) *crew {
	return &crew{t: t, web: web, dir: t.TempDir()}
}

func (c *crew) config(name string) Config {
	log := slog.New(slog.NewTextHandler(c.t.Output(), nil)).With("node", name)
	return Config{Name: name, Join: c.join, Backups: 3, Absent: 8 * time.Second, Check: 300 * time.Millisecond,
		Alone: 5 * time.Second,
		Open:  wire.OpenPart, Log: log,
		Connect: func(_ context.Context, dir string, reached, lost func(strategy.Node)) (Connection, error) {
			return p2p.Open(p2p.Config{Name: name, Crawl: "test", Dir: dir, Listen: []string{"/ip4/127.0.0.1/tcp/0"},
				Reached: reached, Lost: lost})
		}}
}

// A running node ends when its test does.
type running struct {
	*Node
	dir   string
	stop  context.CancelFunc
	ended chan error
}

// start starts a node in the folder with its name, and waits until it has its place.
func (c *crew) start(name string) *running {
	c.t.Helper()
	r := c.open(name)
	c.eventually(name+" knows its place", r.Member)
	return r
}

// open starts a node, which may wait for others.
func (c *crew) open(name string) *running {
	c.t.Helper()
	j := jobtest.For(c.web, filepath.Join(c.dir, name))
	j.Seeds, j.Memory = nil, 64<<20
	if c.tune != nil {
		c.tune(j)
	}
	cfg := c.config(name)
	if c.also != nil {
		c.also(&cfg)
	}
	n, err := Open(c.t.Context(), j, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.join == nil {
		c.join = n.Addrs()[:1]
	}
	ctx, stop := context.WithCancel(c.t.Context())
	r := &running{n, j.Dir, stop, make(chan error, 1)}
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

func (c *crew) eventually(what string, is func() bool) {
	c.t.Helper()
	for range 1200 {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatal("never: ", what)
}

func (c *crew) change(r *running, f func(*desired.Record) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	err := r.mesh.Load().Change(ctx, func(record *desired.Record, _ uint64) error { return f(record) })
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) add(r *running, seeds ...string) {
	c.t.Helper()
	if err := r.mesh.Load().AddSeeds(c.t.Context(), strings.Join(seeds, "\n")); err != nil {
		c.t.Fatal(err)
	}
}

// begin starts the crawl through a node.
func (c *crew) begin(r *running, settings map[string][]string, seeds ...string) {
	c.t.Helper()
	if len(seeds) > 0 {
		c.add(r, seeds...)
	}
	c.change(r, func(record *desired.Record) error {
		record.Seeds = uint64(r.mesh.Load().SeedChunks())
		return record.Start(settings, len(seeds) > 0)
	})
}

func (c *crew) set(r *running, to desired.State) {
	c.t.Helper()
	c.change(r, func(record *desired.Record) error { return record.Set(to) })
}

// ends waits until nodes have ended with the expected error.
func (c *crew) ends(want error, nodes ...*running) {
	c.t.Helper()
	late := time.After(5 * time.Minute) // long enough for a busy machine
	for _, r := range nodes {
		select {
		case err := <-r.ended:
			if !errors.Is(err, want) {
				c.t.Errorf("%s ended with %v, want %v", r.Name, err, want)
			}
		case <-late:
			tally, err := r.mesh.Load().Gather(c.t.Context())
			c.t.Logf("%d of %d nodes are idle, %v (%v)", tally.Idle, tally.Nodes, tally.Figures, err)
			for _, report := range tally.Reports {
				c.t.Logf("%s", report)
			}
			c.t.Fatalf("%s goes on and on; the servers saw:\n%s", r.Name, c.web.Score())
		}
	}
}

// wantAll checks that no page is missing, and few were fetched twice.
func (c *crew) wantAll(repeats int64) synthweb.Score {
	c.t.Helper()
	score := c.web.Score()
	if score.Missing != 0 || score.Forbidden != 0 || score.Repeats > repeats {
		c.t.Errorf("the servers saw:\n%s", score)
	}
	return score
}

// slowAfter slows the crawl down after a number of requests, so that it does not end before the test's next action.
func (c *crew) slowAfter(requests int64) { c.web.SetDelay(requests, 2*time.Second) }

// await waits for more requests than those.
func (c *crew) await(requests int64) {
	c.t.Helper()
	c.eventually(fmt.Sprint("more than ", requests, " requests"), func() bool { return c.web.Requests() > requests })
}

// goOn removes the slowdown.
func (c *crew) goOn() { c.web.SetDelay(0, 0) }

func slow(j *job.Job) { j.Frontier.Delay = 100 * time.Millisecond }

// A folder belongs to one node, and to one kind of crawl.
func TestAFolderIsOneNodes(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(14, 1, 3))
	c := newCrew(t, web)
	c.start("a").kill()
	for _, broken := range []struct {
		why   string
		spoil func(dir string) error
	}{
		{"whose key is missing", func(dir string) error { return os.Remove(filepath.Join(dir, "state", "mesh", "key")) }},
		{"another strategy", func(dir string) error {
			file := filepath.Join(dir, "state", "node.json")
			if err := os.Remove(file); err != nil {
				return err
			}
			_, err := node.OpenIdentity(vfs.OS, file, "a")
			return err
		}},
	} {
		dir := filepath.Join(c.dir, "a")
		if err := broken.spoil(dir); err != nil {
			t.Fatal(err)
		}
		j := jobtest.For(web, dir)
		n, err := Open(t.Context(), j, c.config("a"))
		if err == nil {
			t.Fatalf("it is opened: want %q", broken.why)
		}
		if n != nil || !strings.Contains(err.Error(), broken.why) {
			t.Errorf("%v: want %q", err, broken.why)
		}
	}
}

// Three nodes fetch all pages once, and their folders are consistent. A fourth one joins in between and remembers URLs.
func TestNodesFetchAllThereIs(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(11, 40, 1200))
	c := newCrew(t, web)
	c.tune = slow
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.slowAfter(300)
	c.begin(b, map[string][]string{}, web.SeedURLs()...)
	c.await(300)
	e := c.start("e")
	c.eventually("status tells of all four", func() bool {
		tally, err := a.mesh.Load().Gather(t.Context())
		return err == nil && tally.Nodes == 4 && len(tally.Reports) == 4 && tally.Figures[control.SumPages] > 0
	})
	c.goOn()
	c.ends(nil, a, b, d, e)
	if score := c.wantAll(30); score.MostInFlight.Value > 1 {
		t.Errorf("%d requests at once to one host", score.MostInFlight.Value)
	}
	for _, r := range []*running{a, b, d, e} {
		if pagesIn(t, r.dir) == 0 {
			t.Errorf("%s has fetched nothing", r.Name)
		}
		wantVerified(t, r.dir)
	}
}

func TestACrawlIsStoppedAndGoesOn(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(13, 40, 800))
	c := newCrew(t, web)
	c.tune = slow
	a, b := c.start("a"), c.start("b")
	c.slowAfter(200)
	c.begin(a, map[string][]string{}, web.SeedURLs()...)
	c.await(200)
	c.set(b, desired.Stopping)
	c.ends(node.ErrStopped, a, b)
	c.slowAfter(350)
	c.join = nil
	a, b = c.open("a"), c.open("b") // a waits for b, which it knows
	c.eventually("both know their places", func() bool { return a.Member() && b.Member() })
	c.begin(a, nil)
	c.await(350)
	b.kill()
	b = c.start("b")
	c.goOn()
	c.ends(nil, a, b)
	c.wantAll(50)
	wantVerified(t, b.dir)
}

// A node leaves. The last node cannot leave: it ends when asked to, and resumes later.
func TestNodesLeave(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(15, 40, 800))
	c := newCrew(t, web)
	c.tune = slow
	a, b := c.start("a"), c.start("b")
	c.slowAfter(200)
	c.begin(a, map[string][]string{}, web.SeedURLs()...)
	c.await(200)
	b.Leave()
	c.set(a, desired.Paused)
	c.ends(node.ErrLeft, b)
	a.Leave()
	c.ends(context.Canceled, a)
	c.join = nil
	a = c.start("a")
	c.set(a, desired.Running)
	c.goOn()
	c.ends(nil, a)
	c.wantAll(100)
}

func TestACrawlHasItsPages(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(16, 40, 2400))
	c := newCrew(t, web)
	c.tune = slow
	a, b := c.start("a"), c.start("b")
	c.begin(a, map[string][]string{desired.WhyLimit: {"200"}}, web.SeedURLs()...)
	c.ends(policy.ErrLimit, a, b)
	if pages := pagesIn(t, a.dir) + pagesIn(t, b.dir); pages < 200 || pages > 2000 {
		t.Errorf("%d pages, with a limit of 200", pages)
	}
}

// Seeds are added while the crawl is paused, and their pages are fetched, too.
func TestSeedsAreAddedWhileACrawlIsPaused(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(17, 40, 800))
	c := newCrew(t, web)
	c.tune = slow
	a, b := c.start("a"), c.start("b")
	seeds := web.SeedURLs()
	c.slowAfter(100)
	c.begin(a, map[string][]string{}, seeds[0])
	c.await(100)
	c.set(a, desired.Paused)
	var before int64
	c.eventually("nothing is fetched", func() bool {
		was := before
		before = web.Requests()
		time.Sleep(500 * time.Millisecond)
		return before == was
	})
	c.add(b, seeds...)
	c.set(b, desired.Running)
	c.goOn()
	c.ends(nil, a, b)
	c.wantAll(30)
}

// Nodes do not exit because of a record that they cannot apply. They wait until they are stopped.
func TestSettingsThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	c := newCrew(t, jobtest.Serve(t, synthweb.Clean(17, 2, 10)))
	refused := make(chan string, 8)
	c.also = func(cfg *Config) {
		cfg.ApplySettings = func(j *job.Job, all []settings.Setting) error {
			if order := settings.Map(all)[job.OrderKey]; len(order) > 0 {
				j.Order = order[0]
			}
			return nil
		}
		cfg.Log = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) {
			if strings.Contains(string(line), "level=ERROR") {
				refused <- string(line)
			}
		}), nil))
	}
	a := c.start("a")
	c.begin(a, map[string][]string{job.OrderKey: {job.PageRank}}, "http://h.test/")
	if line := <-refused; !strings.Contains(line, "order pagerank needs all links to a URL") {
		t.Error(line)
	}
	select {
	case err := <-a.ended:
		t.Fatal("the node has ended: ", err)
	default:
	}
	c.set(a, desired.Stopping)
	c.ends(node.ErrStopped, a)
	if len(refused) > 0 {
		t.Error("said again: ", <-refused)
	}
}

type writerFunc func(line []byte)

func (f writerFunc) Write(line []byte) (int, error) { f(line); return len(line), nil }

// A node dies, and its folder is lost. The others take over its work.
func TestANodeIsLostWithItsDisk(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(12, 40, 1200))
	c := newCrew(t, web)
	c.tune = slow
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.slowAfter(300)
	c.begin(a, map[string][]string{}, web.SeedURLs()...)
	c.await(300)
	b.kill()
	c.dir = t.TempDir() // its data is lost
	b = c.start("b")
	c.goOn()
	c.ends(nil, a, b, d)
	c.wantAll(200)
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
