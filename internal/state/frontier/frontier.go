package frontier

import (
	"bytes"
	"container/heap"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/vfs"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// ErrDry is what Next returns when nothing waits and nothing is under way.
var ErrDry = errors.New("the frontier is empty")

// Config sets how hosts are treated.
type Config struct {
	Hosts     int           // hosts worked on at once; 64
	PerHost   int           // connections to one host; 1
	Delay     time.Duration // from the end of an answer to the host's next request
	Session   int           // visits in a row that a host has before inactive ones, see host.go; 16, 1: none
	AddrDelay time.Duration // between requests to one server address that several hosts share
	MaxDelay  time.Duration // how much of a Crawl-delay is obeyed; 30s, negative: nothing
	RetryWait time.Duration // the first wait after a failure, doubled with each; 1s
	MaxWait   time.Duration // the longest wait after a failure or at a server's wish; DefaultMaxWait
	SlowAfter time.Duration // a host whose answer took longer is a suspect; 5s
	// Each host's URLs are cut into so many parts, and each of these is a host here: see [item.Slices]. All parts
	// together keep to PerHost, as far as each has one connection at least, and to the delays on average: a part waits
	// as many times as long as there are parts, since others may fetch those that are not here. 1
	Slices    int
	Ranker    Ranker                       // where URLs belong that wait; nil: where they belonged when they were pushed
	Overrides func(host string) HostConfig // what a host, in whichever slice, has of its own; nil: nothing
	// hosts whose time has come go by their first URLs: see ready.go; always so with a Ranker
	RankHosts bool
	Now       func() time.Time

	Dir    string // a folder of the frontier's own for what does not fit into memory, see Open; "": all stays in memory
	Disk   vfs.FS // where Dir is; vfs.OS
	Memory int64  // bytes to be used about, with Dir; 256 MiB
}

// A HostConfig is what a host has in place of the Config's. Zero values stand for that.
type HostConfig struct {
	HasDelay bool
	Delay    time.Duration // a longer Crawl-delay holds as ever
	PerHost  int
}

const defaultMaxDelay = 30 * time.Second

// DefaultMaxWait keeps a server that asks for years, or fails all day, from holding what waits there for longer.
const DefaultMaxWait = time.Hour

func (c Config) withDefaults() Config {
	def(&c.Hosts, 64)
	def(&c.PerHost, 1)
	def(&c.Session, 16)
	def(&c.MaxDelay, defaultMaxDelay)
	def(&c.RetryWait, time.Second)
	def(&c.MaxWait, DefaultMaxWait)
	def(&c.SlowAfter, 5*time.Second)
	def(&c.Memory, 256<<20)
	def(&c.Disk, vfs.OS)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Slices = max(c.Slices, 1)
	c.PerHost = max(c.PerHost/c.Slices, 1)
	c.Delay, c.MaxDelay = times(c.Delay, c.Slices), times(c.MaxDelay, c.Slices)
	return c
}

// times is a delay n times over, as far as a record of a host can have it.
func times(delay time.Duration, n int) time.Duration {
	const most = (hasOwnDelay - 1) * time.Millisecond
	if n > 1 && delay > most/time.Duration(n) {
		return max(delay, most)
	}
	return delay * time.Duration(n)
}

func def[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// A Frontier holds the URLs that wait. Its methods may be called by many goroutines at once.
type Frontier struct {
	cfg      Config
	slices   *item.Slices
	lead     chan struct{} // held by the one caller of Next that waits for a time to come; the others wait for it
	wake     chan struct{} // tells the leader to look again
	io       chan struct{} // held by who writes to the disk, and reads for all
	sweeping chan struct{} // held by who reads what was removed

	mu        sync.Mutex // guards all below; nobody waits for the disk with it held
	hosts     map[string]*host
	heaps     [numClasses]hostHeap  // by their times
	ready     [numClasses]readyHeap // instead, those whose time has come, where hosts go by rank
	rises     riseHeap              // the same
	addrs     map[netip.Addr]*address
	crowded   *address      // whose last turn is the latest of all
	crowdedAt netip.Addr    // where that is
	addrDelay time.Duration // Config.AddrDelay times sharers
	sharers   int           // frontiers that may have hosts at the same addresses
	swept     int           // addresses that the last sweep left
	seq       uint64
	known     int // hosts ever met
	waiting   int // items
	inflight  int // visits
	active    int // hosts with visits
	doubtful  int // of these, suspects
	refused   int // items
	backing   int // hosts
	gone      goneKeys
	going     int                  // the sum of it
	tours     int                  // of HostIterators, under way
	spends    uint64               // how often something in gone ended while there were any
	spent     map[goneKey][]uint64 // of what, and when by that count
	detached  []*detached          // removed, and not yet read
	orphans   []Item               // found there: fetches of robots.txt
	stays     bool                 // Next waits when there is nothing to come
	disk      *virtualizer         // nil: all stays in memory
	err       error                // of the disk, not yet overcome
	resumed   time.Time            // when it was opened with what an earlier process left; zero if nothing was
	mostLift  int8                 // that any item ever had
	enc       writer
	dec       reader

	asked  []ids.URL // used again, as the next
	lifted []lifted
	moves  []newPlace
	places []rank.Place
}

// New returns an empty frontier that stays in memory. Open makes one that needs not.
func New(cfg Config) *Frontier {
	cfg = cfg.withDefaults()
	return &Frontier{
		cfg:       cfg,
		slices:    item.NewSlices(cfg.Slices),
		addrDelay: cfg.AddrDelay,
		lead:      make(chan struct{}, 1),
		wake:      make(chan struct{}, 1),
		io:        make(chan struct{}, 1),
		sweeping:  make(chan struct{}, 1),
		hosts:     make(map[string]*host),
		addrs:     make(map[netip.Addr]*address),
		gone:      make(goneKeys),
	}
}

// Slices are those that hosts are cut into.
func (f *Frontier) Slices() *item.Slices { return f.slices }

// A Visit is one URL of a host, handed to one worker, who gives it back with Done or Postpone.
type Visit struct {
	Item
	Host string // in whose queue it waited: a slice, where hosts are cut into several

	Started time.Time // when it was handed out

	host    *host
	item    *Item     // as it waited
	due     time.Time // the host's next time when it was handed out
	set     time.Time // its next time as it was set then
	life    int       // the host's then
	suspect bool
}

// Push adds items of one host, but for those that are Refused. It cannot fail, and does not wait for the disk: where
// that fails, or does not keep up, they stay in memory. Next says so, and Room waits.
func (f *Frontier) Push(key string, items ...Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	given := len(items)
	if items = f.fitting(key, items); len(items) < given && len(items) == 0 {
		return
	}
	if id := f.coldID(key); id != 0 {
		f.pushCold(id, key, items)
	} else {
		f.pushHot(f.host(key), items)
	}
	f.shrink()
}

func (f *Frontier) pushHot(h *host, items []Item) {
	for i := range items {
		f.enqueue(h, items[i])
	}
	f.place(h)
}

// host returns a host in memory, that may be changed.
func (f *Frontier) host(key string) *host {
	h := f.hosts[key]
	if h == nil && f.disk != nil {
		h = f.loadCold(key)
	}
	if h == nil {
		f.known++
		h = f.newHost(strings.Clone(key))
		h.next, h.away = f.earliest(h), true
	}
	f.touch(h)
	return h
}

// earliest is when a host may be asked that is not known: now, unless an earlier process may just have done so.
func (f *Frontier) earliest(h *host) time.Time {
	now := f.cfg.Now()
	if f.resumed.IsZero() || now.Sub(f.resumed) > f.ownDelay(h) {
		return now
	}
	return f.resumed.Add(f.ownDelay(h))
}

// override sets what a host has of its own.
func (f *Frontier) override(h *host) {
	if f.cfg.Overrides == nil {
		return
	}
	h.own = f.cfg.Overrides(item.HostOfSlice(h.key))
	h.own.Delay = times(h.own.Delay, f.cfg.Slices)
	if h.own.PerHost > 0 {
		h.own.PerHost = max(h.own.PerHost/f.cfg.Slices, 1)
	}
}

// ownDelay is a host's delay but for what it asks for itself.
func (f *Frontier) ownDelay(h *host) time.Duration {
	if h.own.HasDelay {
		return h.own.Delay
	}
	return f.cfg.Delay
}

// perHost is how many connections a host may have.
func (f *Frontier) perHost(h *host) int {
	if h.own.PerHost > 0 {
		return h.own.PerHost
	}
	return f.cfg.PerHost
}

func (f *Frontier) newHost(key string) *host {
	f.seq++
	h := f.disk.blank()
	h.key, h.in, h.seq = key, idle, f.seq
	f.override(h)
	f.beginRanks(h)
	f.hosts[key] = h
	f.disk.admit(h)
	return h
}

func (f *Frontier) enqueue(h *host, it Item) {
	h.deepest = f.rank(&it, h.deepest)
	f.add(h, &it)
}

// add adds an item that has its rank.
func (f *Frontier) add(h *host, it *Item) {
	h.away = h.away && it.Robots != "" // which is another host's business
	f.waiting++
	f.keep(h, f.entry(h.key, it))
}

// rank gives an item its age and the rank of what comes late, but leaves one that came before in its place, unless it
// comes late. It takes and returns the deepest rank that ever waited at the host. What came late stays known as such:
// it is not moved.
func (f *Frontier) rank(it *Item, deepest int32) int32 {
	f.mostLift = max(f.mostLift, it.Lift)
	if it.Seq == 0 || it.Late || it.Robots != "" {
		f.seq++
		it.Rank, it.Seq = max(it.Rank, 0), f.seq
		if !it.Deferred {
			deepest = max(deepest, it.Rank)
		}
	}
	switch {
	case it.Robots != "":
		it.Rank, it.Late = robotsRank, false
	case it.Deferred:
		it.Rank, it.Late = deferredRank-int32(it.Vain), false
	case it.Late:
		it.Rank = deepest
	}
	return deepest
}

// entry encodes an item.
func (f *Frontier) entry(host string, it *Item) entry {
	f.enc.b = f.enc.b[:0]
	f.enc.item(host, it)
	return entry{f.keyOf(it), bytes.Clone(f.enc.b)}
}

func (f *Frontier) keyOf(it *Item) key { return key{it.Rank, f.urlOf(it), it.Seq} }

// keep puts an entry into a host's queue in memory.
func (f *Frontier) keep(h *host, e entry) {
	h.waiting.push(e)
	f.disk.charge(h, e.cost())
	if f.disk != nil && h.bytes > f.disk.window {
		f.spill(h, len(h.waiting)/2)
	}
}

// place puts a host where it belongs after a change, and wakes the leader if that may matter to it.
func (f *Frontier) place(h *host) {
	if h.in != idle {
		f.unheap(h)
	}
	h.in = f.classOf(h)
	if h.in == idle && h.inflight == 0 {
		f.setBacking(h, false)
	}
	f.disk.settle(h)
	if h.in == idle {
		return
	}
	heap.Push(&f.heaps[h.in], h)
	f.signal()
}

func (f *Frontier) setBacking(h *host, on bool) {
	if h.backing == on {
		return
	}
	if h.backing = on; on {
		f.backing++
	} else {
		f.backing--
	}
}
