package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
	"kumo/internal/state/journal"
	"kumo/internal/state/seen"
	"kumo/internal/state/transfer"
)

// Chunk replays a chunk. Its pending URLs are added to the pending ones. Hosts wait their full delay from now, or the
// rest of the wait in the chunk if that is longer.
func (s *replay) Chunk(c entry.Chunk) {
	p := s.readChunk(&c)
	if p == nil {
		return
	}
	if db, ok := s.Views.Seen.(*seen.DB); ok {
		for i := range p.Known {
			db.Import(p.Known[i].Entries)
			for _, e := range p.Known[i].Entries {
				if e.State == seen.Known { // the sender already had it, so it is not new
					s.dropGuess(e.URL)
				}
			}
		}
	}
	s.recordRequeuedChunk(p)
	for i := range p.Pending {
		if c.Keeps(p.Pending[i].Host) {
			s.Views.Seen.InsertKnown(transfer.KnownURLs(p.Pending[i].Items))
		}
	}
	if s.beforeCheckpoint {
		return
	}
	s.retainFoundHosts()
	for _, k := range p.Cookies {
		s.Cookies.Import(k)
	}
	s.Unsettled.Add(c.Transfer, p, s.Unsettled.KeptHosts(c.Transfer, c.Kept), c.Last)
	for i := range p.Pending {
		a := &p.Pending[i]
		s.importHost(a.Host, a.Timing, c.Keeps(a.Host))
		for _, it := range a.Items {
			s.pending[it.URL] = it
			delete(s.Guessed, it.URL)
		}
	}
	for i := range p.Known {
		s.importHost(p.Known[i].Host, p.Known[i].Timing, c.Keeps(p.Known[i].Host))
	}
}

// readChunk decodes the admitted part of a chunk. If that fails, it sets fault and returns nil.
func (s *replay) readChunk(c *entry.Chunk) (p *transfer.Chunk) {
	if s.fault == nil && s.chunkReader == nil {
		s.chunkReader, s.fault = transfer.NewChunkReader(s.Views.Frontier.Slices())
	}
	if s.fault != nil {
		return nil
	}
	if p, s.fault = s.chunkReader.Read([]byte(c.Data)); s.fault != nil {
		s.fault = fmt.Errorf("replay a chunk from %s: %w", c.Transfer.From, s.fault)
		return nil
	}
	p.Exclude(c.Excluded)
	return p
}

// recordRequeuedChunk calls recordRequeued for all items of a chunk, whether it is before or after the checkpoint.
func (s *replay) recordRequeuedChunk(p *transfer.Chunk) {
	for i := range p.Pending {
		for _, it := range p.Pending[i].Items {
			s.recordRequeued(&it)
		}
	}
}

func (s *replay) importHost(host string, c transfer.HostTiming, kept bool) {
	if kept {
		c = c.Merge(s.Views.Frontier, host)
	}
	s.Views.Frontier.Import(host, c.RequestedDelay, c.Wait-max(time.Since(s.at), 0))
	s.Views.Frontier.Restore(host)
}

func (s *replay) TransferDropped(t member.Transfer) {
	if !s.beforeCheckpoint {
		s.retainFoundHosts()
		gone, _ := s.Unsettled.Drop(t)
		s.HostsForgotten(gone)
	}
}

// HostsForgotten removes hosts from the queues, the abandoned queue and incoming transfers. Undecided URLs stay: they
// were not queued when the hosts were forgotten.
func (s *replay) HostsForgotten(hosts []string) {
	if s.beforeCheckpoint || s.fault != nil || len(hosts) == 0 {
		return
	}
	s.lost.forget(hosts)
	s.Views.Frontier.Remove(hosts...)
	if _, s.fault = s.Views.Frontier.FinishRemove(); s.fault != nil {
		return
	}
	s.retainFoundHosts()
	s.Unsettled.Coming = s.Unsettled.Without(hosts)
	gone := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		gone[host] = true
	}
	maps.DeleteFunc(s.pending, func(url string, it item.Item) bool { return gone[s.sliceOf(&it)] && !s.Guessed[url] })
	maps.DeleteFunc(s.Unexplained, func(_ string, c entry.Candidate) bool { return gone[s.sliceOf(&c.Item)] })
	maps.DeleteFunc(s.ReportedURLs, func(url string, _ bool) bool { return gone[s.slices().Of(url)] })
	s.abandoned.forget(gone)
}

func (s *replay) EpochSettled(settled uint64) {
	if !s.beforeCheckpoint {
		s.Unsettled.Settle(settled)
	}
}

// Arrived returns the transfers that were completely received since the last settled epoch.
func (s *State) Arrived() []member.Transfer { return slices.Clone(s.Unsettled.Whole) }

// Partial returns the transfers that were received only in part.
func (s *State) Partial() []member.Transfer { return s.Unsettled.Partial() }

// RecoverFailed is Recover for the journal of a dead node, which may be long. If queues exceed about memory bytes, they
// move to the views' disks. lost determines which records are lost, and collects the pages to fetch again; nil if none
// are lost. If lost is not nil, the journal may also replay batches from before the requested position.
func RecoverFailed(ctx context.Context, j journal.Journal, v Views, memory int64, lost *LostRecords) (*State, error) {
	most := int(memory / (2 * item.Weight))
	return recoverBy(j, v, lost, func(s *State, end journal.Position) error { return s.freeMemory(ctx, end, most) })
}

// freeMemory makes room in memory, as a checkpoint does for an engine.
func (s *State) freeMemory(ctx context.Context, at journal.Position, most int) error {
	s.UndecidedURLs = nil
	if db, ok := s.Views.Seen.(*seen.DB); ok && db.Full() {
		db.Freeze(max(uint64(at), db.Position()))
		if err := db.Merge(ctx, s.enqueueGuessed); err != nil {
			return err
		}
		if err := seen.CompactAll(ctx, db); err != nil {
			return err
		}
	}
	if len(s.pending)-len(s.Guessed) <= most {
		return nil
	}
	maps.DeleteFunc(s.Guessed, func(url string, _ bool) bool { _, waits := s.pending[url]; return !waits })
	for _, it := range s.Queue() {
		if !s.Guessed[it.URL] { // the journal may still contain its Found entry
			s.Views.Frontier.Restore(s.sliceOf(&it), it)
			delete(s.pending, it.URL)
		}
	}
	return s.Views.Frontier.Err()
}

// enqueueGuessed queues the new URLs of a merge, before the journal shows what the dead node's merge decided.
func (s *State) enqueueGuessed(all []seen.Decided) error {
	return s.eachNew(all, func(it item.Item) {
		s.pending[it.URL] = it
		s.Guessed[it.URL] = true
	})
}

// BuildHolding converts a dead node's state into a holding. It drops incomplete transfers and decides undecided URLs.
// The frontier and the URL database stay open, and the caller must close them.
func (s *State) BuildHolding(ctx context.Context) (*transfer.Holding, error) {
	db, ok := s.Views.Seen.(*seen.DB)
	if !ok {
		return nil, transfer.ErrNoDB
	}
	drop := &replay{State: s}
	for _, t := range s.Partial() {
		drop.TransferDropped(t)
	}
	if drop.fault != nil {
		return nil, drop.fault
	}
	for _, it := range s.Queue() {
		s.Views.Frontier.Restore(s.sliceOf(&it), it)
	}
	err := s.EachAbandoned(func(it item.Item) error {
		s.Views.Frontier.Restore(s.sliceOf(&it), it)
		return nil
	})
	if err == nil {
		err = s.restoreLost(s.lost)
	}
	if err == nil {
		db.Freeze(db.Position())
		err = db.DecideAll(ctx, s.enqueueDecided)
	}
	if err != nil {
		return nil, fmt.Errorf("restore the state of a dead node: %w", err)
	}
	s.pending = map[string]item.Item{}
	nothing := func(func(item.Item) error) error { return nil }
	h := &transfer.Holding{Frontier: s.Views.Frontier, DB: db, Abandoned: nothing,
		Reported: func(url string) bool { return s.ReportedURLs[url] },
		Excluded: func(string) bool { return false }, Unsettled: s.Unsettled, Now: time.Now, Cookies: s.Cookies}
	if s.lost != nil && len(s.lost.hosts) > 0 {
		h.RefetchHosts, h.Refetch = s.lost.hosts, s.lost.refetch
	}
	return h, nil
}

func (s *State) enqueueDecided(all []seen.Decided) error {
	return s.eachNew(all, func(it item.Item) { s.Views.Frontier.Restore(s.sliceOf(&it), it) })
}

func (s *State) eachNew(all []seen.Decided, f func(it item.Item)) error {
	for i := range all {
		d := entry.NewDecoder(all[i].Payload)
		c := d.Candidate()
		if d.Bad {
			return fmt.Errorf("decode a decided URL: %w", d.Err())
		}
		if all[i].News == seen.Fresh && c.Rule == "" {
			f(c.WithHop())
		}
	}
	return nil
}
