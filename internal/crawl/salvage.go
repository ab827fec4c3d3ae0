package crawl

import (
	"encoding/json"
	"time"

	"kumo/internal/item"
	"kumo/internal/member"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/store"
)

// A Salvage is what the batches of a damaged journal, and the note of a checkpoint, say of URLs that may wait, and of
// seeds.
type Salvage struct {
	Item  func(it item.Item) // a URL that was to be fetched
	Root  func(it item.Item)
	Lists []ListMark // of seeds, as far as the last one that is readable says
	Roots int64      // how long the file of roots was
}

var _ reader = (*Salvage)(nil)

// Batch reads a batch of the journal.
func (s *Salvage) Batch(batch []byte) { _ = read(batch, s) } // what is behind an entry that nobody knows is lost

// Note reads the note of a checkpoint. It comes before the batches.
func (s *Salvage) Note(text []byte) {
	var n note
	if json.Unmarshal(text, &n) != nil {
		return
	}
	s.Lists = n.Lists
	for _, m := range n.Marks {
		s.mark(m)
	}
}

func (s *Salvage) found(it item.Item) {
	if it.Root {
		s.Root(it)
	}
	s.Item(it)
}

func (s *Salvage) later(payload string) {
	d := decoder{b: []byte(payload)}
	if c := d.candidate(); d.err == nil && c.Rule == "" {
		s.found(c.withHop())
	}
}

func (s *Salvage) mark(m store.Mark) {
	if m.Name == rootsName {
		s.Roots = max(s.Roots, m.Length)
	}
}

// list keeps what is furthest: the journal has batches from before the checkpoint, too.
func (s *Salvage) list(m ListMark) {
	for _, old := range s.Lists {
		if old.Digest == m.Digest && (old.Done || old.Taken > m.Taken) {
			return
		}
	}
	s.Lists = markList(s.Lists, m)
}

func (s *Salvage) time(time.Time)             {}
func (s *Salvage) asked(int64)                {}
func (s *Salvage) done(done)                  {}
func (s *Salvage) skip(page.Skip)             {}
func (s *Salvage) out(page.Skip)              {}
func (s *Salvage) gone(page.Skip)             {}
func (s *Salvage) aside(page.Skip)            {}
func (s *Salvage) told(string)                {}
func (s *Salvage) nearer(string, int32)       {}
func (s *Salvage) sums(stats.Sums)            {}
func (s *Salvage) off(string, int64)          {}
func (s *Salvage) again(time.Time, item.Item) {}
func (s *Salvage) due(string, seen.Meta)      {}
func (s *Salvage) bound(uint64, string)       {}
func (s *Salvage) taken(uint64, uint64)       {}
func (s *Salvage) came(came)                  {}
func (s *Salvage) dropped(member.Transfer)    {}
func (s *Salvage) forgot([]string)            {}
func (s *Salvage) went([]member.Transfer)     {}
func (s *Salvage) epoch(uint64)               {}
