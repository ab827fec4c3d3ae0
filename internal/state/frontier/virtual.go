package frontier

import "time"

// virtual is what a host has for the sake of its queue's part on disk.
type virtual struct {
	id     uint32 // of its record, 0 if it has none yet
	bytes  int64  // of memory, about
	era    int    // of checkpoints, that it was made or saved in
	life   int    // how often it was removed
	flying []*Item
	data   []byte // what of the queue came from a bucket
	move   *move  // whose queue this is, if it is no host's in memory
	held   int    // by who would have it stay in memory
	unread bool   // what goes first is to be read

	ahead        bool  // read before its time and not yet handed out
	aheadAs      class // sound or suspect
	older, newer *host // in the order in which hosts leave memory
}

const (
	hostCost  = 600 // bytes in memory, about
	ranksCost = 250 // where hosts go by rank: of hostRanks, and some moves
	maxAhead  = 1000 * time.Millisecond
	minStock  = 1024 // hosts read ahead
	stockCost = 4 << 10
)

// A virtualizer keeps what does not fit into memory: cold hosts, each of which is a record, the fronts of their queues,
// which are in buckets by time, and the rests of long queues, which are in blocks. The names are BUbiNG's: there the
// workbench holds the hosts in memory, and the virtualizer the rest of their queues.
type virtualizer struct {
	table     table
	calendars [2]calendar // of cold hosts that are sound, and of suspects
	buckets   map[uint32]*bucket
	segments  *segments

	lastBucket  uint32    // that was made
	bucketSize  int64     // bytes from which a bucket takes no more hosts
	line        []*bucket // with an end in memory, in the order in which they are written
	room        room      // of these ends
	bufferLimit int64     // bytes that they may take

	rest       host  // the ring of hosts that may leave memory, oldest first
	bytes      int64 // of hosts in memory
	window     int64 // bytes that one host may have in memory
	limit      int64
	mostBehind int64                      // bytes that may wait to be written
	unread     []*host                    // hosts whose time has come, and what goes first there is to be read
	renewing   []*host                    // hosts whose blocks are to be ranked anew
	crowded    []*bucket                  // to which much was pushed: they are to be split
	stock      int                        // hosts to be read ahead
	ahead      [2]int                     // hosts that are: sound ones, suspects
	eligible   int                        // cold hosts with a URL to hand out
	parked     map[uint32]map[string]bool // of cold hosts
	free       []*host

	base   time.Time // tick 0
	run    uint64    // counts processes
	era    int
	cut    *Cut // a checkpoint being made
	victim *victim

	enc    writer
	parts  []part // used again, as the next
	sorted []part
	order  []uint64
	items  []entry
}

func newVirtualizer(cfg Config) *virtualizer {
	d := &virtualizer{
		segments:    newSegments(cfg.Disk, cfg.Dir, min(max(cfg.Memory/16, 16<<10), 64<<20)),
		buckets:     make(map[uint32]*bucket),
		bucketSize:  min(max(cfg.Memory/128, 2<<10), 1<<20),
		bufferLimit: max(cfg.Memory/8, 2<<10),
		window:      max(cfg.Memory/64, 4<<10),
		mostBehind:  max(cfg.Memory/16, 16<<10),
		limit:       cfg.Memory,
		stock:       int(min(int64(max(minStock, 4*cfg.Hosts)), max(4, cfg.Memory/4/stockCost))),
		base:        cfg.Now(),
		parked:      make(map[uint32]map[string]bool),
	}
	d.rest.older, d.rest.newer = &d.rest, &d.rest
	return d
}

// tick is a time in whole milliseconds, rounded up: nobody is visited early.
func (d *virtualizer) tick(t time.Time) int64 {
	return int64((t.Sub(d.base) + time.Millisecond - 1) / time.Millisecond)
}

func (d *virtualizer) time(tick int64) time.Time {
	return d.base.Add(time.Duration(tick) * time.Millisecond)
}

// blank returns a host without anything.
func (d *virtualizer) blank() *host {
	if d == nil {
		return &host{}
	}
	if n := len(d.free); n > 0 {
		h := d.free[n-1]
		d.free = d.free[:n-1]
		return h
	}
	return &host{}
}

// admit counts a host that has come into memory.
func (d *virtualizer) admit(h *host) {
	if d == nil {
		return
	}
	h.era = d.era
	d.charge(h, hostCost+int64(len(h.key)))
	if h.ranks != nil {
		d.charge(h, ranksCost)
	}
}

func (d *virtualizer) charge(h *host, n int64) {
	if d == nil {
		return
	}
	h.bytes += n
	d.bytes += n
}

// launch notes an item that is under way: it still waits for whoever opens a checkpoint.
func (d *virtualizer) launch(h *host, it *Item) {
	if d != nil {
		d.stop(h)
	}
	h.flying = append(h.flying, it)
}

func (d *virtualizer) land(h *host, it *Item) {
	for i, other := range h.flying {
		if other == it {
			last := len(h.flying) - 1
			h.flying[i], h.flying[last] = h.flying[last], nil
			h.flying = h.flying[:last]
			return
		}
	}
}

// lead notes that a host was read before its time.
func (d *virtualizer) lead(h *host) {
	h.ahead, h.aheadAs = true, coldClass(h.doubtful)
	d.ahead[h.aheadAs]++
}

// stop ends a host's being read ahead.
func (d *virtualizer) stop(h *host) {
	if h.ahead {
		h.ahead = false
		d.ahead[h.aheadAs]--
	}
}

// settle puts a host into the ring of those that may leave memory, or takes it out.
func (d *virtualizer) settle(h *host) {
	if d == nil {
		return
	}
	if h.in == idle {
		d.stop(h)
	}
	stays := h.inflight > 0 || h.ahead || h.held > 0
	switch inRing := h.older != nil; {
	case stays && inRing:
		d.unring(h)
	case !stays && !inRing:
		h.older, h.newer = d.rest.older, &d.rest
		h.older.newer, h.newer.older = h, h
	}
}

func (d *virtualizer) unring(h *host) {
	if h.older != nil {
		h.older.newer, h.newer.older = h.newer, h.older
		h.older, h.newer = nil, nil
	}
}

// allowance is how much memory hosts may take: what the records, the ends of buckets and what waits to be written
// leave, an eighth of all at least.
func (d *virtualizer) allowance() int64 {
	return max(d.limit-d.table.memory-d.bufferLimit-d.mostBehind, d.limit/8)
}

// secondChances is how many hosts in a session one shrink passes over.
const secondChances = 16

// shrink brings memory below its limit. It evicts the hosts that nobody has touched for longest, but for those in a
// session, which get a second chance: an evicted host is inactive when it comes back. Where the disk does not keep up,
// hosts stay: they would take their room on the way there.
func (f *Frontier) shrink() {
	d := f.disk
	if d == nil || d.segments.behind.bytes > 2*d.mostBehind {
		return
	}
	for chances := secondChances; d.bytes > d.allowance() && d.rest.newer != &d.rest; {
		h := d.rest.newer
		if h.in == sound && chances > 0 {
			chances--
			d.unring(h)
			d.settle(h)
			continue
		}
		f.evict(h)
		d.flushSome()
	}
	d.flushSome()
}

func (f *Frontier) fail(err error) {
	if err != nil {
		f.err = err
	}
}

// Err is the disk's error since the last call of Next, nil if there was none. Nothing was lost by it, but memory holds
// more than it should.
func (f *Frontier) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
