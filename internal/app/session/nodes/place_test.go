package nodes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/archive/place/file"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/archive/upload"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
)

// A sharedPlace is a folder below which each incarnation of a node has a storage location that sometimes fails, or a
// bucket.
type sharedPlace struct {
	t    *testing.T
	dir  string
	s3   string // a server's endpoint; "": a folder
	seed uint64
	odds int // failures per thousand operations
	// Bytes by which a checkpoint must be able to truncate the log; 0: checkpoints are not uploaded.
	least int64
	away  atomic.Bool // recovering nodes cannot read it

	taken atomic.Int64 // checkpoints that were copied
	mu    sync.Mutex
	cuts  map[string]upload.TrimStats // by folder

	opened atomic.Uint64 // number of opens, which selects the kind of failures
	forgot sync.Map      // incarnations that deleted their state before the upload was complete
	lives  sync.Map      // storage locations of uploaders, by incarnation
}

func newSharedPlace(t *testing.T, seed uint64) *sharedPlace {
	p := &sharedPlace{t: t, dir: t.TempDir(), seed: seed, odds: 10}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the place fails by seed %d", seed)
		}
	})
	return p
}

// open opens the storage location of an incarnation. Some of its operations fail; each part of a file counts as one.
func (p *sharedPlace) open(life string) (place.Place, error) {
	at, err := p.sound(life)
	if err != nil || p.s3 != "" {
		return at, err
	}
	return placetest.NewFaulty(at, rand.New(rand.NewPCG(p.seed, p.opened.Add(1))), p.odds), nil
}

// sound opens a storage location without failures.
func (p *sharedPlace) sound(life string) (place.Place, error) {
	if p.s3 != "" {
		return bucket.Open(p.t.Context(), buckettest.URL(p.s3, "crawl/"+life), bucket.Config{})
	}
	return file.Open(filepath.Join(p.dir, life), vfs.OS)
}

// holdBack blocks further uploads of an incarnation.
func (p *sharedPlace) holdBack(life string) {
	p.t.Helper()
	at, is := p.lives.Load(life)
	if !is {
		p.t.Fatalf("%s has no place", life)
	}
	at.(*placetest.Faulty).SetDown(placetest.ErrFault)
}

// give makes a node upload its files.
func (p *sharedPlace) give(c *Config, dies *atomic.Bool) {
	c.PlaceWait = 20 * time.Second
	c.ReadManifest = func(ctx context.Context, url string) (*away.Manifest, error) {
		if p.away.Load() {
			return nil, errors.New("no route to the place")
		}
		at, err := p.open(path.Base(url))
		if err != nil {
			return nil, err
		}
		m, err := away.ReadManifest(ctx, at)
		if away.IsMissing(err) {
			return away.NewManifest(), nil
		}
		return m, err
	}
	c.CopyState = func(ctx context.Context, url string, disk vfs.FS, dir string) (*away.State, error) {
		if p.away.Load() {
			return nil, errors.New("no route to the place")
		}
		at, err := p.open(path.Base(url))
		if err != nil {
			return nil, err
		}
		s, err := away.ReadState(ctx, at)
		if s == nil || err != nil {
			return nil, err
		}
		p.taken.Add(1)
		return s, s.Copy(ctx, at, disk, dir)
	}
	c.DropState = func(ctx context.Context, url string) error {
		at, err := p.open(path.Base(url))
		if err != nil {
			return err
		}
		return at.Remove(ctx, away.StateDir)
	}
	c.NewUploader = func(ctx context.Context, j *job.Job, life string) (session.Uploader, error) {
		at, err := p.open(life)
		if err != nil {
			return nil, err
		}
		p.lives.Store(life, at)
		b := &bearer{dies: dies, least: p.least, cfg: upload.Config{Place: at, Dir: j.Dir, Disk: vfs.OS, Crawl: j.Name,
			Grow: []string{"pages.jsonl", "crawl.log"}}}
		b.forgot = func() { p.forgot.Store(life, true) }
		b.told = func(c upload.TrimStats) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.cuts == nil {
				p.cuts = map[string]upload.TrimStats{}
			}
			p.cuts[j.Dir] = c
		}
		j.Upload = &job.Upload{Closed: func() { b.up.FileClosed() }, Durable: func(marks []store.Mark) { b.up.Durable(marks) },
			Status:  func() stats.Uploads { return b.up.Status() },
			Overlay: func(disk vfs.FS) (vfs.FS, error) { return b.over(ctx, disk) }}
		return b, nil
	}
}

// A bearer is an uploader whose process may die.
type bearer struct {
	cfg upload.Config
	up  *upload.Uploader

	least  int64
	told   func(upload.TrimStats)
	states *upload.States
	kept   sync.WaitGroup
	keep   context.CancelFunc
	forgot func() // called when the state is deleted before the upload is complete

	dies *atomic.Bool
	stop context.CancelFunc
	ran  chan error
}

func (b *bearer) over(ctx context.Context, disk vfs.FS) (_ vfs.FS, err error) {
	for range 20 { // the storage location sometimes fails
		if b.up, err = upload.Open(ctx, b.cfg); err == nil {
			return away.NewOverlay(context.WithoutCancel(ctx), disk, b.cfg.Dir, b.cfg.Place, b.up.Manifest()), nil
		}
	}
	return nil, err
}

func (b *bearer) Start(ctx context.Context) {
	ctx, b.stop = context.WithCancel(ctx)
	b.ran = make(chan error, 1)
	if b.states != nil {
		keeping, end := context.WithCancel(ctx)
		b.keep = end
		b.kept.Go(func() { b.states.Run(keeping) })
	}
	go func() { b.ran <- b.up.Run(ctx) }()
}

// Cut implements [session.StateUploader].
func (b *bearer) Cut(log journal.Shipped, warn func(error),
	sent func([]store.Mark) bool) func(at, relies journal.Position, marks []store.Mark) {
	if b.least == 0 {
		return nil
	}
	b.states = b.up.States(upload.StatesConfig{Log: log, MinGain: b.least, Warn: warn, OnTrim: b.told, Sent: sent})
	return b.states.Checkpoint
}

func (b *bearer) RemoveStates(ctx context.Context) error {
	if b.states == nil {
		return nil
	}
	b.keep()
	b.kept.Wait()
	if b.stop != nil {
		b.forgot()
	}
	return b.states.RemoveAll(ctx)
}

func (b *bearer) Finish(context.Context) error {
	if b.dies.Load() {
		b.Abort()
		return nil
	}
	b.up.End(time.Minute)
	err := <-b.ran
	b.stop()
	b.kept.Wait()
	b.stop = nil
	return err
}

func (b *bearer) Abort() {
	b.stop()
	b.stop = nil
	<-b.ran
	b.kept.Wait()
}

func (b *bearer) URL() string { return b.cfg.Place.URL() }

func (b *bearer) Close() error {
	if b.stop != nil {
		b.Abort()
	}
	if b.up != nil && b.ran == nil {
		return b.up.Release(context.Background())
	}
	return nil
}

// recorded returns the URLs with uploaded records, according to manifests and indexes, by incarnation. Uploaded bytes
// may be corrupted: an unreadable manifest has no records until it is written again.
func (p *sharedPlace) recorded() map[string][]string {
	p.t.Helper()
	all := map[string][]string{}
	p.lives.Range(func(key, _ any) bool {
		life := key.(string)
		at, err := p.sound(life)
		if err != nil {
			p.t.Fatal(err)
		}
		m, err := away.ReadManifest(p.t.Context(), at)
		if err != nil {
			p.t.Logf("the manifest of %s: %v", life, err)
			return true
		}
		for _, e := range m.All() {
			if stem, is := strings.CutSuffix(e.Name, ".cdxj"); is {
				if _, whole := m.Get(stem + ".warc.gz"); whole {
					all[life] = append(all[life], urlsOf(p.t, at, e.Name)...)
				}
			}
		}
		return true
	})
	return all
}

// read returns an incarnation's storage location and manifest; nil before it has one.
func (p *sharedPlace) read(life string) (place.Place, *away.Manifest) {
	p.t.Helper()
	at, err := p.sound(life)
	if err != nil {
		p.t.Fatal(err)
	}
	m, err := away.ReadManifest(p.t.Context(), at)
	if err != nil && !away.IsMissing(err) {
		p.t.Fatal(err)
	}
	return at, m
}

// listed returns the URLs in an incarnation's uploaded pages.jsonl.
func (p *sharedPlace) listed(life string) map[string]bool {
	p.t.Helper()
	at, m := p.read(life)
	dir := p.t.TempDir()
	in, err := away.NewRemote(p.t.Context(), vfs.OS, dir, at, m).Open(filepath.Join(dir, "pages.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer in.Close()
	urls := map[string]bool{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line, err := jsonl.ParsePage(lines.Bytes())
		if err != nil {
			p.t.Fatal(err)
		}
		urls[line.URL] = true
	}
	return urls
}

// urlsOf returns the pages in an index.
func urlsOf(t *testing.T, at place.Place, index string) (urls []string) {
	t.Helper()
	text, err := place.ReadFile(t.Context(), at, index)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var line struct{ URL string }
		if err := json.Unmarshal(lines.Bytes()[strings.IndexByte(lines.Text(), '{'):], &line); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(line.URL, "/robots.txt") {
			urls = append(urls, line.URL)
		}
	}
	return urls
}

// A node dies with its disk. Its uploaded pages are kept, and the others are fetched again, even those of hosts that
// have moved to other nodes since. With one of the strategies its journal is truncated to the part after the uploaded
// checkpoint.
func TestALostDiskCostsNoRecord(t *testing.T) {
	testmain.Slow(t)
	underEach(t, func(t *testing.T, strategy string) {
		p := newSharedPlace(t, rand.Uint64())
		aLostDiskCostsNoRecord(t, p, strategy, map[string]int64{"hub": -1}[strategy])
	})
}

// The same with an S3 server, which verifies digests, and with checkpoints.
func TestALostDiskCostsNoRecordInABucket(t *testing.T) {
	testmain.Slow(t)
	p := newSharedPlace(t, rand.Uint64())
	p.s3 = buckettest.Fake(t)
	aLostDiskCostsNoRecord(t, p, "hub", -1)
}

// aLostDiskCostsNoRecord crawls enough pages that some are left when the required files are finally uploaded.
func aLostDiskCostsNoRecord(t *testing.T, p *sharedPlace, strategy string, least int64) {
	web := jobtest.Serve(t, synthweb.Clean(22, 40, 2400))
	c := newCluster(t, web)
	c.strategy = strategy
	c.tune = func(j *job.Job) {
		j.Frontier.Delay, j.WARCSize = 30*time.Millisecond, 60_000
	}
	if p.least = least; least != 0 {
		tune := c.tune
		c.tune = func(j *job.Job) { tune(j); j.Crawl.Checkpoint = 20_000 }
	}
	var never, dies atomic.Bool
	start := func(name string, dies *atomic.Bool) *running {
		return c.startWith(name, func(cfg *Config) { p.give(cfg, dies) })
	}
	a, b, d := start("a", &never), start("b", &dies), start("d", &never)
	c.members(3)
	c.midway(500)
	e := start("e", &never) // gets hosts of b, with their known URLs
	c.members(4)
	c.further(700)
	dead := b.life()
	c.eventually("records of "+dead+" are in its place", func() bool { return len(p.recorded()[dead]) > 0 })
	cut := func() upload.TrimStats { p.mu.Lock(); defer p.mu.Unlock(); return p.cuts[b.dir] }
	if least != 0 {
		c.eventually("the journal of b is cut short", func() bool { return cut().Log > 0 })
	}
	if p.s3 == "" {
		p.holdBack(dead)
	}
	before := c.pages(b)
	c.eventually("it fetches more, and has some that are not there", func() bool {
		return c.pages(b) >= before+10 && c.pages(b) >= int64(len(p.recorded()[dead]))+4
	})
	dies.Store(true)
	b.kill()
	t.Logf("of b's journal %+v", cut())
	c.giveUp(dead)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	c.members(3)
	c.goOn(a, d, e)
	c.ends(nil, a, d, e)
	all, err := c.control.Cluster(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	score := web.Score()
	if score.Missing != 0 || score.Forbidden != 0 || score.MostInFlight.Value != 1 {
		t.Errorf("the servers saw:\n%s", score)
	}
	lives := p.recorded()
	union, ofDead := map[string]bool{}, 0
	for life, urls := range lives {
		if life == dead {
			ofDead += len(urls)
		}
		for _, url := range urls {
			union[url] = true
		}
	}
	t.Logf("%d records of the dead node are in its place, %d pages were fetched again; the servers saw %d twice", ofDead,
		all.Gone.Again, score.Repeats)
	if len(union) != score.Truth {
		t.Errorf("the places of %v have %d of %d pages", slices.Sorted(maps.Keys(lives)), len(union), score.Truth)
	}
	if ofDead == 0 || all.Gone.Again == 0 {
		t.Errorf("%d records of the dead node are there, and %d pages are fetched again: want some of both", ofDead,
			all.Gone.Again)
	}
	if p.taken.Load() == 0 && least != 0 {
		t.Error("nobody has gone on from a checkpoint")
	}
	at, _ := p.read(dead)
	if left, err := at.List(t.Context(), away.StateDir); len(left) > 0 || err != nil {
		t.Errorf("of the dead node's state there stays %v (%v)", left, err)
	}
	listed := p.listed(dead)
	for _, url := range lives[dead] {
		if !listed[url] {
			t.Errorf("the place has a record of %s and no line", url)
		}
	}
	if score.Repeats > all.Gone.Again+100 {
		t.Errorf("%d pages were fetched again, and %d had to be", score.Repeats, all.Gone.Again)
	}
}

// An unreadable storage location delays a dead node's hosts only for the configured time. Then all its pages are
// fetched again.
func TestAPlaceThatCannotBeReadIsNotWaitedForForEver(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(23, 20, 300))
	c := newCluster(t, web)
	c.tune = func(j *job.Job) {
		j.Frontier.Delay, j.WARCSize, j.Formats = 30*time.Millisecond, 60_000, []string{job.WARC}
	}
	p := newSharedPlace(t, rand.Uint64())
	var never, dies atomic.Bool
	start := func(name string, dies *atomic.Bool) *running {
		return c.startWith(name, func(cfg *Config) { p.give(cfg, dies); cfg.PlaceWait = time.Second })
	}
	a, b := start("a", &never), start("b", &dies)
	c.members(2)
	c.midway(150)
	dead, fetched := b.life(), c.pages(b)
	dies.Store(true)
	p.away.Store(true)
	b.kill()
	c.giveUp(dead)
	c.members(1)
	c.goOn(a)
	c.ends(nil, a)
	all, err := c.control.Cluster(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if all.Gone.Again < fetched {
		t.Errorf("%d pages are fetched again of %d", all.Gone.Again, fetched)
	}
	if score := web.Score(); score.Missing != 0 {
		t.Errorf("the servers saw:\n%s", score)
	}
}

// A leaving node has uploaded all its files, including lists. The files of an incarnation declared dead are uploaded
// later.
func TestWhatANodeHasIsInItsPlaceWhenItLeaves(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(24, 20, 300))
	c := newCluster(t, web)
	c.tune = func(j *job.Job) {
		j.Frontier.Delay, j.WARCSize, j.Crawl.Checkpoint = 30*time.Millisecond, 60_000, 20_000
	}
	p := newSharedPlace(t, rand.Uint64())
	p.odds, p.least = 0, -1
	var never, dies atomic.Bool
	start := func(name string, dies *atomic.Bool) *running {
		return c.startWith(name, func(cfg *Config) { p.give(cfg, dies) })
	}
	a, b := start("a", &never), start("b", &dies)
	c.members(2)
	c.midway(100)
	first := b.life()
	c.eventually("it has fetched something", func() bool { return c.pages(b) > 0 })
	dies.Store(true)
	b.kill()
	c.giveUp(first)
	c.members(1)
	dies.Store(false)
	b = start("b", &dies)
	c.members(2)
	c.further(200)
	second := b.life()
	c.eventually("it has fetched something again", func() bool { return c.pages(b) > 0 })
	isThere := func(life string) {
		c.eventually(life+" has its list and its records in the place", func() bool {
			_, err := os.Stat(filepath.Join(p.dir, life, "pages.jsonl"))
			return err == nil && len(p.recorded()[life]) > 0
		})
	}
	isThere(first)
	b.Leave()
	c.ends(node.ErrLeft, b)
	if b.life() == second { // on a very busy machine it was declared dead
		isThere(second)
		if _, is := p.forgot.Load(second); !is {
			t.Error("its state stays in the place until all else is there")
		}
		if left, _ := filepath.Glob(filepath.Join(p.dir, second, away.StateDir, "*")); len(left) > 0 {
			t.Errorf("of its state there stays %q", left)
		}
	}
	c.goOn(a)
	c.ends(nil, a)
	if score := web.Score(); score.Missing != 0 {
		t.Errorf("the servers saw:\n%s", score)
	}
}

// life returns the identity of the node in the folder.
func (r *running) life() string {
	id, err := IdentityOf(r.dir)
	if err != nil {
		panic(err)
	}
	return id
}

// pages returns the number of pages of a node, which may be between two incarnations.
func (c *cluster) pages(r *running) (n int64) {
	c.t.Helper()
	c.eventually(r.Name+" takes part", func() bool {
		s := r.Session()
		if s == nil || s.Stats == nil {
			return false
		}
		n = s.Stats.Pages()
		return true
	})
	return n
}

// giveUp revokes the lease of a killed node, as the others would when it expires. So leases need not be short, and live
// nodes do not lose theirs on a busy machine.
func (c *cluster) giveUp(life string) {
	c.t.Helper()
	b, err := c.hub.Join("control~2")
	if err != nil {
		c.t.Fatal(err)
	}
	defer b.Close()
	key := quorum.LeasePrefix + life
	c.eventually("the lease of "+life+" is revoked", func() bool {
		e, err := b.Get(c.t.Context(), key)
		if err != nil {
			return false
		}
		lease, err := quorum.ParseLease(e.Value)
		if err != nil {
			c.t.Fatal(err)
		}
		lease.Revoked = true
		_, err = b.Put(c.t.Context(), key, lease.Encode(), e.Revision)
		return err == nil
	})
}

// A rejected node uploads nothing.
func TestANodeThatIsRefusedBringsNothing(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(25, 8, 100))
	c := newCluster(t, web)
	p := newSharedPlace(t, rand.Uint64())
	p.odds = 0
	var never atomic.Bool
	a := c.startWith("a", func(cfg *Config) { p.give(cfg, &never) })
	c.members(1)
	c.midway(20)
	other := c.startWith("other", func(cfg *Config) { cfg.Name = "a"; p.give(cfg, &never) })
	if err := <-other.ended; err == nil || !strings.Contains(err.Error(), "give this one another name") {
		t.Errorf("it ends with %v", err)
	}
	there, err := filepath.Glob(filepath.Join(p.dir, "*", "*"))
	own := filepath.Join(p.dir, a.life()) + string(filepath.Separator)
	there = slices.DeleteFunc(there, func(name string) bool { return strings.HasPrefix(name, own) })
	if err != nil || len(there) > 0 {
		t.Errorf("%v is there (%v)", there, err)
	}
	c.goOn(a)
	c.ends(nil, a)
}
