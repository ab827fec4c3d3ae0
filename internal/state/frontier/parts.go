package frontier

import (
	"math"
	"time"

	"kumo/internal/base/item"
)

// New returns an empty frontier in memory; it ignores Config.Dir. Open returns a frontier with a folder.
func New(cfg Config) *Frontier {
	cfg.Dir = ""
	return newFrontier(cfg.withDefaults())
}

// newFrontier creates the parts and connects them. Without a Dir those on disk are nil.
func newFrontier(cfg Config) *Frontier {
	f := &Frontier{cfg: cfg, slices: item.NewSlices(cfg.Slices), leader: newLeader(), filter: &filter{},
		suppressed: newSuppression(), polite: newPoliteness(&cfg),
		ranking: &ranking{ranker: cfg.Ranker, byRank: cfg.RankHosts || cfg.Ranker != nil}}
	now := func() time.Time { return f.cfg.Now() }
	f.addrs = newAddresses(cfg.AddrDelay, f.slices != nil)

	queues := &queueStore{ranking: f.ranking, window: math.MaxInt64}
	var save *saver
	var fronts *buckets
	var reader *bucketReader
	if cfg.Dir != "" {
		save = &saver{}
		f.cold = newColdHosts(cfg.Now(), f.polite, save)
		queues.segments = newSegments(cfg.Disk, cfg.Dir, min(max(cfg.Memory/16, 16<<10), 64<<20))
		queues.pages = newPager(&f.mu, queues.segments)
		queues.residents = newResidents(cfg.Memory, cfg.Hosts)
		queues.window = max(cfg.Memory/64, 4<<10)
		fronts = newBuckets(cfg.Memory, f.cold.ticks, queues.segments, save, cfg.Ranker != nil)
		reader = &bucketReader{pages: queues.pages, table: &f.cold.table}
	}
	f.pages = queues.pages
	f.bench = &workbench{hosts: make(map[string]*host), polite: f.polite, ranking: f.ranking, queues: queues,
		residents: queues.residents, saver: save, leader: f.leader, now: now,
		session:  int32(min(cfg.Session, math.MaxInt32)),
		schedule: &schedule{byRank: f.ranking.byRank, slots: cfg.Hosts, slowAfter: cfg.SlowAfter}}
	reads := &readQueue{mu: &f.mu, pages: f.pages, bench: f.bench}
	f.dispatcher = &dispatcher{bench: f.bench, queues: queues, ranking: f.ranking, suppressed: f.suppressed,
		filter: f.filter, reads: reads}
	f.removals = &removals{mu: &f.mu, reading: make(chan struct{}, 1), bench: f.bench, suppressed: f.suppressed,
		saver: save, pages: f.pages, cold: f.cold, buckets: fronts, reader: reader, segments: queues.segments}
	f.inspector = &Inspector{mu: &f.mu, now: now, polite: f.polite, bench: f.bench, ranking: f.ranking,
		suppressed: f.suppressed, pages: f.pages, cold: f.cold, buckets: fronts, reader: reader}
	f.worker = &diskWorker{mu: &f.mu, lock: newDiskLock(f.leader), pages: f.pages, reads: reads, saver: save}
	if cfg.Dir == "" {
		return f
	}
	f.disk = &virtualizer{bench: f.bench, residents: queues.residents, queues: queues, addrs: f.addrs,
		ranking: f.ranking, polite: f.polite, cold: f.cold, buckets: fronts, reader: reader, segments: queues.segments,
		now: now, maxBehind: max(cfg.Memory/16, 16<<10)}
	f.bench.load = f.disk.load
	f.worker.virtual = f.disk
	f.worker.writer = &segmentWriter{mu: &f.mu, segments: queues.segments, pages: f.pages}
	f.worker.compactor = &compactor{mu: &f.mu, segments: queues.segments, pages: f.pages, queues: queues,
		bench: f.bench, cold: f.cold, buckets: fronts}
	f.checkpoints = &checkpointer{mu: &f.mu, disk: f.worker.lock, saver: save, bench: f.bench, ranking: f.ranking,
		suppressed: f.suppressed, cold: f.cold, buckets: fronts, segments: queues.segments, writer: f.worker.writer,
		compactor: f.worker.compactor, removals: f.removals}
	return f
}
