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

// Chunk replays a chunk. What waits is restored with what was found; hosts owe what they owed when it came, and their
// full delay.
func (s *replay) Chunk(c entry.Chunk) {
	p := s.readChunk(&c)
	if p == nil {
		return
	}
	if db, ok := s.Views.Seen.(*seen.DB); ok {
		for i := range p.Known {
			db.Import(p.Known[i].Entries)
			for _, e := range p.Known[i].Entries {
				if e.State == seen.Known { // who hands it over has it: it is no news any more
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
	s.keepFoundHosts()
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

// readChunk reads what is taken in of a chunk; nil if it cannot, for which the state's fault is.
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

// recordRequeuedChunk is told of a chunk, be it in the checkpoint, whose frontier has what waits then, or behind it.
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
		s.keepFoundHosts()
		gone, _ := s.Unsettled.Drop(t)
		s.HostsForgotten(gone)
	}
}

// HostsForgotten removes hosts from the queues, the abandoned queue and transfers under way. Undecided URLs stay: they
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
	s.keepFoundHosts()
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

// Arrived are the transfers that came whole since an epoch was settled.
func (s *State) Arrived() []member.Transfer { return slices.Clone(s.Unsettled.Whole) }

// Partial are the transfers of which something has come, and that have not come whole.
func (s *State) Partial() []member.Transfer { return s.Unsettled.Partial() }

// RecoverFailed is Recover for a dead node's journal, which may be long: what exceeds about memory bytes of queues goes
// to the views' disks. lost says which records are gone, and collects what to fetch again; nil: none are. For it the
// journal may also replay batches from before the position asked for.
func RecoverFailed(ctx context.Context, j journal.Journal, v Views, memory int64, lost *LostRecords) (*State, error) {
	most := int(memory / (2 * item.Weight))
	return recoverBy(j, v, lost, func(s *State, end journal.Position) error { return s.freeMemory(ctx, end, most) })
}

// freeMemory is what a checkpoint is for an engine: it makes room in memory.
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
		if !s.Guessed[it.URL] { // the journal may yet say that it was found
			s.Views.Frontier.Restore(s.sliceOf(&it), it)
			delete(s.pending, it.URL)
		}
	}
	return s.Views.Frontier.Err()
}

// enqueueGuessed takes in what a merge has decided before the journal says what the dead node's merge did.
func (s *State) enqueueGuessed(all []seen.Decided) error {
	return s.eachNew(all, func(it item.Item) {
		s.pending[it.URL] = it
		s.Guessed[it.URL] = true
	})
}

// BuildHolding makes a holding of a dead node's state. It drops incomplete transfers, and decides what is undecided. Frontier
// and URL database stay open, and are the caller's to close.
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
		return nil, fmt.Errorf("fold what a node held: %w", err)
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
			return fmt.Errorf("a decided URL: %w", d.Err())
		}
		if all[i].News == seen.Fresh && c.Rule == "" {
			f(c.WithHop())
		}
	}
	return nil
}
