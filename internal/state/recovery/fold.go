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
	s.chunkComesAnew(p)
	for i := range p.Waiting {
		if c.Keeps(p.Waiting[i].Host) {
			s.Views.Seen.InsertKnown(transfer.AsKnown(p.Waiting[i].Items))
		}
	}
	if s.behind {
		return
	}
	s.keepFound()
	for _, k := range p.Cookies {
		s.Cookies.Import(k)
	}
	s.Unsettled.Take(c.Transfer, p, s.Unsettled.Keeps(c.Transfer, c.Kept), c.Last)
	for i := range p.Waiting {
		a := &p.Waiting[i]
		s.arrive(a.Host, a.Timing, c.Keeps(a.Host))
		for _, it := range a.Items {
			s.waiting[it.URL] = it
			delete(s.Guessed, it.URL)
		}
	}
	for i := range p.Known {
		s.arrive(p.Known[i].Host, p.Known[i].Timing, c.Keeps(p.Known[i].Host))
	}
}

// readChunk reads what is taken in of a chunk; nil if it cannot, for which the state's fault is.
func (s *replay) readChunk(c *entry.Chunk) (p *transfer.Chunk) {
	if s.fault == nil && s.unpack == nil {
		s.unpack, s.fault = transfer.NewChunkReader(s.Views.Frontier.Slices())
	}
	if s.fault != nil {
		return nil
	}
	if p, s.fault = s.unpack.Read([]byte(c.Data)); s.fault != nil {
		s.fault = fmt.Errorf("replay a chunk from %s: %w", c.Transfer.From, s.fault)
		return nil
	}
	p.LeaveOut(c.Left)
	return p
}

// chunkComesAnew is told of a chunk, be it in the checkpoint, whose frontier has what waits then, or behind it.
func (s *replay) chunkComesAnew(p *transfer.Chunk) {
	for i := range p.Waiting {
		for _, it := range p.Waiting[i].Items {
			s.comesAnew(&it)
		}
	}
}

func (s *replay) arrive(host string, c transfer.HostTiming, kept bool) {
	if kept {
		c = c.Merge(s.Views.Frontier, host)
	}
	s.Views.Frontier.Arrive(host, c.Asked, c.Wait-max(time.Since(s.at), 0))
	s.Views.Frontier.Restore(host)
}

func (s *replay) TransferDropped(t member.Transfer) {
	if !s.behind {
		s.keepFound()
		gone, _ := s.Unsettled.Drop(t)
		s.HostsForgotten(gone)
	}
}

// HostsForgotten removes hosts from the queues, the abandoned queue and transfers under way. Undecided URLs stay: they
// were not queued when the hosts were forgotten.
func (s *replay) HostsForgotten(hosts []string) {
	if s.behind || s.fault != nil || len(hosts) == 0 {
		return
	}
	s.lost.forget(hosts)
	s.Views.Frontier.Remove(hosts...)
	if _, s.fault = s.Views.Frontier.Removed(); s.fault != nil {
		return
	}
	s.keepFound()
	s.Unsettled.Coming = s.Unsettled.Without(hosts)
	gone := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		gone[host] = true
	}
	maps.DeleteFunc(s.waiting, func(url string, it item.Item) bool { return gone[s.sliceOf(&it)] && !s.Guessed[url] })
	maps.DeleteFunc(s.Unexplained, func(_ string, c entry.Candidate) bool { return gone[s.sliceOf(&c.Item)] })
	maps.DeleteFunc(s.ReportedURLs, func(url string, _ bool) bool { return gone[s.slices().Of(url)] })
	s.abandoned.forget(gone)
}

func (s *replay) EpochSettled(settled uint64) {
	if !s.behind {
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
func RecoverFailed(ctx context.Context, j journal.Journal, v Views, memory int64, lost *Lost) (*State, error) {
	most := int(memory / (2 * item.Weight))
	return recoverBy(j, v, lost, func(s *State, end journal.Position) error { return s.relieve(ctx, end, most) })
}

// relieve is what a checkpoint is for an engine: it makes room in memory.
func (s *State) relieve(ctx context.Context, at journal.Position, most int) error {
	s.UndecidedURLs = nil
	if db, ok := s.Views.Seen.(*seen.DB); ok && db.Full() {
		db.Freeze(max(uint64(at), db.Position()))
		if err := db.Merge(ctx, s.guess); err != nil {
			return err
		}
		if err := seen.CompactAll(ctx, db); err != nil {
			return err
		}
	}
	if len(s.waiting)-len(s.Guessed) <= most {
		return nil
	}
	maps.DeleteFunc(s.Guessed, func(url string, _ bool) bool { _, waits := s.waiting[url]; return !waits })
	for _, it := range s.Queue() {
		if !s.Guessed[it.URL] { // the journal may yet say that it was found
			s.Views.Frontier.Restore(s.sliceOf(&it), it)
			delete(s.waiting, it.URL)
		}
	}
	return s.Views.Frontier.Err()
}

// guess takes in what a merge has decided before the journal says what the dead node's merge did.
func (s *State) guess(all []seen.Decided) error {
	return s.news(all, func(it item.Item) {
		s.waiting[it.URL] = it
		s.Guessed[it.URL] = true
	})
}

// Fold makes a holding of a dead node's state. It drops incomplete transfers, and decides what is undecided. Frontier
// and URL database stay open, and are the caller's to close.
func (s *State) Fold(ctx context.Context) (*transfer.Holding, error) {
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
		err = s.restore(s.lost)
	}
	if err == nil {
		db.Freeze(db.Position())
		err = db.Settle(ctx, s.decided)
	}
	if err != nil {
		return nil, fmt.Errorf("fold what a node held: %w", err)
	}
	s.waiting = map[string]item.Item{}
	nothing := func(func(item.Item) error) error { return nil }
	h := &transfer.Holding{Frontier: s.Views.Frontier, DB: db, Abandoned: nothing,
		Reported: func(url string) bool { return s.ReportedURLs[url] },
		Except:   func(string) bool { return false }, Unsettled: s.Unsettled, Now: time.Now, Cookies: s.Cookies}
	if s.lost != nil && len(s.lost.hosts) > 0 {
		h.Again, h.Refetch = s.lost.hosts, s.lost.refetch
	}
	return h, nil
}

func (s *State) decided(all []seen.Decided) error {
	return s.news(all, func(it item.Item) { s.Views.Frontier.Restore(s.sliceOf(&it), it) })
}

func (s *State) news(all []seen.Decided, f func(it item.Item)) error {
	for i := range all {
		d := entry.NewDecoder(all[i].Payload)
		c := d.Candidate()
		if d.Bad {
			return fmt.Errorf("a decided URL: %w", d.Fault())
		}
		if all[i].News == seen.Fresh && c.Rule == "" {
			f(c.WithHop())
		}
	}
	return nil
}
