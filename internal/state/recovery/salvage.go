package recovery

import (
	"encoding/json"

	"kumo/internal/base/item"
	"kumo/internal/state/entry"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// A Salvage extracts from a checkpoint's note and the batches of a damaged journal the URLs that may be pending, and
// the seeds.
type Salvage struct {
	Item             func(it item.Item) // called with a URL that was to be fetched
	ScopeSeed        func(it item.Item)
	Lists            []entry.SeedListMark // of seed lists, from the last readable entries
	ScopeSeedsLength int64                // length of the file of scope seeds
}

type salvaged struct {
	*Salvage
	entry.Reader
}

// Batch reads a batch of the journal.
func (s *Salvage) Batch(batch []byte) {
	_ = entry.Read(batch, salvaged{s, entry.NopReader()}) // entries after one of an unknown kind are lost
}

// Note reads the note of a checkpoint. Call it before Batch.
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

// SeedList keeps the most advanced mark, because the journal also has batches from before the checkpoint.
func (s salvaged) SeedList(m entry.SeedListMark) {
	for _, old := range s.Lists {
		if old.Digest == m.Digest && (old.Done || old.Taken > m.Taken) {
			return
		}
	}
	s.Lists = entry.UpdateMarks(s.Lists, m)
}
