package recovery

import (
	"encoding/json"

	"kumo/internal/base/item"
	"kumo/internal/state/entry"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// A Salvage is what the batches of a damaged journal, and the note of a checkpoint, say of URLs that may wait, and of
// seeds.
type Salvage struct {
	Item             func(it item.Item) // a URL that was to be fetched
	ScopeSeed        func(it item.Item)
	Lists            []entry.SeedListMark // of seeds, as far as the last one that is readable says
	ScopeSeedsLength int64                // how long the file of roots was
}

type salvaged struct {
	*Salvage
	entry.Reader
}

// Batch reads a batch of the journal.
func (s *Salvage) Batch(
	batch []byte,
) {
	_ = entry.Read(batch, salvaged{s, entry.NopReader()})
} // what is behind an entry that nobody knows is lost

// Note reads the note of a checkpoint. It comes before the batches.
func (s *Salvage) Note(text []byte) {
	var n Note
	if json.Unmarshal(text, &n) != nil {
		return
	}
	s.Lists = n.Lists
	for _, m := range n.Marks {
		salvaged{Salvage: s}.Mark(m)
	}
}

func (s salvaged) Found(it item.Item) {
	if it.ScopeSeed {
		s.ScopeSeed(it)
	}
	s.Item(it)
}

func (s salvaged) Dispatched(_ int, it item.Item) { s.Found(it) }

func (s salvaged) Undecided(payload string) {
	d := entry.NewDecoder([]byte(payload))
	if c := d.Candidate(); !d.Bad && c.Rule == "" {
		s.Found(c.WithHop())
	}
}

func (s salvaged) Mark(m store.Mark) {
	if m.Name == statefile.ScopeSeedsName {
		s.ScopeSeedsLength = max(s.ScopeSeedsLength, m.Length)
	}
}

// SeedList keeps what is furthest: the journal has batches from before the checkpoint, too.
func (s salvaged) SeedList(m entry.SeedListMark) {
	for _, old := range s.Lists {
		if old.Digest == m.Digest && (old.Done || old.Taken > m.Taken) {
			return
		}
	}
	s.Lists = entry.UpdateMarks(s.Lists, m)
}
