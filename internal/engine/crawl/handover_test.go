package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/cookies"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/engine/visit"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/transfer"
)

// A trade is two nodes that hand over hosts to each other repeatedly, while they find and fetch URLs and crash at any
// moment.
type trade struct {
	t       *testing.T
	dice    *rand.Rand
	deadly  bool
	slices  *item.Slices // hosts are cut into these, and owner and facts have slices then
	calm    bool         // no other work during transfers
	nodes   [2]*trader
	owner   map[string]int // -1: being transferred
	urls    map[string]*fact
	epoch   uint64
	deaths  int
	moved   int
	strays  int
	crossed int // how often a URL of a host came to a node that had just handed it over
}

// A fact is the expected state of a URL whose found entry is in a journal.
type fact struct {
	host        string
	done, maybe bool // maybe: it may be done or not
}

// A trader is a node with several lives.
type trader struct {
	*trade
	id    int
	dir   string
	below vfs.FS // nil: the machine's file system
	disk  *vfstest.Faulty
	e     *Engine
	close func()
	keeps bool // its whole journal
}

// kept is a journal that drops nothing, like a log.
type kept struct {
	*file.Journal
	n *trader
}

// takeWhole admits a chunk, and waits until it is durable.
func takeWhole(ctx context.Context, e *Engine, t member.Transfer, seq uint64, last bool, data []byte) error {
	durable, err := e.Transfers().Import(ctx, t, seq, last, data)
	if err != nil {
		return err
	}
	return durable(ctx)
}

func (k kept) Drop(before journal.Position) error {
	if k.n.keeps {
		return nil
	}
	return k.Journal.Drop(before)
}

func newTrade(t *testing.T, seed uint64, deadly bool) *trade {
	t.Helper()
	return newTradeOf(t, seed, deadly, 1)
}

// newTradeOf is newTrade with hosts cut into slices.
func newTradeOf(t *testing.T, seed uint64, deadly bool, slices int) *trade {
	t.Helper()
	x := &trade{t: t, dice: rand.New(rand.NewPCG(seed, 0)), deadly: deadly, owner: map[string]int{},
		urls: map[string]*fact{}, slices: item.NewSlices(slices)}
	for i := range x.nodes {
		x.nodes[i] = &trader{trade: x, id: i, dir: t.TempDir()}
	}
	for i := range 12 / slices {
		for slice := range x.slices.All(fmt.Sprintf("h%d.test", i)) {
			x.owner[slice] = len(x.owner) % 2
		}
	}
	for _, n := range x.nodes {
		n.open()
	}
	t.Cleanup(func() {
		for _, n := range x.nodes {
			n.close()
		}
	})
	return x
}

func (n *trader) Ours(host string) bool { return n.owner[host] == n.id }
func (n *trader) May(host string) bool  { return n.Ours(host) }
func (n *trader) name() strategy.Node   { return strategy.Node(fmt.Sprintf("n%d~1", n.id)) }

// open starts a life, several if it crashes.
func (n *trader) open() {
	for {
		n.disk = vfstest.NewFaulty(cmp.Or(n.below, vfs.OS))
		if n.deadly {
			n.disk.DieAfter(int64(n.dice.IntN(200_000)))
		}
		err := n.begin()
		if err == nil {
			return
		}
		n.die(err)
	}
}

// die ends a life whose disk has failed; other errors fail the test.
func (n *trader) die(err error) {
	n.t.Helper()
	if !n.disk.Dead() {
		n.t.Fatalf("node %d: %v", n.id, err)
	}
	n.deaths++
	if n.dice.IntN(2) == 0 {
		if err := n.disk.PowerLoss(n.dice); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *trader) begin() (err error) {
	var closers []func() error
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(n.t.Context())
	n.close = func() {
		stop()
		running.Wait()
		for _, c := range closers {
			_ = c() // the disk may have failed
		}
	}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	j, state, err := n.recall(&closers)
	if err != nil {
		return err
	}
	n.e = New(Config{Depth: -1, Commit: time.Millisecond}, Parts{Journal: j, Robots: robots.NewCache(robots.Config{}),
		Scope: weburl.NewScope(weburl.ScopeAny), Router: n, Cookies: cookies.NewJar(cookies.Config{})}, state)
	if n.e.resumed.broken != nil {
		return n.e.resumed.broken
	}
	running.Go(func() { _ = n.e.ledger.Run(ctx); n.e.ledger.StopWaits() })
	for _, t := range n.e.Transfers().Partial() {
		if err := n.e.Transfers().Drop(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// recall reads the state on disk.
func (n *trader) recall(closers *[]func() error) (journal.Journal, *recovery.State, error) {
	j, err := file.Open(n.disk, filepath.Join(n.dir, "journal"), file.Config{Segment: 1 << 13})
	if err != nil {
		return nil, nil, err
	}
	*closers = append(*closers, j.Close)
	db, err := seen.Open(n.disk, filepath.Join(n.dir, "seen"), seen.Config{Memory: 1 << 18})
	if err != nil {
		return nil, nil, err
	}
	*closers = append(*closers, db.Close)
	memory := []int64{4 << 10, 64 << 10, 1 << 20}[n.dice.IntN(3)]
	front, note, err := frontier.Open(frontier.Config{Disk: n.disk, Dir: filepath.Join(n.dir, "frontier"), Memory: memory,
		Slices: n.slices.Count()})
	if err != nil {
		return nil, nil, err
	}
	*closers = append(*closers, front.Close)
	shelf := statefile.OpenAbandoned(n.disk, n.dir)
	*closers = append(*closers, shelf.Close)
	state, err := recovery.Recover(j, recovery.Views{Seen: db, Digests: seen.NewRecent(), Frontier: front,
		Abandoned: shelf, Note: note})
	return kept{j, n}, state, err
}

// try repeats do until it succeeds, over several lives if necessary. It reports whether a life ended.
func (n *trader) try(do func(ctx context.Context, e *Engine) error) (died bool) {
	n.t.Helper()
	for {
		err := do(n.t.Context(), n.e)
		if err == nil && !n.disk.Dead() {
			return died
		}
		n.rise(err)
		died = true
	}
}

// rise starts the next life.
func (n *trader) rise(err error) {
	n.t.Helper()
	if err == nil {
		err = vfstest.ErrDead
	}
	n.close()
	n.die(err)
	n.open()
}

// some returns one of this node's hosts, "" if it has none.
func (n *trader) some() string {
	var all []string
	for host, owner := range n.owner {
		if owner == n.id {
			all = append(all, host)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return all[n.dice.IntN(len(all))]
}

// work does something that a node does between and during handovers.
func (n *trader) work() {
	switch n.dice.IntN(12) {
	case 0, 1, 2, 3:
		n.find()
	case 4, 5, 6, 7, 8:
		n.visit()
	case 9:
		n.try(func(ctx context.Context, e *Engine) error { return e.Checkpoints.checkpoint(ctx) })
	case 10:
		n.try(func(ctx context.Context, e *Engine) error { return e.Checkpoints.resolvePending(ctx) })
	case 11:
		if host := n.some(); host != "" {
			n.try(func(ctx context.Context, e *Engine) error {
				if err := e.abandons.abandonOrigin("http://"+item.HostOfSlice(host), visit.Abandonment{Failure: page.Refused, Why: "refused"}); err != nil {
					return err
				}
				return e.ledger.FlushDurable(ctx)
			})
		}
	}
}

// urlIn returns a URL of a host, or of a slice, by trying numbers.
func (x *trade) urlIn(slice, path string, number func() int) string {
	for {
		url := fmt.Sprintf("http://%s/%s%d", item.HostOfSlice(slice), path, number())
		if x.slices.Of(url) == slice {
			return url
		}
	}
}

// next returns a number that no other URL has.
func (x *trade) next() int {
	x.strays++
	return x.strays
}

// find finds links to a host, some of them known.
func (n *trader) find() {
	host := n.some()
	if host == "" {
		return
	}
	var urls []string
	for range 1 + n.dice.IntN(30) {
		urls = append(urls, n.urlIn(host, "", func() int { return n.dice.IntN(300) }))
	}
	n.try(func(ctx context.Context, e *Engine) error {
		var b batch
		for _, url := range urls {
			u, err := weburl.Parse(url)
			if err != nil {
				return err
			}
			e.abandons.admission.classify(&b, u, item.Item{URL: url, From: "http://from.test/", Seed: "http://seed.test/",
				Depth: int32(len(url) % 3), Kind: page.Anchor}, "", "")
		}
		if err := e.abandons.commitBatch(&b, nil); err != nil {
			return err
		}
		return e.ledger.FlushDurable(ctx)
	})
	for _, url := range urls {
		if n.urls[url] == nil {
			n.urls[url] = &fact{host: host}
		}
	}
}

// visit fetches the next URL of the frontier.
func (n *trader) visit() {
	ctx, stop := context.WithTimeout(n.t.Context(), 2*time.Millisecond)
	defer stop()
	v, err := n.e.frontier.Next(ctx)
	switch {
	case errors.Is(err, frontier.ErrDrained), errors.Is(err, context.DeadlineExceeded):
		return
	case err != nil:
		n.rise(err)
		return
	case !n.Ours(v.Host):
		if n.dice.IntN(2) == 0 {
			defer n.work() // during the visit
		}
		n.e.frontier.Postpone(v, time.Millisecond)
		return
	}
	f := n.urls[v.URL]
	if f == nil || f.done && !f.maybe {
		n.t.Fatalf("node %d fetches %s, which is %+v", n.id, v.URL, f)
	}
	f.done, f.maybe = true, true
	e := n.e
	d := &entry.Done{URL: v.URL, Visit: stats.Visit{Host: v.Host, Status: 200}, Meta: seen.Meta{Fetched: time.Now(),
		Status: 200}}
	b := batch{visitURL: v.URL, records: []*page.Record{{URL: v.URL}}, done: []*entry.Done{d}}
	if err = e.abandons.commitBatch(&b, nil); err == nil {
		e.frontier.Done(v, frontier.Result{Outcome: frontier.Answered})
		e.abandons.ends.clear(v.URL)
		err = e.ledger.FlushDurable(n.t.Context())
		if err == nil && !n.disk.Dead() {
			f.maybe = false
			return
		}
	}
	n.rise(err)
}

// handOver moves some of one node's hosts to the other. Some handovers fail half-way, and are repeated in the next
// epoch or not.
func (x *trade) handOver() {
	from := x.nodes[x.dice.IntN(2)]
	to := x.nodes[1-from.id]
	x.epoch++
	gone := map[string]bool{}
	for host, owner := range x.owner {
		if owner == from.id && x.dice.IntN(3) == 0 {
			gone[host] = true
		}
	}
	strays := x.dice.IntN(3) == 0
	if strays {
		x.stray(from, to, gone)
	}
	for host := range gone {
		x.owner[host] = -1
	}
	is := func(host string) bool { return gone[host] }
	for attempt := uint64(1); ; attempt++ {
		t := member.Transfer{From: from.name(), To: to.name(), Epoch: x.epoch, Attempt: attempt}
		if x.transfer(from, to, t, is) {
			break
		}
		to.try(func(ctx context.Context, e *Engine) error { return e.Transfers().Drop(ctx, t) })
		if !strays && x.dice.IntN(4) == 0 { // the transfer is given up
			for host := range gone {
				x.owner[host] = from.id
			}
			return
		}
	}
	for host := range gone {
		x.owner[host] = to.id
	}
	x.moved += len(gone)
	crossed := x.cross(from, to, gone)
	for range x.dice.IntN(3) {
		if len(crossed) == 0 {
			to.work()
		} else { // otherwise URLs that it has abandoned would be pending in both places when the host comes back
			to.find()
			to.visit()
		}
	}
	x.forget(from, gone)
	if len(crossed) > 0 {
		x.handOverAgain(from, to, crossed)
	}
}

// forget removes hosts from a node that the other one has received, and settles the epoch.
func (x *trade) forget(n *trader, hosts map[string]bool) {
	epoch := x.epoch
	n.try(func(ctx context.Context, e *Engine) error {
		return e.Transfers().ForgetHosts(ctx, func(host string, came uint64) bool { return hosts[host] && came < epoch })
	})
	for _, n := range x.nodes {
		n.try(func(ctx context.Context, e *Engine) error { return e.Transfers().FinalizeEpoch(ctx, epoch) })
		if len(n.e.Transfers().Arrived()) > 0 {
			x.t.Fatalf("%v is remembered", n.e.Transfers().Arrived())
		}
	}
}

// cross sends a node URLs of hosts that it has just handed over, from a third node, in the same epoch.
func (x *trade) cross(from, to *trader, gone map[string]bool) (crossed map[string]bool) {
	var urls []string
	crossed = map[string]bool{}
	for _, host := range slices.Sorted(maps.Keys(gone)) {
		if _, lost := to.e.abandons.origins.Abandoned("http://" + item.HostOfSlice(host)); lost || x.dice.IntN(3) > 0 {
			continue // the node's URLs there are on its abandoned queue
		}
		crossed[host] = true
		for range 1 + x.dice.IntN(3) {
			urls = append(urls, x.urlIn(host, "crossed/", x.next))
		}
	}
	for attempt := uint64(1); len(urls) > 0; attempt++ {
		t := member.Transfer{From: "n2~1", To: from.name(), Epoch: x.epoch, Attempt: attempt}
		err := takeWhole(x.t.Context(), from.e, t, 0, true, chunkOf(x.t, x.slices, urls...))
		if err == nil && !from.disk.Dead() {
			break
		}
		if from.rise(err); slices.Contains(from.e.Transfers().Arrived(), t) {
			break
		}
	}
	for _, url := range urls {
		x.urls[url] = &fact{host: x.slices.Of(url)}
	}
	x.crossed += len(crossed)
	return crossed
}

// handOverAgain hands over hosts in the next epoch; URLs of these hosts have arrived since they moved.
func (x *trade) handOverAgain(from, to *trader, hosts map[string]bool) {
	x.epoch++
	for host := range hosts {
		x.owner[host] = -1
	}
	for attempt := uint64(1); ; attempt++ {
		t := member.Transfer{From: from.name(), To: to.name(), Epoch: x.epoch, Attempt: attempt}
		if x.transfer(from, to, t, func(host string) bool { return hosts[host] }) {
			break
		}
		to.try(func(ctx context.Context, e *Engine) error { return e.Transfers().Drop(ctx, t) })
	}
	for host := range hosts {
		x.owner[host] = to.id
	}
	x.forget(from, hosts)
}

// stray makes the receiver of some hosts already hold some of them, with its own URLs and others that are pending on
// both nodes.
func (x *trade) stray(from, to *trader, gone map[string]bool) {
	for _, host := range slices.Sorted(maps.Keys(gone)) {
		if _, lost := to.e.abandons.origins.Abandoned("http://" + item.HostOfSlice(host)); lost {
			continue // the node's URLs there are on its abandoned queue
		}
		for i := range x.dice.IntN(5) {
			url := x.urlIn(host, "stray/", x.next)
			x.urls[url] = &fact{host: host}
			for _, n := range []*trader{to, from}[:1+i%2] {
				x.owner[host] = n.id
				if x.dice.IntN(2) == 0 { // seen decides later whether the URL is new
					n.try(func(ctx context.Context, e *Engine) error {
						e.known.db.UpdateMeta(url, seen.Meta{Kind: 1})
						return e.Checkpoints.resolvePending(ctx)
					})
				}
				n.try(func(context.Context, *Engine) error { return n.link(url) })
			}
			x.owner[host] = from.id
		}
	}
}

// transfer transfers hosts, and reports whether it is complete.
func (x *trade) transfer(from, to *trader, t member.Transfer, is func(string) bool) bool {
	from.try(func(ctx context.Context, e *Engine) error { return e.Drain(ctx, nil) })
	export, err := from.e.Transfers().Export(func(host string) strategy.Node {
		if is(host) {
			return to.name()
		}
		return ""
	})
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = export.Close() }()
	export.Sizes = transfer.Sizes{Block: 1 << x.dice.IntN(14), Chunk: 1 << x.dice.IntN(14)}
	sender, receiver := from.e, to.e
	for seq := uint64(0); ; seq++ {
		owner, data, err := export.Next()
		if err != nil && from.e == sender {
			from.rise(err)
		}
		if from.e != sender || to.e != receiver {
			return false
		}
		err = takeWhole(x.t.Context(), to.e, t, seq, owner == "", data)
		if err != nil || to.disk.Dead() {
			to.rise(err)
			return slices.Contains(to.e.Transfers().Arrived(), t)
		}
		if owner == "" {
			return true
		}
		if x.calm {
			continue
		}
		if x.dice.IntN(20) == 0 {
			return false // the epoch ends
		}
		for range x.dice.IntN(4) {
			x.nodes[x.dice.IntN(2)].work()
		}
		if from.e != sender || to.e != receiver {
			return false
		}
	}
}

// check compares both nodes with the facts.
func (x *trade) check() {
	x.t.Helper()
	waiting := [2]map[string]int{}
	for i, n := range x.nodes {
		n.try(func(ctx context.Context, e *Engine) error { return e.Checkpoints.resolvePending(ctx) })
		n.try(func(ctx context.Context, e *Engine) (err error) {
			waiting[i], err = waitingAt(e.frontier, e.abandons.abandoned)
			return err
		})
		for url, times := range waiting[i] {
			if f := x.urls[url]; f == nil || x.owner[f.host] != i || times != 1 || f.done && !f.maybe {
				x.t.Errorf("%s waits at node %d, %d times; it is %+v, of node %d", url, i, times, f, x.owner[x.slices.Of(url)])
			}
		}
	}
	for url, f := range x.urls {
		n := x.nodes[x.owner[f.host]]
		var entry seen.Entry
		n.try(func(_ context.Context, e *Engine) (err error) {
			entry, _, err = e.known.db.Get(url)
			return err
		})
		waits := waiting[n.id][url] > 0
		switch {
		case entry.State != seen.Known, !waits && !entry.Answered(), f.done && !f.maybe && (waits || !entry.Answered()),
			!f.done && !waits:
			x.t.Errorf("%s at node %d: %+v; it waits %v, and is known as %+v", url, n.id, f, waits, entry)
		}
		f.done, f.maybe = !waits, false
	}
	if x.t.Failed() {
		x.t.FailNow()
	}
}

// waitingAt counts pending URLs in the frontier and on the abandoned queue.
func waitingAt(front *frontier.Frontier, abandoned *statefile.AbandonedQueue) (map[string]int, error) {
	all := map[string]int{}
	tour := front.Iterate(func(string) bool { return true })
	defer tour.Close()
	for {
		s, err := tour.Next()
		if err != nil {
			return nil, err
		}
		if s == nil {
			break
		}
		for {
			it, err := s.Next()
			if err != nil {
				return nil, err
			}
			if it == nil {
				break
			}
			all[it.URL]++
		}
	}
	return all, abandoned.EachCurrent(func(it item.Item) error {
		all[it.URL]++
		return nil
	})
}

func TestHostsAreTraded(t *testing.T) {
	for name, deadly := range map[string]bool{"": false, "deadly": true} {
		t.Run(name, func(t *testing.T) { tradeHosts(t, deadly, 1) })
		t.Run(name+", in slices", func(t *testing.T) { tradeHosts(t, deadly, 3) })
	}
}

func tradeHosts(t *testing.T, deadly bool, slices int) {
	for range testmain.Rounds(1, 3) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		x := newTradeOf(t, seed, deadly, slices)
		for range 12 {
			for range x.dice.IntN(30) {
				x.nodes[x.dice.IntN(2)].work()
			}
			x.handOver()
			x.check()
		}
		t.Logf("%d URLs; %d times a host has moved, %d times one came meanwhile, %d times a node has died", len(x.urls),
			x.moved,
			x.crossed, x.deaths)
		if x.moved == 0 || deadly == (x.deaths == 0) {
			t.Error("nothing happened")
		}
	}
}

// A robots.txt that was requested for a host which was handed over is not fetched any more, and no other host waits for
// it. If the host comes back, the robots.txt is requested again.
func TestNobodyWaitsForRulesThatHaveGone(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	e, w := n.e, n.e.runner.workers.acquire()
	x.owner = map[string]int{"stays.test": 0, "goes.test": 0}
	wants := func(host, at string) {
		e.frontier.Park(host, "http://"+host)
		if _, first := e.abandons.rules.Request("http://" + host); !first {
			t.Fatalf("the rules of %s are known, or on their way", host)
		}
		e.frontier.Push(host, item.Item{URL: "http://" + host + "/", Kind: page.Anchor})
		e.frontier.Push(at, item.Item{URL: "http://" + at + visit.RobotsPath, Robots: "http://" + host})
	}
	wants("stays.test", "goes.test") // its robots.txt redirects there
	wants("goes.test", "stays.test")
	x.owner["goes.test"] = 1
	if err := e.Transfers().ForgetHosts(t.Context(),
		func(host string, _ uint64) bool { return host == "goes.test" }); err != nil {
		t.Fatal(err)
	}
	next := func() *frontier.Visit {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		v, err := e.frontier.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.politenessHost = e.Inspector.hosts.politenessHost(v)
		return v
	}
	v := next()
	if v.Robots != "http://goes.test" || w.isOurs(v) {
		t.Fatalf("%+v is this node's", v.Item)
	}
	v = next()
	if v.URL != "http://stays.test/" || !w.isOurs(v) {
		t.Fatalf("%+v comes", v.Item)
	}
	e.frontier.Done(v, frontier.Result{})
	if dry, _ := e.frontier.IsDrained(); !dry {
		t.Error("something waits")
	}
	for _, host := range []string{"stays.test", "goes.test"} {
		if _, first := e.abandons.rules.Request("http://" + host); !first {
			t.Errorf("the rules of %s are not asked for anew", host)
		}
	}
}

// If a robots.txt redirects to another node's host, its fetch is in a queue of that host. This does not count as
// holding the host: it is not transferred, and a transfer that is undone takes nothing away from the host's owner,
// whether or not the host was here before.
func TestWhereRulesAreFetchedIsNotHeld(t *testing.T) {
	for _, once := range []bool{false, true} {
		x := newTrade(t, 1, false)
		n := x.nodes[0]
		x.owner = map[string]int{"goes.test": 0, "theirs.test": 0}
		if err := n.link("http://goes.test/"); err != nil {
			t.Fatal(err)
		}
		if once {
			if err := n.link("http://theirs.test/"); err != nil {
				t.Fatal(err)
			}
			if err := n.e.Transfers().ForgetHosts(t.Context(),
				func(host string, _ uint64) bool { return host == "theirs.test" }); err != nil {
				t.Fatal(err)
			}
		}
		x.owner["theirs.test"] = 1
		n.e.frontier.Push("theirs.test", item.Item{URL: "http://theirs.test/robots.txt", Robots: "http://goes.test"})
		export, err := n.e.Transfers().Export(func(string) strategy.Node { return "n1~1" })
		if err != nil {
			t.Fatal(err)
		}
		_, data, err := export.Next()
		if err = errors.Join(err, export.Close()); err != nil {
			t.Fatal(err)
		}
		u, err := transfer.NewChunkReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := u.Read(data)
		if err != nil || len(p.Pending) != 1 || p.Pending[0].Host != "goes.test" || len(p.Known) != 1 {
			t.Errorf("once here: %v; %+v goes, %v", once, p, err)
		}
		comes := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3}
		if err := errors.Join(takeWhole(t.Context(), n.e, comes, 0, false, waitingChunk(t, "http://theirs.test/")),
			n.e.Transfers().Drop(t.Context(), comes)); err != nil {
			t.Fatal(err)
		}
		if waits, err := waitingAt(n.e.frontier, n.e.abandons.abandoned); err != nil || len(waits) != 1 || !n.e.Transfers().IsAway("theirs.test") {
			t.Errorf("once here: %v; %v wait after a transfer was dropped, %v", once, waits, err)
		}
	}
}

// again ends a life, and starts the next one.
func (n *trader) again() {
	n.close()
	n.open()
}

// Removed URLs stay removed after a crash, in the frontier and on the abandoned queue, wherever the last checkpoint
// was; and a received transfer can be dropped after one.
func TestWhatIsForgottenStaysForgotten(t *testing.T) {
	for _, points := range []string{"", "before", "after", "before, after", "before, again, after"} {
		x := newTrade(t, 1, false)
		n := x.nodes[0]
		point := func(name string) {
			if !slices.Contains(strings.Split(points, ", "), name) {
				return
			}
			if name == "again" {
				n.again()
			} else if err := n.e.Checkpoints.checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		x.owner = map[string]int{"stays.test": 0, "goes.test": 0, "comes.test": 1}
		for host := range x.owner {
			x.owner[host] = 0
			for i := range 100 {
				if i == 50 {
					// the first fifty are on the abandoned queue
					if err := n.e.abandons.abandonOrigin("http://"+host, visit.Abandonment{Failure: page.Refused, Why: "refused"}); err != nil {
						t.Fatal(err)
					}
					n.e.abandons.origins.Origins = visit.NewOrigins(originLimits, time.Now)
				}
				if err := n.link(fmt.Sprintf("http://%s/%d", host, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		n.e.known.db.InsertKnown([]seen.URL{{URL: "http://known.test/", State: seen.Known}}) // no URL is pending there
		point("before")
		point("again")
		if err := n.e.Transfers().ForgetHosts(t.Context(),
			func(host string, _ uint64) bool { return host != "stays.test" }); err != nil {
			t.Fatal(err)
		}
		x.owner["goes.test"], x.owner["comes.test"] = 1, 1
		if known, _, err := n.e.known.db.Get("http://known.test/"); err != nil ||
			n.e.Transfers().IsAway("known.test") != (known.State == seen.Known) {
			t.Errorf("checkpoints %q: known.test is away %v, %v", points, n.e.Transfers().IsAway("known.test"), err)
		}
		to := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
		pack := chunkWriterAt(t)
		pack.BeginPending("comes.test", transfer.HostTiming{})
		pack.Item(&item.Item{URL: "http://comes.test/7"})
		pack.BeginKnown("http://comes.test", transfer.HostTiming{})
		pack.Entry("/7", &seen.Entry{URL: "http://comes.test/7", State: seen.Known, First: pack.Now})
		if err := takeWhole(t.Context(), n.e, to, 0, false, pack.Chunk()); err != nil {
			t.Fatal(err)
		}
		point("after")
		check := func(when string, hosts ...string) {
			t.Helper()
			waits, err := waitingAt(n.e.frontier, n.e.abandons.abandoned)
			if err != nil {
				t.Fatal(err)
			}
			byHost := map[string]int{}
			for url, times := range waits {
				byHost[item.HostOf(url)] += times
			}
			want := map[string]int{"stays.test": 100}
			for _, host := range hosts {
				want[host] = 1
			}
			if !maps.Equal(byHost, want) {
				t.Errorf("checkpoints %q: %s there wait %v", points, when, byHost)
			}
			if n.e.Transfers().IsAway("stays.test") || !n.e.Transfers().IsAway("goes.test") ||
				n.e.Transfers().IsAway("comes.test") != (len(hosts) == 0) {
				t.Errorf("checkpoints %q: %s the wrong hosts are away", points, when)
			}
		}
		check("before the crash", "comes.test")
		n.again() // this drops the incomplete transfer
		check("after it")
		n.again()
		check("after another")
	}
}

// link finds a link.
func (n *trader) link(url string) error {
	u, err := weburl.Parse(url)
	if err != nil {
		return err
	}
	var b batch
	n.e.abandons.admission.classify(&b, u, item.Item{URL: url, Kind: page.Anchor}, "", "")
	if err := n.e.abandons.commitBatch(&b, nil); err != nil {
		return err
	}
	return n.e.ledger.FlushDurable(n.t.Context())
}

// A host comes back after another node has crawled it: this node's old data does not hide pending URLs, is not new, and
// does not raise counts.
func TestWhatAnEarlierOwnerKnewIsStale(t *testing.T) {
	x := newTrade(t, 1, false)
	x.calm = true
	a, b := x.nodes[0], x.nodes[1]
	x.owner = map[string]int{"h.test": 0}
	for _, url := range []string{"http://h.test/old", "http://h.test/waits"} {
		if err := a.link(url); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to *trader) {
		x.epoch++
		x.owner["h.test"] = -1
		if !x.transfer(from, to, member.Transfer{From: from.name(), To: to.name(), Epoch: x.epoch, Attempt: 1},
			func(string) bool { return true }) {
			t.Fatal("it did not come whole")
		}
		x.owner["h.test"] = to.id
		if err := from.e.Transfers().ForgetHosts(t.Context(), func(string, uint64) bool { return true }); err != nil {
			t.Fatal(err)
		}
		export, err := from.e.Transfers().Export(func(string) strategy.Node { return "elsewhere" })
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = export.Close() }()
		if to, data, err := export.Next(); to != "" || err != nil {
			t.Errorf("what is not held is exported: %d bytes, %v", len(data), err)
		}
	}
	move(a, b)
	b.e.frontier.TakeMatching("h.test", func(it *item.Item) bool { return it.URL == "http://h.test/old" })
	b.e.known.db.UpdateMeta("http://h.test/old", seen.Meta{Fetched: time.Unix(1e9, 0), Status: 200})
	if err := b.link("http://h.test/new"); err != nil {
		t.Fatal(err)
	}
	move(b, a)
	for _, url := range []string{"http://h.test/old", "http://h.test/waits", "http://h.test/new"} {
		if err := errors.Join(a.link(url), a.e.Checkpoints.resolvePending(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	waits, err := waitingAt(a.e.frontier, a.e.abandons.abandoned)
	if want := map[string]int{"http://h.test/waits": 1, "http://h.test/new": 1}; err != nil || !maps.Equal(waits, want) {
		t.Errorf("%v wait, %v", waits, err)
	}
	if e, _, err := a.e.known.db.Get("http://h.test/old"); err != nil || e.Fetched != time.Unix(1e9, 0).UTC() {
		t.Errorf("%+v, %v", e, err)
	}
}

// The delays of a host move with it, and survive a crash.
func TestTimesOfHostsComeWithThem(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	pack := chunkWriterAt(t)
	pack.BeginPending("waits.test", transfer.HostTiming{RequestedDelay: 7 * time.Second, Wait: 10 * time.Minute})
	pack.Item(&item.Item{URL: "http://waits.test/"})
	pack.BeginKnown("http://known.test", transfer.HostTiming{RequestedDelay: 7 * time.Second, Wait: 10 * time.Minute})
	pack.Entry("/", &seen.Entry{URL: "http://known.test/", State: seen.Known, First: pack.Now})
	to := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	if err := takeWhole(t.Context(), n.e, to, 0, false, pack.Chunk()); err != nil {
		t.Fatal(err)
	}
	if i, _ := n.e.frontier.Host("waits.test"); !i.Parked {
		t.Error("it is not parked while the rest is on its way")
	}
	if err := takeWhole(t.Context(), n.e, to, 1, true, []byte("no chunk")); !errors.Is(err, transfer.ErrChunk) {
		t.Errorf("no chunk: %v", err)
	}
	if err := takeWhole(t.Context(), n.e, to, 2, true, nil); !errors.Is(err, transfer.ErrOrder) {
		t.Errorf("a chunk too early: %v", err)
	}
	for range 2 { // the second is ignored
		if err := takeWhole(t.Context(), n.e, to, 1, true, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, host := range []string{"waits.test", "known.test"} {
			i, _ := n.e.frontier.Host(host)
			if i.RequestedDelay != 7*time.Second || time.Until(i.Next) < 9*time.Minute || i.Parked || i.Away {
				t.Errorf("%+v", i)
			}
		}
		if all := n.e.Transfers().Arrived(); !slices.Equal(all, []member.Transfer{to}) {
			t.Errorf("%v came whole", all)
		}
		n.again()
	}
}

// A host's pages fetched elsewhere count; those fetched here before do not count twice.
func TestPagesOfHostsComeWithThem(t *testing.T) {
	x := newTrade(t, 1, false)
	e := x.nodes[0].e
	e.cfg.PagesPerHost = 5
	e.limits.quota = policy.NewQuota(policy.Limits{Pages: e.cfg.Pages, PerHost: e.cfg.PagesPerHost}, 0)
	e.Dispatches.transfer.Quota = e.limits.quota
	e.limits.quota.AddEarlier("h.test", 2)
	e.limits.quota.SetComplete()
	pack := chunkWriterAt(t)
	for _, origin := range []string{"http://h.test", "https://h.test"} {
		pack.BeginKnown(origin, transfer.HostTiming{})
		for i := range 3 {
			v := seen.Entry{URL: fmt.Sprint(origin, "/", i), State: seen.Known, First: pack.Now}
			if i < 2 {
				v.Meta = seen.Meta{Fetched: pack.Now, Status: 200}
			}
			pack.Entry(fmt.Sprint("/", i), &v)
		}
	}
	if err := takeWhole(t.Context(), e, member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3}, 0, true,
		pack.Chunk()); err != nil {
		t.Fatal(err)
	}
	if n, _ := e.limits.quota.HostPages("h.test"); n != 4 {
		t.Errorf("%d pages", n)
	}
	pack.BeginKnown("http://h.test", transfer.HostTiming{}) // the host is held here now: new URLs are added
	for _, i := range []int{0, 9} {
		pack.Entry(fmt.Sprint("/", i), &seen.Entry{URL: fmt.Sprint("http://h.test/", i), State: seen.Known, First: pack.Now,
			Meta: seen.Meta{Fetched: pack.Now, Status: 200}})
	}
	if err := takeWhole(t.Context(), e, member.Transfer{From: "n2~1", To: "n0~1", Epoch: 3}, 0, true,
		pack.Chunk()); err != nil {
		t.Fatal(err)
	}
	if n, _ := e.limits.quota.HostPages("h.test"); n != 5 {
		t.Errorf("%d pages, with one more", n)
	}
}

// A node dies for good. Its recovered state has all that it held, and nothing of incomplete transfers.
func TestAnEstateIsFolded(t *testing.T) {
	for i := range 8 {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		x := newTradeOf(t, seed, false, 1+i%4)
		late, gone := x.slices.Name("h0.test", 0), x.slices.Name("h2.test", 0)
		dead, heir := x.nodes[0], x.nodes[1]
		for range x.dice.IntN(80) {
			dead.work()
		}
		pack := chunkWriterAt(t)
		pack.BeginPending(x.slices.Of("http://partial.test/"), transfer.HostTiming{})
		pack.Item(&item.Item{URL: "http://partial.test/"})
		partial := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3}
		if err := takeWhole(t.Context(), dead.e, partial, 0, false, pack.Chunk()); err != nil {
			t.Fatal(err)
		}
		url := x.urlIn(late, "late/", x.next)
		dead.waver(url)
		x.urls[url] = &fact{host: late}
		dead.close()
		var closers []func() error
		_, state, err := dead.recall(&closers)
		if err != nil {
			t.Fatal(err)
		}
		if all := state.Partial(); !slices.Equal(all, []member.Transfer{partial}) {
			t.Errorf("%v are partial", all)
		}
		estate, err := state.BuildHolding(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// another node has received it completely
		estate.Forget(func(host string, _ uint64) bool { return host == gone })
		export, err := estate.Export(func(host string) strategy.Node { return heir.name() })
		if err != nil {
			t.Fatal(err)
		}
		from := member.Transfer{From: dead.name(), To: heir.name(), Epoch: 4}
		for seq, last := uint64(0), false; !last; seq++ {
			owner, data, err := export.Next()
			if err != nil {
				t.Fatal(err)
			}
			last = owner == ""
			if err := takeWhole(t.Context(), heir.e, from, seq, last, data); err != nil {
				t.Fatal(err)
			}
		}
		err = export.Close()
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		if err != nil {
			t.Fatal(err)
		}
		waits, err := waitingAt(heir.e.frontier, heir.e.abandons.abandoned)
		if err != nil {
			t.Fatal(err)
		}
		for url, f := range x.urls {
			known, _, err := heir.e.known.db.Get(url)
			if f.host == gone {
				if waits[url] > 0 || known.State != seen.Unknown {
					t.Errorf("%s, which has gone, was handed over", url)
				}
			} else if err != nil || known.State != seen.Known || f.done != known.Answered() || f.done == (waits[url] == 1) {
				t.Errorf("%s: %+v, it waits %d times, and is known as %+v; %v", url, f, waits[url], known, err)
			}
			delete(waits, url)
		}
		if len(waits) > 0 {
			t.Errorf("%v wait, too", waits)
		}
		dead.close = func() {}
	}
}

// A dead node's journal is recovered without loading it into memory.
func TestAnEstateIsFoldedInLittleMemory(t *testing.T) {
	for i := range 6 {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		x := newTradeOf(t, seed, false, 1+i%2*2)
		late := x.slices.Name("h0.test", 0)
		dead := x.nodes[0]
		dead.keeps = true
		for i := range 150 {
			dead.work()
			if i%50 == 10 {
				url := x.urlIn(late, "late/", x.next)
				dead.waver(url)
				x.urls[url] = &fact{host: late}
			}
		}
		dead.close()
		dead.close = func() {}
		j, err := file.Open(vfs.OS, filepath.Join(dead.dir, "journal"), file.Config{Segment: 1 << 13})
		if err != nil {
			t.Fatal(err)
		}
		db, err := seen.Open(vfs.OS, t.TempDir(), seen.Config{Memory: 1})
		if err != nil {
			t.Fatal(err)
		}
		front, _, err := frontier.Open(frontier.Config{Disk: vfs.OS, Dir: t.TempDir(), Memory: 4 << 10,
			Slices: x.slices.Count()})
		if err != nil {
			t.Fatal(err)
		}
		state, err := recovery.RecoverFailed(t.Context(), j, recovery.Views{Seen: db, Digests: seen.NewRecent(),
			Frontier: front},
			10*2*item.Weight, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(state.Queue()) - len(state.Guessed); n > 100 || state.Views.Frontier.Counts().URLs == 0 {
			t.Errorf("%d URLs wait in memory", n)
		}
		estate, err := state.BuildHolding(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waits, err := waitingAt(estate.Frontier, nil)
		if err != nil {
			t.Fatal(err)
		}
		for url, f := range x.urls {
			known, _, err := db.Get(url)
			if err != nil || known.State != seen.Known || f.done != known.Answered() || f.done == (waits[url] == 1) {
				t.Errorf("%s: %+v, it waits %d times, and is known as %+v; %v", url, f, waits[url], known, err)
			}
			delete(waits, url)
		}
		if len(waits) > 0 {
			t.Errorf("%v wait, too", waits)
		}
		if err := errors.Join(front.Close(), db.Close(), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// waver finds a link to a URL that seen cannot decide at once.
func (n *trader) waver(url string) {
	n.t.Helper()
	n.e.known.db.UpdateMeta(url, seen.Meta{Kind: 1})
	if err := errors.Join(n.e.Checkpoints.resolvePending(n.t.Context()), n.link(url)); err != nil {
		n.t.Fatal(err)
	}
	if !n.e.known.pendingDedup() {
		n.t.Fatalf("%s is decided at once", url)
	}
}

// A draining node waits for visits to hosts that are other nodes' now, and for no others, and decides undecided URLs.
func TestDrainWaitsForWhatIsUnderWay(t *testing.T) {
	x := newTrade(t, 1, false)
	x.owner = map[string]int{"goes.test": 0, "stays.test": 0, "other.test": 0}
	n := x.nodes[0]
	n.waver("http://goes.test/late")
	visits := map[string]*worker{}
	for host := range x.owner {
		visits[host] = n.e.runner.workers.acquire()
		n.e.runner.workers.begin(visits[host], host, host)
	}
	n.e.runner.workers.put(visits["other.test"])
	x.owner["goes.test"], x.owner["other.test"] = 1, 1
	early, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := n.e.Drain(early, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a visit is under way: %v", err)
	}
	other := func(host string) bool { return host == "other.test" }
	if err := n.e.Drain(t.Context(), other); err != nil {
		t.Errorf("only a visit to another host is under way: %v", err)
	}
	busy := n.e.Busy([]string{"goes.test", "other.test"})
	if over := busy["goes.test"]; over == nil || len(busy) != 1 {
		t.Errorf("busy: %v", busy)
	}
	n.e.runner.workers.put(visits["goes.test"])
	if err := n.e.Drain(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if waits, err := waitingAt(n.e.frontier, n.e.abandons.abandoned); err != nil || waits["http://goes.test/late"] != 1 {
		t.Errorf("%v wait, %v", waits, err)
	}
}
